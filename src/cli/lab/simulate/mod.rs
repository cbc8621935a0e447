//! `adasum-run simulate`: how long a reduction takes on a cluster, by the cost model over the plan that runs.
//!
//! `cluster` knows machines, `schemes` turns AdaSum's plans and the formulas of all-reduces into stages, `timeline` adds these up
//! one after the other or as a pipeline.

mod cluster;
mod schemes;
mod timeline;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::simulate::cluster::Cluster;
use crate::cli::lab::simulate::schemes::Formula;
use crate::cli::lab::simulate::timeline::{TimedStage, pipelined, sequential};
use crate::cli::lab::workload::{self, Bucket, TensorArgs, bucketed};
use crate::cli::report::chart::{Chart, Series};
use crate::cli::{io, text};
use crate::error::{Error, Result};
use crate::plan::{Form, Layout, Request, Shape, choose};

/// Devices of the default list.
const DEVICES: [u32; 10] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// 910A, 910B or A3, or another one of --clusters
    #[arg(long, value_name = "NAME", default_value = "910B")]
    cluster: String,
    /// Clusters of your own, in the form of those that are built in (src/cli/lab/simulate/clusters.toml)
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Numbers of devices, each full servers [default: 16, 32, .. 8192]
    #[arg(long, value_name = "N,N,..", value_delimiter = ',')]
    devices: Vec<u32>,
    /// Gradients of a known model, instead of --bytes, --tensors and --dtype
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bytes", "tensors", "counts", "dtype"])]
    model: Option<Model>,
    #[command(flatten)]
    tensors: TensorArgs,
    /// How AdaSum's exchanges are made: auto, alltoall, batch, group, pairwise or shared
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = workload::exchange)]
    exchange: std::option::Option<Form>,
    /// Buffers under way at a time when pipelined
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = depth)]
    pipeline_depth: usize,
    /// Print one line of JSON instead of a table
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write all figures into this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the ratio to the hierarchical all-reduce into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const LONG_HELP: &str = "\
Not pipelined: all tensors in one buffer, nothing overlaps. Pipelined: buffers of --bucket-bytes, payload, kernels and scalars each on
a stream of its own, for all-reduces just the same. Ratios are to the hierarchical all-reduce (reduce-scatter in the server,
NHR between servers, all-gather in the server), pipelined ones to the pipelined one. This is a model with assumed latencies,
not a measurement: nothing here has run on an NPU.";

/// `--model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Model {
    /// 25.6 million parameters in fp32, 161 tensors
    #[value(name = "resnet-50")]
    ResNet50,
    /// A language model of 7 thousand million parameters in bf16, 291 tensors
    #[value(name = "7b")]
    SevenB,
}

/// One scheme on one number of devices.
#[derive(Debug, Clone, Serialize)]
struct Row {
    devices: u32,
    servers: u32,
    scheme: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    radix: Option<u32>,
    seconds: f64,
    ratio: f64,
    pipelined_seconds: f64,
    pipelined_ratio: f64,
    bytes_between_servers: f64,
}

impl Row {
    fn radix_text(&self) -> String {
        self.radix
            .map(|radix| radix.to_string())
            .unwrap_or_default()
    }
}

/// The tensors to reduce.
struct Workload {
    whole: Layout,
    buckets: Vec<Bucket>,
    exchange: Option<Form>,
    depth: usize,
}

impl Workload {
    /// Bytes of all tensors, without gaps between them.
    fn bytes(&self) -> u64 {
        let elements: u64 = self.whole.tensors().iter().map(|tensor| tensor.len()).sum();
        elements * self.whole.dtype().size()
    }
}

/// Runs the command.
///
/// # Errors
/// If an argument or the file of clusters is wrong, or a file cannot be written.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut others: Vec<(&str, &Path)> = Vec::new();
    let files = [
        ("--clusters", &args.clusters),
        ("--csv", &args.csv),
        ("--svg", &args.svg),
    ];
    for (name, path) in files {
        let Some(path) = path else { continue };
        io::refuse_same(name, path, &others)?;
        others.push((name, path));
    }
    let cluster = cluster::find(args.clusters.as_deref(), &args.cluster)?;
    let tensors = args.tensors();
    let workload = Workload {
        whole: tensors.whole()?,
        buckets: bucketed(tensors.dtype(), &tensors.elements()?, tensors.bucket_bytes)?,
        exchange: args.exchange,
        depth: args.pipeline_depth,
    };
    let mut rows = Vec::new();
    for shape in shapes(args, &cluster)? {
        rows.extend(compare(&cluster, shape, &workload)?);
    }
    if let Some(path) = &args.csv {
        io::save(path, &csv(&cluster, &workload, &rows))?;
    }
    if let Some(path) = &args.svg {
        io::save(path, &chart(&cluster, &workload, &rows).draw().file())?;
    }
    io::print(&match args.json {
        true => json(&cluster, &workload, &rows)?,
        false => table(&cluster, &workload, &rows),
    })
}

