//! Sparse gradients: rows of all ranks.

use crate::support::{get_as, in_world, noise, put_as, rounded};

use adasum::ascend::{Buffer, Device, Span, Stream};
use adasum::reduce::{DType, IndexType, MeanOptions, Rows, SparseReducer, SparseSpec};

/// Row numbers and rows of a rank: each says where it comes from.
fn rows_of(rank: u32, rows: u64, width: u64) -> (Vec<i32>, Vec<f32>) {
    let numbers = (0..rows).map(|row| (1000 * rank + row as u32) as i32);
    let values = (0..rows * width).map(|i| noise(&[u64::from(rank), i]));
    (numbers.collect(), values.collect())
}

fn put_rows(device: &Device, index: IndexType, numbers: &[i32]) -> Span {
    let words: Vec<u32> = match index {
        IndexType::I32 => numbers.iter().map(|&x| x as u32).collect(),
        IndexType::I64 => numbers.iter().flat_map(|&x| [x as u32, 0]).collect(),
    };
    let buffer = Buffer::new(device, (4 * words.len()).max(64)).unwrap();
    let span = buffer.span().slice(0..4 * words.len()).unwrap();
    span.write(&words).unwrap();
    span
}

fn get_rows(span: &Span, index: IndexType) -> Vec<i32> {
    let mut words = vec![0_u32; span.len() / 4];
    span.read(&mut words).unwrap();
    let step = match index {
        IndexType::I32 => 1,
        IndexType::I64 => 2,
    };
    words.iter().step_by(step).map(|&x| x as i32).collect()
}

#[test]
fn rows_of_all_ranks_come_one_after_the_other() {
    // The numbers of rows of four ranks in each call; the first only for ranks that agreed on 3.
    let calls: [(Rows, &[[u64; 4]]); 2] = [
        (Rows::Exactly(3), &[[3; 4], [3; 4]]),
        (
            Rows::UpTo(2000),
            &[[0, 1, 2000, 7], [0; 4], [5; 4], [1, 0, 0, 0]],
        ),
    ];
    for (rows, calls) in calls {
        for (dtype, index, width) in [
            (DType::F32, IndexType::I32, 5),
            (DType::F16, IndexType::I64, 3),
        ] {
            let what = format!("{rows:?} {dtype:?}");
            in_world(2, 2, |world| {
                let spec = SparseSpec {
                    name: "embedding".to_owned(),
                    width,
                    dtype,
                    index,
                    rows,
                };
                let mut reducer =
                    SparseReducer::new(world, &spec, &MeanOptions::default()).unwrap();
                let stream = Stream::new(world.device()).unwrap();
                for counts in calls {
                    let (numbers, values) =
                        rows_of(world.rank(), counts[world.rank() as usize], width);
                    let indices = put_rows(world.device(), index, &numbers);
                    let values = put_as(world.device(), &values, dtype);
                    let all = reducer.reduce(&indices, &values, &stream).unwrap();
                    stream.synchronize().unwrap();
                    let mut expected = (Vec::new(), Vec::new());
                    for (rank, &count) in (0..).zip(counts) {
                        let (numbers, values) = rows_of(rank, count, width);
                        expected.0.extend(numbers);
                        let quarter = |x: f32| rounded(rounded(x, dtype) * 0.25, dtype);
                        expected.1.extend(values.into_iter().map(quarter));
                    }
                    assert_eq!(all.rows, counts.iter().sum::<u64>(), "{what}");
                    assert_eq!(get_rows(&all.indices, index), expected.0, "{what}");
                    assert_eq!(get_as(&all.values, dtype), expected.1, "{what}");
                }
                let (numbers, values) = rows_of(0, 2001, width);
                let indices = put_rows(world.device(), index, &numbers);
                let values = put_as(world.device(), &values, dtype);
                let error = reducer.reduce(&indices, &values, &stream).unwrap_err();
                assert!(error.to_string().contains("2001 rows"), "{error}");
                let error = reducer
                    .reduce(&indices, &values.slice(0..4).unwrap(), &stream)
                    .unwrap_err();
                assert!(error.to_string().contains("same number of rows"), "{error}");
                let other = Device::open((world.device().id() + 1) % 4).unwrap();
                let elsewhere = put_rows(&other, index, &numbers);
                let error = reducer.reduce(&elsewhere, &values, &stream).unwrap_err();
                assert!(
                    error
                        .to_string()
                        .contains("the span of indices belongs to device"),
                    "{error}"
                );
            });
        }
    }
}
