//! A scripted training through both AdaSum reducers, against the same in double precision.
//!
//! Each rank pulls the weights towards a target of its own, with curvatures that differ from element to element.

use adasum::ErrorKind;
use adasum::ascend::{Span, Stream};
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, GradientReducer, Options, TensorSpec, World,
};

use crate::support::oracle::{self, Bounds};
use crate::support::{get_as, in_world, noise, put_as, rounded};

const COUNTS: [usize; 4] = [1, 7, 300, 5000];
const STEPS: usize = 3;

type Tensors = Vec<Vec<f64>>;

fn initial(dtype: DType) -> Tensors {
    let value = |t: usize, i: usize| f64::from(rounded(noise(&[1, t as u64, i as u64]), dtype));
    let tensors = COUNTS.iter().enumerate();
    tensors
        .map(|(t, &count)| (0..count).map(|i| value(t, i)).collect())
        .collect()
}

/// The gradient of a rank at `weights`.
fn gradients(rank: u32, weights: &Tensors) -> Tensors {
    let value = |t: usize, i: usize, weight: f64| {
        let (t, i) = (t as u64, i as u64);
        let curvature = 1.5 + f64::from(noise(&[2, t, i]));
        let target =
            f64::from(noise(&[3, t, i])) + 2.0 * f64::from(noise(&[4, u64::from(rank), t, i]));
        curvature * (weight - target)
    };
    let tensors = weights.iter().enumerate();
    tensors
        .map(|(t, tensor)| {
            let elements = tensor.iter().enumerate();
            elements.map(|(i, &weight)| value(t, i, weight)).collect()
        })
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Momentum,
    Adam,
}

/// An optimizer and its state, in double precision on both sides: it is the reduction that is tested.
struct Optimizer {
    rule: Rule,
    first: Tensors,
    second: Tensors,
    step: i32,
}

impl Optimizer {
    fn new(rule: Rule) -> Self {
        let zeros: Tensors = COUNTS.iter().map(|&count| vec![0.0; count]).collect();
        Optimizer {
            rule,
            first: zeros.clone(),
            second: zeros,
            step: 0,
        }
    }

