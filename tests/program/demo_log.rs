//! The messages of MindSpore's own program, in order, with their tags: `tests/golden/README.md` says what they are.

use adasum::plan::mindspore::{TagHash, group_name, tag};
use npyz::npz::NpzArchive;
use serde_json::Value;

fn text(name: &str) -> Value {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/mindspore_basic_g2.npz"
    );
    let mut archive = NpzArchive::open(file).unwrap();
    let array = archive.by_name(name).unwrap().unwrap();
    let texts: Vec<String> = array.into_vec().unwrap();
    serde_json::from_str(&texts[0]).unwrap()
}

/// One message: whether it is sent, the peer, the tag. All-reduces are checked for their group and left out.
fn messages(rank: u32) -> Vec<(bool, u32, u32)> {
    let log = text(&format!("log/r{rank}"));
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let mut messages = Vec::new();
    for entry in log.as_array().unwrap() {
        match entry[0].as_str().unwrap() {
            "allreduce" => assert_eq!(entry[1], group_name(&[0, 1])),
            kind => messages.push((kind == "send", number(&entry[1]), number(&entry[2]))),
        }
    }
    messages
}

/// Left sends its first half and keeps the second, sends first; right the other way round; and back again.
#[test]
fn messages_have_the_tags_and_the_order_of_the_cells() {
    let names = text("names");
    let names: Vec<&str> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    let count = u32::try_from(names.len()).unwrap();
    assert_eq!(count, 7);
    // What cannot be halved is not sent.
    let halved: Vec<u32> = (0..)
        .zip(&names)
        .filter(|(_, name)| !matches!(**name, "one" | "scalar"))
        .map(|(index, _)| index)
        .collect();
    for rank in [0, 1] {
        let (left, peer) = (rank == 0, 1 - rank);
        let mut expected = Vec::new();
        for back in [false, true] {
            for &index in &halved {
                // The half that a rank sends: the first one forward on the left and back on the right.
                let half = |first: bool| if first { index } else { count + index };
                let tag = |rank, first| tag(0, rank, half(first), TagHash::Sha256);
                let send = (true, peer, tag(rank, left != back));
                let receive = (false, peer, tag(peer, left == back));
                expected.extend(if left {
                    [send, receive]
                } else {
                    [receive, send]
                });
            }
        }
        assert_eq!(messages(rank), expected, "rank {rank}");
    }
}
