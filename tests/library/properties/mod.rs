//! What the reducers must have whatever the gradients are: exact properties bit for bit, the others within rounding.
//!
//! The ranks of a world wait for jobs, so that one world serves all of a property's cases and their shrinking.

mod exact;
mod identities;
mod reducers;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::support::oracle::norm;
use crate::support::{in_world, reduce, specs};
use adasum::reduce::{GradientReducer, Options, World};

/// What every rank does for a case.
type Job = Arc<dyn Fn(&World) -> Outcome + Send + Sync>;

type Outcome = Vec<Vec<f32>>;

/// The ranks of a world that waits for jobs.
struct Ranks {
    jobs: Vec<Sender<Job>>,
    outcomes: Vec<Receiver<Outcome>>,
}

impl Ranks {
    /// What each rank makes of a job.
    fn run_each(&self, job: impl Fn(&World) -> Outcome + Send + Sync + 'static) -> Vec<Outcome> {
        let job: Job = Arc::new(job);
        for rank in &self.jobs {
            rank.send(Arc::clone(&job)).unwrap();
        }
        let outcomes = self.outcomes.iter();
        outcomes
            .map(|rank| rank.recv().expect("a rank failed"))
            .collect()
    }

    /// What all ranks make of a job: the same bits.
    fn run(&self, job: impl Fn(&World) -> Outcome + Send + Sync + 'static) -> Outcome {
        let mut outcomes = self.run_each(job);
        for (rank, outcome) in outcomes.iter().enumerate() {
            assert!(
                bits(outcome) == bits(&outcomes[0]),
                "rank {rank} differs from rank 0"
            );
        }
        outcomes.swap_remove(0)
    }

    /// A reduction of each rank's tensors.
    fn reduce_all(&self, inputs: Vec<Vec<Vec<f32>>>, options: &Options) -> Outcome {
        assert_eq!(inputs.len(), self.jobs.len());
        let options = options.clone();
        self.run(move |world| {
            let inputs = &inputs[world.rank() as usize];
            let counts: Vec<usize> = inputs.iter().map(Vec::len).collect();
            let mut reducer = GradientReducer::new(world, &specs(&counts), &options).unwrap();
            reduce(&mut reducer, world, inputs).0
        })
    }

    /// The same of one tensor.
    fn reduce(&self, inputs: &[Vec<f32>]) -> Vec<f32> {
        self.reduce_by(inputs, 2)
    }

    fn reduce_by(&self, inputs: &[Vec<f32>], radix: u32) -> Vec<f32> {
        let inputs = inputs.iter().map(|rank| vec![rank.clone()]).collect();
        let options = Options {
            radix,
            ..Options::default()
        };
        self.reduce_all(inputs, &options).remove(0)
    }
}

fn bits(outcome: &Outcome) -> Vec<u32> {
    outcome.iter().flatten().map(|x| x.to_bits()).collect()
}

/// Runs `body` beside a world of `size` ranks, each a server.
fn with_ranks(size: u32, body: impl FnOnce(&Ranks)) {
    with_servers(size, 1, body);
}

/// Runs `body` beside a world of `servers` x `locals` ranks.
fn with_servers(servers: u32, locals: u32, body: impl FnOnce(&Ranks)) {
    let size = servers * locals;
    let (jobs, receive): (Vec<_>, Vec<_>) = (0..size).map(|_| channel::<Job>()).unzip();
    let (send, outcomes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel::<Outcome>()).unzip();
    let ends: Vec<_> = receive
        .into_iter()
        .zip(send)
        .map(|ends| Mutex::new(Some(ends)))
        .collect();
    std::thread::scope(|scope| {
        let world = scope.spawn(|| {
            in_world(servers, locals, |world| {
                let (jobs, outcomes) = ends[world.rank() as usize].lock().unwrap().take().unwrap();
                for job in jobs {
                    outcomes.send(job(world)).unwrap();
                }
            })
        });
        let ranks = Ranks { jobs, outcomes };
        body(&ranks);
        drop(ranks);
        world.join().unwrap();
    });
}

/// Checks `property` for some of the strategy's values, shrinking those that fail.
fn holds<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    };
    if let Err(failure) = TestRunner::new(config).run(strategy, property) {
        panic!("{failure}");
    }
}

/// Gradients of `ranks` ranks, all of one length from 1 on.
fn gradients(ranks: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
    (1_usize..300).prop_flat_map(move |len| {
        prop::collection::vec(prop::collection::vec(-4.0_f32..4.0, len), ranks)
    })
}

fn wide(v: &[f32]) -> Vec<f64> {
    v.iter().map(|&x| f64::from(x)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "elements");
    norm(&a.iter().zip(b).map(|(x, y)| x - y).collect::<Vec<_>>())
}

/// Rounding of the result at each level and of the scalars.
fn tolerance(levels: u32, result: f64, inputs: &[Vec<f32>]) -> f64 {
    let unit = 2.0_f64.powi(-24);
    let sum: f64 = inputs.iter().map(|g| norm(&wide(g))).sum();
    f64::from(levels + 1) * unit * result + 4.0 * unit * sum
}

fn scaled(inputs: &[Vec<f32>], factor: f32) -> Vec<Vec<f32>> {
    let scale = |g: &Vec<f32>| g.iter().map(|x| factor * x).collect();
    inputs.iter().map(scale).collect()
}
