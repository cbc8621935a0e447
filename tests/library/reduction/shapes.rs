//! Numbers of servers and ranks, radices and 16-bit types against the oracle.

use super::{Setup, against_oracle, pairwise};
use adasum::reduce::DType;

#[test]
fn two_servers_of_1() {
    pairwise(2, 1);
}

#[test]
fn two_servers_of_2() {
    pairwise(2, 2);
}

#[test]
fn two_servers_of_8() {
    pairwise(2, 8);
}

#[test]
fn four_servers_of_1() {
    pairwise(4, 1);
}

#[test]
fn four_servers_of_2() {
    pairwise(4, 2);
}

#[test]
fn four_servers_of_8() {
    pairwise(4, 8);
}

#[test]
fn eight_servers_of_1() {
    pairwise(8, 1);
}

#[test]
fn eight_servers_of_2() {
    pairwise(8, 2);
}

#[test]
fn eight_servers_of_8() {
    pairwise(8, 8);
}

#[test]
fn sixteen_servers_of_1() {
    pairwise(16, 1);
}

#[test]
fn sixteen_servers_of_2() {
    pairwise(16, 2);
}

#[test]
fn sixteen_servers_of_8() {
    pairwise(16, 8);
}

/// Numbers of servers that are not powers of two: odd subtrees, uneven merges, own data from a neighbour.
#[test]
fn three_servers_of_2() {
    pairwise(3, 2);
}

#[test]
fn five_servers_of_1() {
    pairwise(5, 1);
}

#[test]
fn six_servers_of_2() {
    pairwise(6, 2);
}

#[test]
fn seven_servers_of_1() {
    pairwise(7, 1);
}

#[test]
fn eleven_servers_of_1() {
    pairwise(11, 1);
}

#[test]
fn twelve_servers_of_1() {
    pairwise(12, 1);
}

/// A mean of more vectors than one launch takes, with the own one in every place.
#[test]
fn two_servers_of_11() {
    pairwise(2, 11);
}

#[test]
fn every_radix_in_fp32() {
    for (servers, locals, radix) in [
        (3, 1, 3),
        (4, 2, 4),
        (5, 1, 8),
        (6, 1, 6),
        (7, 1, 7),
        (8, 1, 4),
        (8, 2, 8),
        (12, 1, 4),
        (16, 1, 8),
        (11, 1, 4),
        (13, 1, 8),
    ] {
        against_oracle(Setup {
            servers,
            locals,
            radix,
            dtype: DType::F32,
        });
    }
}

#[test]
fn sixteen_bit_types() {
    for dtype in [DType::F16, DType::BF16] {
        for (servers, locals, radix) in [(2, 1, 2), (4, 2, 2), (4, 1, 4), (6, 2, 8), (8, 1, 8)] {
            against_oracle(Setup {
                servers,
                locals,
                radix,
                dtype,
            });
        }
    }
}
