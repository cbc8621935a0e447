//! What AdaSum must have whatever the gradients are: exact properties bit for bit, the others within rounding.
//!
//! The ranks of a world wait for cases, so that one world serves all of a property's cases and their shrinking.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::oracle::{self, norm};
use crate::support::{in_world, reduce, specs};
use adasum::reduce::{GradientReducer, Options};

/// One reduction: tensors by rank, and the radix.
#[derive(Clone)]
struct Case {
    inputs: Arc<Vec<Vec<Vec<f32>>>>,
    radix: u32,
}

type Outcome = Vec<Vec<f32>>;

/// The ranks of a world that waits for cases.
struct Ranks {
    cases: Vec<Sender<Case>>,
    outcomes: Vec<Receiver<Outcome>>,
}

impl Ranks {
    /// The result of a reduction; all ranks must have the same bits.
    fn reduce_all(&self, inputs: Vec<Vec<Vec<f32>>>, radix: u32) -> Outcome {
        assert_eq!(inputs.len(), self.cases.len());
        let inputs = Arc::new(inputs);
        for rank in &self.cases {
            let inputs = Arc::clone(&inputs);
            rank.send(Case { inputs, radix }).unwrap();
        }
        let mut outcomes: Vec<Outcome> = self
            .outcomes
            .iter()
            .map(|rank| rank.recv().expect("a rank failed"))
            .collect();
        for (rank, outcome) in outcomes.iter().enumerate() {
            assert!(
                bits(outcome) == bits(&outcomes[0]),
                "rank {rank} differs from rank 0"
            );
        }
        outcomes.swap_remove(0)
    }

    /// The same of one tensor.
    fn reduce(&self, inputs: &[Vec<f32>]) -> Vec<f32> {
        self.reduce_by(inputs, 2)
    }

    fn reduce_by(&self, inputs: &[Vec<f32>], radix: u32) -> Vec<f32> {
        let inputs = inputs.iter().map(|rank| vec![rank.clone()]).collect();
        self.reduce_all(inputs, radix).remove(0)
    }
}

fn bits(outcome: &Outcome) -> Vec<u32> {
    outcome.iter().flatten().map(|x| x.to_bits()).collect()
}

/// Runs `body` beside a world of `size` ranks.
fn with_ranks(size: u32, body: impl FnOnce(&Ranks)) {
    let (cases, receive): (Vec<_>, Vec<_>) = (0..size).map(|_| channel::<Case>()).unzip();
    let (send, outcomes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel::<Outcome>()).unzip();
    let ends: Vec<_> = receive
        .into_iter()
        .zip(send)
        .map(|ends| Mutex::new(Some(ends)))
        .collect();
    std::thread::scope(|scope| {
        let world = scope.spawn(|| {
            in_world(size, 1, |world| {
                let (cases, outcomes) = ends[world.rank() as usize].lock().unwrap().take().unwrap();
                for case in cases {
                    let inputs = &case.inputs[world.rank() as usize];
                    let counts: Vec<usize> = inputs.iter().map(Vec::len).collect();
                    let options = Options {
                        radix: case.radix,
                        ..Options::default()
                    };
                    let mut reducer =
                        GradientReducer::new(world, &specs(&counts), &options).unwrap();
                    let result = reduce(&mut reducer, world, inputs).0;
                    drop(reducer);
                    outcomes.send(result).unwrap();
                }
            })
        });
        let ranks = Ranks { cases, outcomes };
        body(&ranks);
        drop(ranks);
        world.join().unwrap();
    });
}

/// Checks `property` for some of the strategy's values, shrinking those that fail.
fn holds<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: 24,
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

#[test]
fn powers_of_two_and_signs_come_through_exactly() {
    for ranks in [2, 3, 4] {
        with_ranks(ranks, |world| {
            let cases = (gradients(ranks as usize), -40_i32..40, any::<bool>());
            holds(&cases, |(inputs, exponent, negative)| {
                let sign = if negative { -1.0 } else { 1.0 };
                let factor = sign * 2.0_f32.powi(exponent);
                let expected = scaled(&[world.reduce(&inputs)], factor).remove(0);
                // Numerically: a zero may have either sign.
                prop_assert_eq!(world.reduce(&scaled(&inputs, factor)), expected);
                Ok(())
            });
        });
    }
}