impl Args {
    fn tensors(&self) -> TensorArgs {
        let mut tensors = self.tensors.clone();
        let (bytes, count, dtype) = match self.model {
            None => return tensors,
            Some(Model::ResNet50) => (workload::RESNET_50, 161, ElementType::F32),
            Some(Model::SevenB) => (14_000_000_000, 291, ElementType::Bf16),
        };
        (tensors.bytes, tensors.tensors, tensors.dtype) = (bytes, count, dtype);
        tensors.counts.clear();
        tensors
    }
}

/// The sizes to look at; of the default list those that the cluster can have.
fn shapes(args: &Args, cluster: &Cluster) -> Result<Vec<Shape>> {
    let locals = cluster.devices_per_server;
    let possible = |devices: u32| {
        let small_enough = cluster.most_devices.is_none_or(|most| devices <= most);
        small_enough && devices > locals && devices.is_multiple_of(locals)
    };
    let list = match args.devices.as_slice() {
        [] => DEVICES
            .into_iter()
            .filter(|&devices| possible(devices))
            .collect(),
        asked => asked.to_vec(),
    };
    if let Some(wrong) = list.iter().find(|&&devices| !possible(devices)) {
        let most = match cluster.most_devices {
            Some(most) => format!(", and at most {most} devices"),
            None => String::new(),
        };
        return Err(Error::invalid(format!(
            "--devices {wrong}: {} has servers of {locals}, of which there must be at least two{most}",
            cluster.machine.name
        )));
    }
    list.into_iter()
        .map(|devices| Shape::new(devices / locals, locals))
        .collect()
}

/// All schemes on one size.
fn compare(cluster: &Cluster, shape: Shape, workload: &Workload) -> Result<Vec<Row>> {
    let row =
        |scheme: &str, radix, whole: Vec<TimedStage>, buckets: &[Vec<TimedStage>], bytes| Row {
            devices: shape.size(),
            servers: shape.servers,
            scheme: scheme.to_owned(),
            radix,
            seconds: sequential(&[whole]),
            ratio: f64::NAN,
            pipelined_seconds: pipelined(buckets, workload.depth),
            pipelined_ratio: f64::NAN,
            bytes_between_servers: bytes,
        };
    let bytes = |layout: &Layout| (layout.elements() * layout.dtype().size()) as f64;
    let mut rows = Vec::new();
    for formula in Formula::ALL {
        let of = |layout: &Layout| formula.stages(cluster, shape, bytes(layout));
        let buckets = workload.buckets.iter().map(|bucket| of(&bucket.layout));
        let (Some(whole), Some(buckets)) =
            (of(&workload.whole), buckets.collect::<Option<Vec<_>>>())
        else {
            continue;
        };
        let sent = formula.bytes_between_servers(shape, bytes(&workload.whole));
        rows.push(row(formula.name(), None, whole, &buckets, sent));
    }
    for asked in [Some(2), Some(4), Some(8), None] {
        let request = Request {
            radix: asked,
            exchange: workload.exchange,
            ..Request::default()
        };
        let layouts = std::slice::from_ref(&workload.whole);
        let choices = choose(shape, layouts, &cluster.machine, &request)?;
        let (whole, sent) = schemes::adasum(cluster, shape, &workload.whole, choices)?;
        let buckets = workload.buckets.iter().map(|bucket| {
            schemes::adasum(cluster, shape, &bucket.layout, choices).map(|(stages, _)| stages)
        });
        let buckets = buckets.collect::<Result<Vec<_>>>()?;
        let name = match asked {
            Some(radix) => format!("AdaSum, radix {radix}"),
            None => AUTO.to_owned(),
        };
        rows.push(row(
            &name,
            Some(choices.radix),
            whole,
            &buckets,
            sent as f64,
        ));
    }
    set_ratios(&mut rows);
    Ok(rows)
}

/// Name of the scheme whose radix the cost model chooses.
const AUTO: &str = "AdaSum, auto";

