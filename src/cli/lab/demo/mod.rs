//! `adasum-run demo`: 16 ranks learn handwritten digits, with AdaSum and with the mean.
//!
//! This side starts the ranks (each is this program again, see `rank.rs`), shows what rank 0 reports and writes down
//! the results.

mod event;
pub(crate) mod rank;
mod result;
mod training;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::cache;
use crate::cli::lab::demo::event::{Event, Reduction};
use crate::cli::lab::demo::result::{Results, Training};
use crate::cli::lab::demo::training::Trainer;
use crate::cli::launch::event::Pipe;
use crate::cli::launch::job::{self, End, Limits, Observer, Rank, prefixed};
use crate::cli::launch::ranks::{backend, own_program};
use crate::cli::{io, report};
use crate::error::{Error, ErrorKind, Result};
use crate::topo::RankTable;

/// The tutorial's table: 2 servers of 8 devices.
const TABLE_NAME: &str = "rank_table_16pcs.json";
const TABLE: &[u8] = include_bytes!("../../../../examples/rank_tables/rank_table_16pcs.json");

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Passes over the training images
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = epochs)]
    epochs: usize,
    /// Train with one reduction only [default: adasum, then mean on the same schedule]
    #[arg(long)]
    reduction: Option<Reduction>,
    /// Write a report into this folder: index.html, report.json, and loss, accuracy, cosine and gain as SVG and CSV
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print the result as one line of JSON and nothing else on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
///
/// # Errors
/// If the ranks cannot be started or a file cannot be written. A rank that fails is reported at once and is in the `End`.
pub(crate) fn run(args: &Args) -> Result<End> {
    let table = RankTable::read(cache::unpack(&[(TABLE_NAME, TABLE)])?.join(TABLE_NAME))?;
    let backend = backend();
    let reductions = match args.reduction {
        Some(one) => vec![one],
        None => vec![Reduction::Adasum, Reduction::Mean],
    };

    // A folder that cannot be made is an error now, not after the training.
    let report = args.report.as_deref();
    let report = report
        .map(|path| report::Folder::prepare(path, 0..table.size(), table.size()))
        .transpose()?;
    let mut view = View::new(args, &table, reductions.len())?;
    view.introduce(&table, &backend)
        .map_err(|error| io::failed("cannot write the output", error))?;
    let limits = Limits {
        // Far more than it takes, so that nothing can hang for ever.
        timeout: Some(Duration::from_secs(600 + 60 * args.epochs as u64)),
        ..Limits::default()
    };
    let ranks = ranks(&table, args.epochs, &reductions, report.as_ref())?;
    let end = job::run(ranks, table.size(), &limits, &mut view)?;
    view.bar.finish_and_clear();
    if end != End::Success {
        return Ok(end);
    }
    conclude(
        args,
        &table,
        &backend,
        reductions.len(),
        &view.trainings,
        report.as_ref(),
    )?;
    Ok(end)
}

/// The ranks, each this program again.
fn ranks(
    table: &RankTable,
    epochs: usize,
    reductions: &[Reduction],
    report: Option<&report::Folder>,
) -> Result<Vec<Rank>> {
    own_program(table, |_, command| {
        command.args(["demo-rank", "--epochs", &epochs.to_string()]);
        for reduction in reductions {
            command.args(["--reduction", reduction.name()]);
        }
        command.envs(report.map(report::Folder::variable));
    })
}

/// Writes the results where they were asked for.
fn conclude(
    args: &Args,
    table: &RankTable,
    backend: &str,
    due: usize,
    trainings: &[Training],
    report: Option<&report::Folder>,
) -> Result<()> {
    let complete = |training: &&Training| training.loss.len() == args.epochs;
    if trainings.iter().filter(complete).count() != due {
        let message = "the ranks ended without reporting a result";
        return Err(Error::new(ErrorKind::InvalidState, message));
    }
    let results = Results {
        ranks: table.size(),
        servers: table.servers().len(),
        backend,
        trainings,
    };
    if let Some(folder) = report {
        results.write(folder)?;
        if !args.json {
            io::notice(&format!(
                "report: {}",
                folder.path().join("index.html").display()
            ));
        }
    }
    io::print(&match args.json {
        true => results.json()?,
        false => format!("\n{}\n", results.table()),
    })
}