#[test]
fn a_zero_is_the_identity_and_runs_repeat() {
    with_ranks(4, |world| {
        let cases = (
            gradients(1),
            0_usize..4,
            prop_oneof![Just(0.0_f32), Just(-0.0)],
        );
        holds(&cases, |(mut one, place, zero)| {
            let g = one.remove(0);
            let mut inputs = vec![vec![zero; g.len()]; 4];
            prop_assert!(world.reduce(&inputs).iter().all(|&x| x == 0.0));
            inputs[place].clone_from(&g);
            prop_assert_eq!(world.reduce(&inputs), g.clone());
            prop_assert_eq!(world.reduce_by(&inputs, 4), g);
            Ok(())
        });
        holds(&gradients(4), |inputs| {
            let first = world.reduce(&inputs);
            let second = world.reduce(&inputs);
            prop_assert_eq!(bits(&vec![first]), bits(&vec![second]));
            Ok(())
        });
        holds(&gradients(1), |one| {
            let inputs = vec![one[0].clone(); 4];
            prop_assert_eq!(bits(&vec![world.reduce(&inputs)]), bits(&one));
            prop_assert_eq!(bits(&vec![world.reduce_by(&inputs, 4)]), bits(&one));
            Ok(())
        });
    });
}

/// Tensors that share a buffer do not see each other: at most one ulp of the largest element.
#[test]
fn tensors_are_reduced_each_for_itself() {
    with_ranks(3, |world| {
        let lists = prop::collection::vec(gradients(3), 1..5);
        holds(&lists, |tensors| {
            let together: Vec<Vec<Vec<f32>>> = (0..3)
                .map(|rank| tensors.iter().map(|tensor| tensor[rank].clone()).collect())
                .collect();
            let all = world.reduce_all(together, 2);
            for (tensor, out) in tensors.iter().zip(&all) {
                let alone = world.reduce(tensor);
                let largest = out.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
                let ulp = largest * f32::EPSILON;
                prop_assert!(out.iter().zip(&alone).all(|(x, y)| (x - y).abs() <= ulp));
            }
            Ok(())
        });
    });
}

#[test]
fn a_pair_keeps_the_identities() {
    with_ranks(2, |world| {
        holds(&gradients(2), |inputs| {
            let r = wide(&world.reduce(&inputs));
            let (g, h) = (wide(&inputs[0]), wide(&inputs[1]));
            let (a, b) = (norm(&g), norm(&h));
            prop_assume!(a > 1e-3 && b > 1e-3);
            let cosine = dot(&g, &h) / (a * b);
            let size = norm(&r);
            let allowed = tolerance(1, size, &inputs);
            // The norm of the result, its bounds, its products with the inputs.
            let square =
                (a * a + b * b) * (1.0 - 0.75 * cosine * cosine) + a * b * cosine.powi(3) / 2.0;
            prop_assert!((size - square.max(0.0).sqrt()).abs() <= 2.0 * allowed);
            prop_assert!((a - b).abs() / 2.0 - allowed <= size);
            prop_assert!(size <= (a * a + b * b).sqrt() + allowed);
            if cosine >= 0.0 {
                prop_assert!(size + allowed >= (a + b) / 2.0);
            }
            let sum: Vec<f64> = g.iter().zip(&h).map(|(x, y)| x + y).collect();
            let along = (a * a + b * b) * (1.0 - cosine * cosine / 2.0) + a * b * cosine;
            prop_assert!((dot(&r, &sum) - along).abs() <= 2.0 * allowed * norm(&sum) + 1e-9);
            prop_assert!(
                dot(&r, &sum) >= -allowed * norm(&sum),
                "positive with the sum"
            );
            let with_first = a * a * (1.0 - cosine * cosine / 2.0) + a * b * cosine / 2.0;
            prop_assert!((dot(&r, &g) - with_first).abs() <= 2.0 * allowed * a + 1e-9);
            if size > 1e-2 * a.max(b) && norm(&sum) > 1e-2 * a.max(b) {
                let angle = dot(&r, &sum) / (size * norm(&sum));
                prop_assert!(angle >= 0.75_f64.sqrt() - 1e-4, "{}", angle);
            }
            // The two may change places.
            let swapped = wide(&world.reduce(&[inputs[1].clone(), inputs[0].clone()]));
            prop_assert!(distance(&r, &swapped) <= 2.0 * allowed);
            Ok(())
        });
    });
}

