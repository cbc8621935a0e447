//! `adasum-run table show`.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::io::print;
use crate::cli::text::{self, count};
use crate::error::Result;
use crate::topo::{RankTable, ServerDevice, Version};

/// How many groups are drawn in the text.
const DRAWN: usize = 16;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rank table
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the picture.
pub(crate) fn run(args: &Args) -> Result<()> {
    let table = RankTable::read(&args.table)?;
    if args.json {
        return print(&format!("{}\n", as_json(&table)));
    }
    print(&as_text(&table))
}

fn as_text(table: &RankTable) -> String {
    let mut text = format!(
        "{}\nversion {}, {}, {}\n",
        table.path().display(),
        table.version(),
        count(table.servers().len() as u64, "server"),
        count(table.size(), "rank")
    );
    let width = table.size().saturating_sub(1).to_string().len();
    for server in table.servers() {
        let _ = writeln!(
            text,
            "\nserver {}: {}",
            server.index,
            server.id.escape_debug()
        );
        for (index, device) in server.devices.iter().enumerate() {
            let last = index + 1 == server.devices.len();
            let branch = if last { "`--" } else { "|--" };
            let (rank, id) = (device.rank, device.device_id);
            let line = format!(
                "{branch} rank {rank:<width$}  device {id:<2}  {}",
                addresses(device)
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if !table.sections().is_empty() {
        let (one, many) = match table.version() {
            Version::V1_2 => ("superpod", "superpods"),
            _ => ("group", "groups of the table"),
        };
        let _ = writeln!(text, "\n{many}");
        for section in table.sections() {
            let ranks = text::ranks(section.ranks.iter().copied());
            let _ = writeln!(text, "  {one} {}: {ranks}", section.name.escape_debug());
        }
    }
    let _ = writeln!(text, "\ngroups within a server");
    groups(&mut text, &within(table));
    match across(table) {
        Some(list) => {
            let _ = writeln!(text, "\ngroups across servers");
            groups(&mut text, &list);
        }
        None => {
            let _ = writeln!(
                text,
                "\nno groups across servers: they have different numbers of devices"
            );
        }
    }
    text
}

fn groups(text: &mut String, list: &[Vec<u32>]) {
    for ranks in list.iter().take(DRAWN) {
        let _ = writeln!(text, "  {}", text::ranks(ranks.iter().copied()));
    }
    if list.len() > DRAWN {
        let _ = writeln!(text, "  and {} more", list.len() - DRAWN);
    }
}

fn addresses(device: &ServerDevice) -> String {
    let list: Vec<String> = device.device_ips.iter().map(ToString::to_string).collect();
    list.join(",")
}

/// The ranks of each server.
fn within(table: &RankTable) -> Vec<Vec<u32>> {
    let ranks = |server: &crate::topo::Server| server.devices.iter().map(|d| d.rank).collect();
    table.servers().iter().map(ranks).collect()
}

/// The ranks with the same place on their servers, if all servers have the same number of them.
fn across(table: &RankTable) -> Option<Vec<Vec<u32>>> {
    let locals = table.locals().ok()?;
    let group = |local| {
        table
            .servers()
            .iter()
            .map(|s| s.first_rank() + local)
            .collect()
    };
    Some((0..locals).map(group).collect())
}

fn as_json(table: &RankTable) -> Value {
    let device = |device: &ServerDevice| json!({"rank": device.rank, "device_id": device.device_id, "device_ips": device.device_ips});
    let servers: Vec<Value> = table
        .servers()
        .iter()
        .map(|server| {
            let devices: Vec<Value> = server.devices.iter().map(device).collect();
            json!({"index": server.index, "server_id": server.id, "devices": devices})
        })
        .collect();
    let sections: Vec<Value> = table
        .sections()
        .iter()
        .map(|section| json!({"name": section.name, "ranks": section.ranks}))
        .collect();
    json!({
        "file": table.path().display().to_string(),
        "version": table.version().to_string(),
        "ranks": table.size(),
        "servers": servers,
        "sections": sections,
        "groups": {"within_servers": within(table), "across_servers": across(table)},
    })
}