/// Shows the training while it runs and keeps what rank 0 reports.
struct View {
    json: bool,
    bar: ProgressBar,
    ranks: u32,
    epochs: usize,
    /// Bytes of the gradients of a step on each rank.
    bytes: u64,
    trainings: Vec<Training>,
}

impl View {
    fn new(args: &Args, table: &RankTable, trainings: usize) -> Result<View> {
        let trainer = Trainer::new(0, table.size() as usize, args.epochs)?;
        let steps = trainer.steps();
        let elements: usize = trainer.gradients.iter().map(Vec::len).sum();
        let bar = ProgressBar::new((trainings * args.epochs * steps) as u64);
        let template = "{msg} {wide_bar} {pos}/{len} steps, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Ok(View {
            json: args.json,
            bar,
            ranks: table.size(),
            epochs: args.epochs,
            bytes: (elements * size_of::<f32>()) as u64,
            trainings: Vec::new(),
        })
    }

    fn introduce(&self, table: &RankTable, backend: &str) -> std::io::Result<()> {
        let servers = table.servers();
        let place = match backend {
            "mock" => ", simulated on this machine",
            _ => "",
        };
        self.say(&format!(
            "{} ranks on {} servers{place}, learning handwritten digits",
            table.size(),
            servers.len()
        ))
    }

    /// A line for a person, above the progress bar.
    fn say(&self, text: &str) -> std::io::Result<()> {
        match self.json {
            true => Ok(()),
            false => self.bar.suspend(|| writeln!(std::io::stdout(), "{text}")),
        }
    }

    /// Sets the text before the progress bar.
    fn message(&self) {
        let Some(training) = self.trainings.last() else {
            return;
        };
        let (name, epoch) = (training.reduction.name(), training.loss.len() + 1);
        let reduced = HumanBytes(self.bar.position() * self.bytes);
        self.bar.set_message(format!(
            "{} ranks, {name}, epoch {}/{}, {reduced}",
            self.ranks,
            epoch.min(self.epochs),
            self.epochs
        ));
    }

    fn show(&mut self, event: Event) -> std::io::Result<()> {
        match (event, self.trainings.last_mut()) {
            (Event::Start { reduction }, _) => {
                let name = reduction.name();
                self.trainings.push(Training {
                    reduction,
                    loss: Vec::new(),
                    accuracy: 0.0,
                    seconds: 0.0,
                });
                self.message();
                self.say(&format!(
                    "\n============== Starting Training ({name}) =============="
                ))
            }
            (Event::Step, _) => {
                self.bar.inc(1);
                self.message();
                Ok(())
            }
            (Event::Epoch { epoch, steps, loss }, Some(training)) => {
                training.loss.push(loss);
                self.say(&format!("epoch: {epoch} step: {steps} loss is {loss}"))
            }
            (Event::Done { accuracy, seconds }, Some(training)) => {
                (training.accuracy, training.seconds) = (accuracy, seconds);
                let percent = 100.0 * accuracy;
                self.say(&format!("accuracy on held-back digits: {percent:.1} %"))
            }
            // Rank 0 says first what it trains.
            (_, None) => Ok(()),
        }
    }
}

impl Observer for View {
    fn line(&mut self, rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        if pipe == Pipe::Out
            && let Some(event) = Event::parse(line)
        {
            return self.show(event);
        }
        let whole = prefixed(rank, line);
        // A closed standard error is no fault.
        let _ = self
            .bar
            .suspend(|| std::io::stderr().lock().write_all(&whole));
        Ok(())
    }

    fn notice(&mut self, text: &str) {
        self.bar.suspend(|| io::notice(text));
    }
}

fn epochs(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(epochs) if (1..=1000).contains(&epochs) => Ok(epochs),
        _ => Err("must be a number from 1 to 1000".to_owned()),
    }
}