#[test]
fn parallel_gives_the_mean_and_orthogonal_the_sum() {
    with_ranks(4, |world| {
        let lengths = prop::collection::vec(0.1_f32..4.0, 4);
        holds(&(gradients(1), lengths), |(one, lengths)| {
            prop_assume!(norm(&wide(&one[0])) > 1e-3);
            let parallel: Vec<Vec<f32>> = lengths
                .iter()
                .map(|length| one[0].iter().map(|x| length * x).collect())
                .collect();
            let views: Vec<&[f32]> = parallel.iter().map(Vec::as_slice).collect();
            let mean = oracle::mean(&views);
            // Rounding makes the inputs only nearly parallel.
            let allowed = tolerance(2, norm(&mean), &parallel);
            for radix in [2, 4] {
                let r = wide(&world.reduce_by(&parallel, radix));
                prop_assert!(distance(&r, &mean) <= allowed);
            }
            // Each rank has elements of its own.
            let disjoint: Vec<Vec<f32>> = (0..4)
                .map(|rank| {
                    let own = |(i, &x): (usize, &f32)| if i % 4 == rank { x } else { 0.0 };
                    one[0].iter().enumerate().map(own).collect()
                })
                .collect();
            for radix in [2, 4] {
                let r = wide(&world.reduce_by(&disjoint, radix));
                prop_assert!(distance(&r, &wide(&one[0])) <= tolerance(2, norm(&r), &disjoint));
            }
            Ok(())
        });
    });
}

/// A reflection of all gradients reflects the result.
#[test]
fn a_rotation_rotates_the_result() {
    with_ranks(2, |world| {
        holds(&gradients(3), |mut inputs| {
            let mirror = wide(&inputs.pop().unwrap());
            prop_assume!(norm(&mirror) > 1e-2);
            let reflect = |v: &[f32]| -> Vec<f64> {
                let v = wide(v);
                let twice = 2.0 * dot(&v, &mirror) / dot(&mirror, &mirror);
                v.iter().zip(&mirror).map(|(x, m)| x - twice * m).collect()
            };
            let reflected: Vec<Vec<f32>> = inputs
                .iter()
                .map(|g| reflect(g).iter().map(|&x| x as f32).collect())
                .collect();
            let expected = reflect(&world.reduce(&inputs));
            let r = wide(&world.reduce(&reflected));
            prop_assert!(distance(&r, &expected) <= 4.0 * tolerance(1, norm(&r), &inputs));
            Ok(())
        });
    });
}

/// One round of the whole Gram matrix, pairs one after the other, and double precision agree.
#[test]
fn all_radices_follow_one_tree() {
    for ranks in [5, 8] {
        with_ranks(ranks, |world| {
            let cases = gradients(ranks as usize);
            holds(&cases, |inputs| {
                let wide_inputs: Vec<Vec<f64>> = inputs.iter().map(|g| wide(g)).collect();
                let truth = oracle::adasum(&wide_inputs);
                for radix in [2, 3, 8] {
                    let out = world.reduce_by(&inputs, radix);
                    let error = oracle::error_fp32(&out, &truth, &wide_inputs);
                    prop_assert!(error <= 1.0, "radix {}: {}", radix, error);
                }
                Ok(())
            });
        });
    }
}

#[test]
fn odd_lengths_and_nothing() {
    with_ranks(3, |world| {
        let inputs: Vec<Vec<Vec<f32>>> = (0..3)
            .map(|rank| {
                let value = (rank + 1) as f32;
                vec![vec![], vec![value], vec![], vec![value; 3], vec![0.0; 1]]
            })
            .collect();
        let out = world.reduce_all(inputs, 2);
        // Parallel: ((1 + 2) / 2 + 3) / 2.
        assert_eq!(out, [vec![], vec![2.25], vec![], vec![2.25; 3], vec![0.0]]);
    });
}
