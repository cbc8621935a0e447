//! `adasum-run plan`: what ranks send, receive and compute in a reduction, without running it.
//!
//! `view` turns plans into data, which `--json` prints; `text` and `picture` show the same data.

mod picture;
mod text;
mod view;

use std::path::PathBuf;

use crate::cli::io;
use crate::cli::lab::workload::{self, PlacementArg, TensorArgs};
use crate::cli::tools::plan::view::View;
use crate::error::{Error, Result};
use crate::plan::{Form, Machine, Request, Shape};
use crate::topo::RankTable;

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// Servers and devices of this rank table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["servers", "devices_per_server"])]
    rank_table: Option<PathBuf>,
    /// Number of servers
    #[arg(long, value_name = "S")]
    servers: Option<u32>,
    /// Devices of each server [default: 1]
    #[arg(long, value_name = "D")]
    devices_per_server: Option<u32>,
    /// Show the steps of this rank [default: a line for each rank]
    #[arg(long, value_name = "R")]
    rank: Option<u32>,
    #[command(flatten)]
    tensors: TensorArgs,
    /// The most subtrees that a round merges: 2 to 8, or auto for the fastest by the cost model
    #[arg(long, value_name = "R", default_value = "2", value_parser = workload::radix)]
    radix: std::option::Option<u32>,
    /// Where vectors lie while servers are merged
    #[arg(long, value_name = "HOW", default_value = "hierarchical")]
    placement: PlacementArg,
    /// How exchanges are made: alltoall, batch, group, pairwise, shared, or auto for what suits --machine
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = workload::exchange)]
    exchange: std::option::Option<Form>,
    /// Machine of the cost model: 910A, 910B, A3 or mock
    #[arg(long, value_name = "NAME", default_value = "910B")]
    machine: String,
    /// Print one line of JSON: the steps of --rank, or of all ranks
    #[arg(long)]
    json: bool,
    /// Draw the tree and the steps of --rank [default: of rank 0] into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const LONG_HELP: &str = "\
Ranges are elements of a bucket's buffer. A tag is what MindSpore's cells would call a message: the hash of round, sender and
number of the bucket (plus the number of buckets from higher to lower ranks); HCCL messages carry none. A group such as 0-8
is named after its ranks. Seconds are those of the cost model, each step for itself: nothing is measured or overlapped.";

/// Runs the command.
///
/// # Errors
/// If an argument or the table is wrong, or a file cannot be written.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let (Some(picture), Some(table)) = (&args.svg, &args.rank_table) {
        io::refuse_same("--svg", picture, &[("--rank-table", table)])?;
    }
    let machine = Machine::named(&args.machine).ok_or_else(|| {
        let known = Machine::NAMES.join(", ");
        Error::invalid(format!("--machine {:?}: known are {known}", args.machine))
    })?;
    let request = Request {
        radix: args.radix,
        placement: args.placement.into(),
        exchange: args.exchange,
        owned_above: None,
    };
    let shape = shape(args)?;
    if let Some(rank) = args.rank.filter(|&rank| rank >= shape.size()) {
        return Err(Error::invalid(format!(
            "--rank {rank}: there are {} ranks",
            shape.size()
        )));
    }
    let view = View::new(shape, &args.tensors, &machine, request)?;
    if let Some(path) = &args.svg {
        let picture = picture::draw(&view, args.rank.unwrap_or(0))?;
        io::save(path, &picture)?;
        if !args.json {
            return Ok(());
        }
    }
    io::print(&match (args.json, args.rank) {
        (true, rank) => view.json(rank)?,
        (false, Some(rank)) => text::of_rank(&view, rank)?,
        (false, None) => text::of_all(&view)?,
    })
}

fn shape(args: &Args) -> Result<Shape> {
    match (&args.rank_table, args.servers) {
        (Some(path), _) => {
            let table = RankTable::read(path)?;
            let servers = u32::try_from(table.servers().len())
                .map_err(|_| Error::invalid("too many servers"))?;
            Shape::new(servers, table.locals()?)
        }
        (None, None) if args.devices_per_server.is_none() => Err(Error::invalid(
            "of which ranks? Give --rank-table FILE, or --servers S and --devices-per-server D",
        )),
        (None, servers) => Shape::new(servers.unwrap_or(1), args.devices_per_server.unwrap_or(1)),
    }
}
