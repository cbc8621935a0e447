//! Worlds of some ranks, and tensors in parts.

use super::{COUNTS, PATIENCE, assert_adasum, gradients, reduced, upload, wide};
use crate::support::in_world;
use crate::support::oracle;
use adasum::ErrorKind;
use adasum::reduce::{DType, GradientReducer, InServer, Options, TensorSpec};

#[test]
fn stages_of_a_pipeline_reduce_side_by_side() {
    let stages = [(vec![0, 1, 2, 3], 2), (vec![4, 5, 6, 7], 1)];
    let outs = in_world(2, 4, |world| {
        let (ranks, locals) = stages
            .iter()
            .find(|(ranks, _)| ranks.contains(&world.rank()))
            .unwrap();
        let stage = world.part(ranks, *locals).unwrap();
        assert_eq!(stage.size(), 4);
        assert_eq!(stage.locals(), *locals);
        assert_eq!(ranks[stage.rank() as usize], world.rank());
        let own = gradients(world.rank());
        let out = reduced(&stage, &own, &Options::default());
        // The same ranks once more, and a part of a part.
        let again = world.part(ranks, *locals).unwrap();
        assert_eq!(out, reduced(&again, &own, &Options::default()));
        let pair = [stage.rank() / 2 * 2, stage.rank() / 2 * 2 + 1];
        let half = stage.part(&pair, 1).unwrap();
        let small = reduced(&half, &own, &Options::default());
        // The world that they are parts of still works.
        reduced(world, &own, &Options::default());
        (out, small)
    });
    for (ranks, locals) in &stages {
        let inputs: Vec<_> = ranks.iter().map(|&rank| gradients(rank)).collect();
        for (index, &rank) in ranks.iter().enumerate() {
            let (out, small) = &outs[rank as usize];
            assert_eq!(*out, outs[ranks[0] as usize].0, "rank {rank}");
            assert_adasum(out, &inputs, *locals as usize, &format!("{ranks:?}"));
            let first = index / 2 * 2;
            assert_adasum(small, &inputs[first..first + 2], 1, "half a stage");
        }
    }
}

#[test]
fn wrong_parts_are_refused_by_name() {
    in_world(2, 2, |world| {
        let refused = |ranks: &[u32], locals| {
            let error = world.part(ranks, locals).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(&format!("{ranks:?}")), "{error}");
        };
        refused(&[], 1);
        refused(&[1, 0, 2, 3], 1);
        refused(&[0, 1, 2, 4], 1);
        refused(&[(world.rank() + 1) % 4], 1);
        refused(&[0, 1, 2, 3], 3);
        refused(&[0, 1, 2, 3], 0);
    });
}

/// Messages name ranks of the world: those of a part are numbered from 0.
#[test]
fn ranks_of_a_part_have_their_numbers_of_the_world_in_messages() {
    in_world(4, 1, |world| {
        if world.rank() < 2 {
            return;
        }
        let part = world.part(&[2, 3], 1).unwrap();
        let count = 64 * part.rank() as usize + 64;
        let spec = TensorSpec::new("weight", count as u64, DType::F32);
        let reducer = GradientReducer::new(&part, &[spec], &Options::default());
        let error = reducer.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        let text = error.to_string();
        for side in ["ranks [2] have", "ranks [3] have"] {
            assert!(text.contains(side), "{text}");
        }
        // What one rank has otherwise than the others is its own.
        let spec = TensorSpec::new("weight", 64, DType::F32);
        let reducer = GradientReducer::new(&part, &[spec], &Options::default()).unwrap();
        let results = upload(world.device(), &[vec![part.rank() as f32; 64]], DType::F32);
        let error = reducer.compare(&results, PATIENCE).unwrap_err().to_string();
        assert!(error.contains("the results of ranks [3] differ"), "{error}");
    });
}

/// Each tensor lies in parts on the ranks of a server; its coefficients are those of the whole.
#[test]
fn parts_of_a_tensor_are_reduced_as_one() {
    for (servers, locals) in [(2, 2), (3, 4), (4, 2)] {
        let outs = in_world(servers, locals, |world| {
            let options = Options {
                in_server: InServer::Shards,
                ..Options::default()
            };
            reduced(world, &gradients(world.rank()), &options)
        });
        for t in 0..COUNTS.len() {
            let whole = |parts: &[Vec<Vec<f32>>]| -> Vec<f32> {
                parts.iter().flat_map(|part| part[t].clone()).collect()
            };
            let inputs: Vec<Vec<f64>> = (0..servers)
                .map(|server| {
                    let ranks = server * locals..(server + 1) * locals;
                    wide(&whole(&ranks.map(gradients).collect::<Vec<_>>()))
                })
                .collect();
            let truth = oracle::adasum(&inputs);
            for server in outs.chunks(locals as usize) {
                let error = oracle::error_fp32(&whole(server), &truth, &inputs);
                assert!(error <= 1.0, "{servers} x {locals}, tensor {t}: {error}");
            }
        }
    }
}
