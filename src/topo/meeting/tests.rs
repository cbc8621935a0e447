use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A port that was free a moment ago.
fn address() -> Meeting {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Meeting::Address {
        host: "localhost".to_owned(),
        port: listener.local_addr().unwrap().port(),
    }
}

fn file(name: &str) -> (PathBuf, Meeting) {
    let folder = std::env::temp_dir().join(format!("adasum-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("root");
    (folder, Meeting::File(path))
}

/// The outcome of each of `ranks` in a job of `size`; each tells its rank, and rank 0 answers the sum.
fn meet(meeting: &Meeting, ranks: &[u32], size: u32, limit: Duration) -> Vec<Result<Vec<u8>>> {
    let answers = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let run = |rank: u32| {
            let participant = Participant { rank, size, limit };
            let told = u8::try_from(rank).unwrap();
            meeting.meet(participant, &[told], |all| {
                answers.fetch_add(1, Ordering::Relaxed);
                assert_eq!(all.len(), size as usize);
                Ok(vec![all.iter().map(|told| told[0]).sum()])
            })
        };
        let threads: Vec<_> = ranks
            .iter()
            .map(|&rank| scope.spawn(move || run(rank)))
            .collect();
        let outcomes = threads.into_iter().map(|thread| thread.join().unwrap());
        outcomes.collect()
    })
}

fn participant(rank: u32, size: u32) -> Participant {
    Participant {
        rank,
        size,
        limit: LONG,
    }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn all_ranks_get_the_answer_to_what_all_told() {
    let (folder, file) = file("answer");
    for meeting in [address(), file.clone(), file] {
        for outcome in meet(&meeting, &[3, 0, 2, 1], 4, LONG) {
            assert_eq!(outcome.unwrap(), [6]);
        }
        assert_eq!(meet(&meeting, &[0], 1, LONG)[0].as_deref(), Ok(&[0][..]));
    }
    // Ranks have taken their cards with them.
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn absent_ranks_are_named_on_all_that_have_come() {
    let (folder, file) = file("absent");
    for meeting in [address(), file] {
        for outcome in meet(&meeting, &[0, 2, 7], 8, SHORT) {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            assert!(
                error
                    .to_string()
                    .contains("ranks 1, 3-6 of 8 did not come to"),
                "{error}"
            );
            assert!(error.to_string().contains("within 0.300 s"), "{error}");
        }
        let lonely = meet(&meeting, &[1], 2, SHORT).remove(0).unwrap_err();
        assert_eq!(lonely.kind(), ErrorKind::Timeout);
        assert!(lonely.to_string().contains("rank 0 "), "{lonely}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_error_of_rank_0_is_that_of_all() {
    let (folder, file) = file("error");
    for meeting in [address(), file] {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| meeting.meet(participant(1, 2), &[], |_| Ok(Vec::new())));
            let fails = |_: &[Vec<u8>]| Err(Error::unsupported("no such thing"));
            let first = meeting.meet(participant(0, 2), &[], fails).unwrap_err();
            assert_eq!(first.to_string(), "no such thing");
            let error = other.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.to_string(), "rank 0: no such thing");
        });
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Strangers, a rank twice, and jobs of another size keep nobody from meeting.
#[test]
fn who_does_not_belong_there_is_sent_away() {
    let meeting = address();
    let Meeting::Address { port, .. } = meeting else {
        unreachable!()
    };
    let run = |rank, size| meeting.meet(participant(rank, size), &[1], |_| Ok(vec![7]));
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| run(0, 3));
        let stranger = std::iter::repeat_with(|| TcpStream::connect(("localhost", port)))
            .find_map(|connected| connected.ok())
            .unwrap();
        drop(stranger);
        let first = scope.spawn(|| run(1, 3));
        let error = run(2, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(
            error
                .to_string()
                .contains("rank 2 has a job of 4 ranks, rank 0 one of 3"),
            "{error}"
        );
        // Of the two rank 1 the later one is told; which that is, is not known here.
        let second = scope.spawn(|| run(1, 3));
        while !first.is_finished() && !second.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(run(2, 3).unwrap(), [7]);
        assert_eq!(leader.join().unwrap().unwrap(), [7]);
        let both = [first.join().unwrap(), second.join().unwrap()];
        let refused: Vec<_> = both
            .iter()
            .filter_map(|outcome| outcome.as_ref().err())
            .collect();
        assert_eq!(refused.len(), 1);
        assert!(
            refused[0]
                .to_string()
                .contains("rank 1 is there already, from "),
            "{}",
            refused[0]
        );
    });
}

/// What a former job left, in whatever state, is not taken for this one's.
#[test]
fn what_others_left_in_the_file_is_no_answer() {
    let (folder, meeting) = file("stale");
    let Meeting::File(path) = &meeting else {
        unreachable!()
    };
    std::fs::write(path, "some text").unwrap();
    std::fs::write(folder.join("root.1"), "some text").unwrap();
    // Rank 1 comes first and sees the answer of the former job for a while.
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let meeting = &meeting;
            let early =
                scope.spawn(move || meeting.meet(participant(1, 2), &[5], |_| Ok(Vec::new())));
            std::thread::sleep(Duration::from_millis(50));
            let answer = meeting
                .meet(participant(0, 2), &[4], |all| Ok(all.concat()))
                .unwrap();
            assert_eq!(answer, [4, 5]);
            assert_eq!(early.join().unwrap().unwrap(), [4, 5]);
        });
    }
    std::fs::remove_dir_all(folder).unwrap();
}