    fn step(&mut self, weights: &mut Tensors, gradients: &Tensors) {
        self.step += 1;
        for t in 0..weights.len() {
            for i in 0..weights[t].len() {
                let g = gradients[t][i];
                let (m, v) = (&mut self.first[t][i], &mut self.second[t][i]);
                weights[t][i] -= match self.rule {
                    Rule::Momentum => {
                        *m = 0.9 * *m + g;
                        0.05 * *m
                    }
                    Rule::Adam => {
                        *m = 0.9 * *m + 0.1 * g;
                        *v = 0.999 * *v + 0.001 * g * g;
                        let first = *m / (1.0 - 0.9_f64.powi(self.step));
                        let second = *v / (1.0 - 0.999_f64.powi(self.step));
                        0.05 * first / (second.sqrt() + 1e-8)
                    }
                };
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum System {
    Gradient,
    Delta(DeltaForm),
}

/// The training that the reducers should do, with nothing rounded.
fn truth(system: System, rule: Rule, servers: u32, locals: u32, dtype: DType) -> Tensors {
    let ranks = servers * locals;
    let mut weights = initial(dtype);
    let mut optimizers: Vec<Optimizer> = (0..ranks).map(|_| Optimizer::new(rule)).collect();
    let by_server = |of_ranks: &[Tensors]| -> Vec<Tensors> {
        of_ranks.chunks(locals as usize).map(mean).collect()
    };
    for _ in 0..STEPS {
        let own: Vec<Tensors> = (0..ranks).map(|rank| gradients(rank, &weights)).collect();
        let means = by_server(&own);
        if system == System::Gradient {
            optimizers[0].step(&mut weights, &adasum(&means));
            continue;
        }
        let stepped = (0..ranks as usize).map(|rank| {
            let mut new = weights.clone();
            let gradients = match system {
                System::Delta(DeltaForm::Local) => &own[rank],
                _ => &means[rank / locals as usize],
            };
            optimizers[rank].step(&mut new, gradients);
            combine(&weights, &new, |old, new| old - new)
        });
        let deltas: Vec<Tensors> = stepped.collect();
        weights = combine(&weights, &adasum(&by_server(&deltas)), |old, delta| {
            old - delta
        });
    }
    weights
}

fn combine(a: &Tensors, b: &Tensors, f: impl Fn(f64, f64) -> f64) -> Tensors {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect())
        .collect()
}

fn mean(ranks: &[Tensors]) -> Tensors {
    let mut sum = ranks[0].clone();
    for rank in &ranks[1..] {
        sum = combine(&sum, rank, |a, b| a + b);
    }
    combine(&sum, &sum, |sum, _| sum / ranks.len() as f64)
}

fn adasum(servers: &[Tensors]) -> Tensors {
    (0..servers[0].len())
        .map(|t| oracle::adasum(&servers.iter().map(|s| s[t].clone()).collect::<Vec<_>>()))
        .collect()
}

/// Weights and gradients of one rank on the device.
struct Device {
    weights: Vec<Span>,
    gradients: Vec<Span>,
    dtype: DType,
    stream: Stream,
}

impl Device {
    fn new(world: &World, dtype: DType) -> Self {
        let put = |tensors: &Tensors| -> Vec<Span> {
            let narrow = |tensor: &Vec<f64>| tensor.iter().map(|&x| x as f32).collect::<Vec<_>>();
            tensors
                .iter()
                .map(|tensor| put_as(world.device(), &narrow(tensor), dtype))
                .collect()
        };
        let weights = initial(dtype);
        Device {
            weights: put(&weights),
            gradients: put(&weights),
            dtype,
            stream: Stream::new(world.device()).unwrap(),
        }
    }

    fn get(&self, spans: &[Span]) -> Tensors {
        let wide = |span| {
            get_as(span, self.dtype)
                .into_iter()
                .map(f64::from)
                .collect()
        };
        spans.iter().map(wide).collect()
    }

    fn set(&self, spans: &[Span], tensors: &Tensors) {
        for (span, tensor) in spans.iter().zip(tensors) {
            let values: Vec<f32> = tensor.iter().map(|&x| x as f32).collect();
            let made = put_as(span.device(), &values, self.dtype);
            self.stream.copy(span, &made).unwrap();
        }
        self.stream.synchronize().unwrap();
    }

    fn optimize(&self, optimizer: &mut Optimizer) {
        self.stream.synchronize().unwrap();
        let mut weights = self.get(&self.weights);
        optimizer.step(&mut weights, &self.get(&self.gradients));
        self.set(&self.weights, &weights);
    }
}

fn specs(dtype: DType) -> Vec<TensorSpec> {
    let counts = COUNTS.iter().enumerate();
    counts
        .map(|(t, &count)| TensorSpec::new(format!("t{t}"), count as u64, dtype))
        .collect()
}

/// The same training on one rank of a world: the weights at its end.
fn train(world: &World, system: System, rule: Rule, dtype: DType) -> Tensors {
    let device = Device::new(world, dtype);
    let mut optimizer = Optimizer::new(rule);
    let mut step: Box<dyn FnMut(&mut Optimizer)> = match system {
        System::Gradient => {
            let mut reducer =
                GradientReducer::new(world, &specs(dtype), &Options::default()).unwrap();
            let device = &device;
            Box::new(move |optimizer| {
                reducer.reduce(&device.gradients, &device.stream).unwrap();
                device.optimize(optimizer);
            })
        }
        System::Delta(form) => {
            let mut reducer =
                DeltaWeightReducer::new(world, &specs(dtype), form, &Options::default()).unwrap();
            let device = &device;
            Box::new(move |optimizer| {
                let (gradients, weights) = (&device.gradients, &device.weights);
                reducer.begin(gradients, weights, &device.stream).unwrap();
                device.optimize(optimizer);
                reducer.end(weights, &device.stream).unwrap();
                device.stream.synchronize().unwrap();
            })
        }
    };
    for _ in 0..STEPS {
        let own = gradients(world.rank(), &device.get(&device.weights));
        device.set(&device.gradients, &own);
        step(&mut optimizer);
    }
    drop(step);
    device.get(&device.weights)
}

fn against_truth(system: System, rule: Rule, shape: [u32; 2], dtype: DType, bounds: Bounds) {
    let [servers, locals] = shape;
    let outs = in_world(servers, locals, |world| train(world, system, rule, dtype));
    let truth = truth(system, rule, servers, locals, dtype);
    let start = initial(dtype);
    let at = format!("{system:?}, {rule:?}, {shape:?}, {dtype:?}");
    for (rank, out) in outs.iter().enumerate() {
        assert!(*out == outs[0], "{at}: rank {rank} differs from rank 0");
    }
    for (t, truth) in truth.iter().enumerate() {
        let out: Vec<f32> = outs[0][t].iter().map(|&x| x as f32).collect();
        let error = oracle::error(&out, truth, &[start[t].clone()], bounds);
        assert!(error <= 1.0, "{at}: tensor {t} has {error} times the error");
        // The training went somewhere, far more than the bound.
        let moved: Vec<f64> = truth.iter().zip(&start[t]).map(|(a, b)| a - b).collect();
        assert!(
            oracle::norm(&moved) > 20.0 * bounds.1 * oracle::norm(truth),
            "{at}"
        );
    }
}

const SYSTEMS: [System; 3] = [
    System::Gradient,
    System::Delta(DeltaForm::ServerMean),
    System::Delta(DeltaForm::Local),
];

#[test]
fn three_steps_of_16_ranks_are_those_of_double_precision() {
    for system in SYSTEMS {
        for rule in [Rule::Momentum, Rule::Adam] {
            against_truth(system, rule, [2, 8], DType::F32, oracle::FP32);
        }
    }
}

#[test]
fn three_steps_of_other_worlds() {
    for (system, shape) in SYSTEMS.into_iter().zip([[4, 1], [3, 2], [5, 1]]) {
        against_truth(system, Rule::Momentum, shape, DType::F32, oracle::FP32);
    }
}

/// 16-bit weights: each step rounds them once more than nothing does.
#[test]
fn weights_of_16_bits_train_by_deltas() {
    for (dtype, bounds) in [(DType::F16, oracle::FP16), (DType::BF16, oracle::BF16)] {
        for form in [DeltaForm::ServerMean, DeltaForm::Local] {
            against_truth(System::Delta(form), Rule::Momentum, [2, 2], dtype, bounds);
        }
    }
}

/// The optimizer undone: a delta of zero leaves every bit of the weights as it was.
#[test]
fn no_step_is_no_change() {
    in_world(2, 2, |world| {
        let device = Device::new(world, DType::F16);
        let mut reducer = DeltaWeightReducer::new(
            world,
            &specs(DType::F16),
            DeltaForm::ServerMean,
            &Options::default(),
        )
        .unwrap();
        let before = device.get(&device.weights);
        reducer
            .begin(&device.gradients, &device.weights, &device.stream)
            .unwrap();
        reducer.end(&device.weights, &device.stream).unwrap();
        device.stream.synchronize().unwrap();
        assert_eq!(before, device.get(&device.weights));
    });
}

#[test]
fn calls_out_of_order_are_refused_and_reset_gives_a_step_up() {
    in_world(2, 1, |world| {
        let device = Device::new(world, DType::F32);
        let (gradients, weights, stream) = (&device.gradients, &device.weights, &device.stream);
        let form = DeltaForm::ServerMean;
        let mut reducer =
            DeltaWeightReducer::new(world, &specs(DType::F32), form, &Options::default()).unwrap();

        let error = reducer.end(weights, stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.to_string().contains("end without begin"), "{error}");

        reducer.begin(gradients, weights, stream).unwrap();
        let error = reducer.begin(gradients, weights, stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.to_string().contains("begin while"), "{error}");

        // Wrong spans are refused and leave the step open.
        let error = reducer.end(&weights[1..], stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.to_string().contains("3 weights were given"),
            "{error}"
        );

        // Other weights are loaded: the step is given up, the next one starts from them.
        let loaded: Tensors = COUNTS.iter().map(|&count| vec![0.25; count]).collect();
        device.set(weights, &loaded);
        reducer.reset();
        reducer.reset();
        reducer.begin(gradients, weights, stream).unwrap();
        reducer.end(weights, stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(device.get(weights), loaded);
    });
}

/// A peer that is gone: the step fails where it is awaited, it does not leave wrong weights behind a success.
#[test]
fn a_peer_that_leaves_fails_the_step() {
    let errors = in_world(2, 1, |world| {
        let device = Device::new(world, DType::F32);
        let form = DeltaForm::Local;
        let mut reducer =
            DeltaWeightReducer::new(world, &specs(DType::F32), form, &Options::default()).unwrap();
        if world.rank() == 1 {
            return None;
        }
        let stream = &device.stream;
        let step = (|| {
            reducer.begin(&[], &device.weights, stream)?;
            reducer.end(&device.weights, stream)?;
            stream.synchronize()
        })();
        Some(step.expect_err("rank 1 is gone"))
    });
    let error = errors[0].as_ref().unwrap();
    assert!(error.vendor_code().is_some(), "{error}");
}
