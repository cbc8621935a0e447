//! `adasum-run table make`.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use crate::cli::io;
use crate::cli::launch::hosts::host_name;
use crate::cli::tools::table::addresses;
use crate::error::{Error, Result};
use crate::topo::{self, NewTable, Selection};

const LONG_HELP: &str = "\
Addresses come from `hccn_tool -i N -ip -g` for each device N, else from /etc/hccn.conf (lines `address_N=IP`);
--hccn-conf reads another such file instead of both, and --device-ips gives them.

The file is hccl_{devices}p_{numbers}_{server}.json, with the bytes of hccl_tools.py. As there, up to 8 visible devices are
taken for two groups of four, which a range crosses only as [0,8). Unlike there, the numbers of the range have any width, and
--visible-devices asks for the addresses of the devices it names.";

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// Which of the visible devices, as a half-open range
    #[arg(
        long,
        alias = "device_num",
        value_name = "RANGE",
        default_value = "[0,8)"
    )]
    device_num: String,
    /// The devices that RANGE counts, separated by commas [default: 0 to 7]
    #[arg(long, alias = "visible_devices", value_name = "LIST")]
    visible_devices: Option<String>,
    /// Name or address of this server in the table [default: the address of this host's name]
    #[arg(long, alias = "server_ip", value_name = "IP")]
    server_ip: Option<String>,
    /// File with the addresses
    #[arg(
        long,
        alias = "hccn_conf",
        value_name = "FILE",
        conflicts_with = "device_ips"
    )]
    hccn_conf: Option<PathBuf>,
    /// The addresses, one for each device of RANGE
    #[arg(long, alias = "device_ips", value_name = "LIST", value_delimiter = ',')]
    device_ips: Option<Vec<String>>,
    /// Folder for the file
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Writes the file and prints its name.
pub(crate) fn run(args: &Args) -> Result<()> {
    let selection = Selection::new(&args.device_num, args.visible_devices.as_deref())?;
    let server = match args.server_ip.as_deref() {
        Some(server) if !server.is_empty() => server.to_owned(),
        _ => own_address()?,
    };
    let addresses = match (&args.device_ips, &args.hccn_conf) {
        (Some(given), _) => given.clone(),
        (None, Some(file)) => addresses::from_file(file, selection.devices())?,
        (None, None) => addresses::of_this_machine(selection.devices())?,
    };
    save(&topo::make(&selection, &server, &addresses)?, &args.output)
}

/// Writes a table into `folder` and prints its name.
pub(crate) fn save(table: &NewTable, folder: &Path) -> Result<()> {
    let path = folder.join(&table.file_name);
    io::save(&path, &table.text)?;
    io::print(&format!("{}\n", path.display()))
}

/// The IPv4 address that this host's name has.
fn own_address() -> Result<String> {
    let name = host_name();
    let found = (name.as_str(), 0).to_socket_addrs().ok();
    let mut addresses = found.into_iter().flatten().map(|address| address.ip());
    match addresses.find(IpAddr::is_ipv4) {
        Some(address) => Ok(address.to_string()),
        None => Err(Error::invalid(format!(
            "please input server ip! (--server-ip; the name of this host, {name:?}, has no address)"
        ))),
    }
}