/// Fills in the ratios of all rows.
fn set_ratios(rows: &mut [Row]) {
    let name = Formula::Hierarchical.name();
    let base = rows.iter().find(|row| row.scheme == name);
    let Some((plain, overlapped)) = base.map(|row| (row.seconds, row.pipelined_seconds)) else {
        return;
    };
    for row in rows {
        row.ratio = row.seconds / plain;
        row.pipelined_ratio = row.pipelined_seconds / overlapped;
    }
}

fn describe(cluster: &Cluster, workload: &Workload) -> String {
    let layout = &workload.whole;
    format!(
        "{}, servers of {}; {} of {} in {}; pipelined in {}, {} at a time",
        cluster.machine.name,
        cluster.devices_per_server,
        text::bytes(workload.bytes()),
        layout.dtype().name(),
        text::count(layout.tensors().len() as u64, "tensor"),
        text::count(workload.buckets.len() as u64, "buffer"),
        workload.depth
    )
}

fn table(cluster: &Cluster, workload: &Workload, rows: &[Row]) -> String {
    let mut text = format!(
        "{}\n\n{:>7} {:<24} {:>5} {:>10} {:>6} {:>12} {:>6}\n",
        describe(cluster, workload),
        "devices",
        "scheme",
        "radix",
        "ms",
        "ratio",
        "pipelined ms",
        "ratio"
    );
    let mut last = 0;
    for row in rows {
        if last != 0 && row.devices != last {
            text.push('\n');
        }
        last = row.devices;
        let radix = row.radix_text();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>7} {:<24} {radix:>5} {:>10.3} {:>6.2} {:>12.3} {:>6.2}",
            row.devices,
            row.scheme,
            1e3 * row.seconds,
            row.ratio,
            1e3 * row.pipelined_seconds,
            row.pipelined_ratio
        );
    }
    text + "\nA model with assumed latencies: nothing here was measured on an NPU.\n"
}

fn csv(cluster: &Cluster, workload: &Workload, rows: &[Row]) -> String {
    let layout = &workload.whole;
    let bytes = workload.bytes();
    let mut text =
        "cluster,bytes,dtype,tensors,devices,servers,scheme,radix,seconds,ratio,pipelined_seconds,\
                    pipelined_ratio,bytes_between_servers\n"
            .to_owned();
    for row in rows {
        let radix = row.radix_text();
        let _ = writeln!(
            text,
            "{},{bytes},{},{},{},{},\"{}\",{radix},{},{},{},{},{}",
            cluster.machine.name,
            layout.dtype().name(),
            layout.tensors().len(),
            row.devices,
            row.servers,
            row.scheme,
            row.seconds,
            row.ratio,
            row.pipelined_seconds,
            row.pipelined_ratio,
            row.bytes_between_servers
        );
    }
    text
}

fn json(cluster: &Cluster, workload: &Workload, rows: &[Row]) -> Result<String> {
    let layout = &workload.whole;
    let value = serde_json::json!({
        "schema": "adasum.simulate/1",
        "cluster": cluster.machine.name,
        "bytes": workload.bytes(),
        "dtype": layout.dtype().name(),
        "tensors": layout.tensors().len(),
        "buckets": workload.buckets.len(),
        "pipeline_depth": workload.depth,
        "rows": rows,
    });
    Ok(io::json(&value)? + "\n")
}

/// Ratios over the number of devices. Flat schemes are many times slower and would flatten the rest.
fn chart(cluster: &Cluster, workload: &Workload, rows: &[Row]) -> Chart {
    let line = |name: &str, scheme: &str, ratio: fn(&Row) -> f64| Series {
        name: name.to_owned(),
        points: rows
            .iter()
            .filter(|row| row.scheme == scheme)
            .map(|row| (f64::from(row.devices), ratio(row)))
            .collect(),
    };
    let bytes = text::bytes(workload.bytes());
    Chart {
        name: "simulate".to_owned(),
        title: format!(
            "{} on {}: time against all-reduce",
            bytes, cluster.machine.name
        ),
        x: "devices".to_owned(),
        y: "ratio to hierarchical all-reduce".to_owned(),
        doubling: true,
        series: vec![
            line("AdaSum, auto", AUTO, |row| row.ratio),
            line("auto, pipelined", AUTO, |row| row.pipelined_ratio),
            line("AdaSum, radix 2", "AdaSum, radix 2", |row| row.ratio),
            line("MindSpore's scheme", Formula::MindSpore.name(), |row| {
                row.ratio
            }),
        ],
        ..Chart::default()
    }
}

fn depth(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(depth) if (1..=64).contains(&depth) => Ok(depth),
        _ => Err("must be a number from 1 to 64".to_owned()),
    }
}
