use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::*;

fn at(port: u16, secret: Option<&JobSecret>) -> Meeting {
    Meeting::Address {
        host: "localhost".to_owned(),
        port,
        secret: secret.cloned(),
    }
}

fn address() -> Meeting {
    at(free_port().unwrap(), None)
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
    let secured = at(free_port().unwrap(), Some(&JobSecret::fresh().unwrap()));
    for meeting in [address(), secured, file.clone(), file] {
        for outcome in meet(&meeting, &[3, 0, 2, 1], 4, LONG) {
            assert_eq!(outcome.unwrap(), [6]);
        }
        assert_eq!(meet(&meeting, &[0], 1, LONG)[0].as_deref(), Ok(&[0][..]));
    }
    // Ranks have removed their own files.
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
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
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
                .contains(" has a job of 4 ranks, rank 0 one of 3"),
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

/// Connects to a meeting as soon as rank 0 listens.
fn stranger(meeting: &Meeting) -> TcpStream {
    let Meeting::Address { port, .. } = meeting else {
        unreachable!()
    };
    let started = Deadline::new(LONG);
    loop {
        match TcpStream::connect(("localhost", *port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(!started.is_over(), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `meeting` while `count` connections that say nothing stay open; `ranks` come after these.
fn meet_beside_idle_strangers(count: usize, size: u32, limit: Duration) {
    // One at a time: a process may often have 1024 descriptors only.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let meeting = address();
    std::thread::scope(|scope| {
        let meeting = &meeting;
        let run = move |rank: u32| {
            let participant = Participant { rank, size, limit };
            let told = rank.to_le_bytes();
            meeting.meet(participant, &told, |all| Ok(all.concat()))
        };
        let leader = scope.spawn(move || run(0));
        let strangers: Vec<TcpStream> = (0..count).map(|_| stranger(meeting)).collect();
        let others: Vec<_> = (1..size)
            .map(|rank| scope.spawn(move || run(rank)))
            .collect();
        let expected: Vec<u8> = (0..size).flat_map(u32::to_le_bytes).collect();
        assert_eq!(leader.join().unwrap().unwrap(), expected);
        for other in others {
            assert_eq!(other.join().unwrap().unwrap(), expected);
        }
        assert_eq!(strangers.len(), count);
    });
}

#[test]
fn eight_idle_strangers_do_not_hold_a_meeting_up() {
    meet_beside_idle_strangers(8, 4, Duration::from_secs(10));
}

#[test]
fn sixty_four_ranks_meet_beside_two_hundred_idle_strangers() {
    meet_beside_idle_strangers(200, 64, LONG);
}

/// Sends a byte of a hello at a time until `ended`, at most for a minute; returns whether the meeting outlasted it.
fn dribble(mut stream: TcpStream, ended: &AtomicBool) -> bool {
    let hello = [
        &b"adasum 2\0"[..],
        &[7; 32],
        &1_u32.to_le_bytes(),
        &2_u32.to_le_bytes(),
    ];
    let mut bytes = hello.concat();
    bytes.extend((1_u32 << 15).to_le_bytes());
    bytes.resize(600, 0);
    for byte in bytes {
        if ended.load(Ordering::Relaxed) {
            return false;
        }
        // A stranger that was cut off stays silent.
        let _ = stream.write_all(&[byte]);
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

#[test]
fn a_slow_stranger_does_not_hold_a_meeting_up() {
    for (ranks, limit) in [(vec![0, 1], LONG), (vec![0], SHORT)] {
        let meeting = address();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| {
                let outcomes = meet(&meeting, &ranks, 2, limit);
                ended.store(true, Ordering::Relaxed);
                outcomes
            });
            let stranger = stranger(&meeting);
            let outlasted = scope.spawn(|| dribble(stranger, &ended));
            for outcome in leader.join().unwrap() {
                let expected = if ranks.len() == 2 {
                    Ok(vec![1])
                } else {
                    Err(ErrorKind::Timeout)
                };
                assert_eq!(outcome.map_err(|error| error.kind()), expected);
            }
            assert!(!outlasted.join().unwrap(), "rank 0 waited for a stranger");
        });
    }
}

#[test]
fn others_cannot_read_the_files_of_a_meeting() {
    let (folder, meeting) = file("mode");
    for outcome in meet(&meeting, &[0, 1], 2, LONG) {
        outcome.unwrap();
    }
    let mode = std::fs::metadata(folder.join("root"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Makes a file that others can write; what is said of it.
fn foreign(path: &Path) -> String {
    std::fs::write(path, "").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    format!("{}: its mode is 0666", path.display())
}

#[test]
fn files_that_others_can_write_are_refused() {
    let (folder, meeting) = file("foreign");
    let expected = foreign(&folder.join("root"));
    for outcome in meet(&meeting, &[0, 1], 2, LONG) {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// What rank 0 cannot read, all who wait are told.
#[test]
fn a_foreign_file_of_a_rank_ends_the_meeting_for_all() {
    let (folder, meeting) = file("foreign-rank");
    let expected = foreign(&folder.join("root.2"));
    let start = Instant::now();
    for outcome in meet(&meeting, &[0, 1], 3, LONG) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}");
    }
    assert!(start.elapsed() < LONG);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_asked_for_wrongly_is_an_invalid_argument() {
    let nowhere = Meeting::File("/no/such/folder/root".into());
    let run = |meeting: &Meeting, rank, told: &[u8]| {
        let outcome = meeting.meet(participant(rank, 2), told, |_| Ok(Vec::new()));
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    };
    assert!(run(&address(), 2, &[]).starts_with("rank 2 of 2 ranks: there is no such rank"));
    assert!(run(&at(0, None), 0, &[]).contains("port 0"));
    assert!(run(&address(), 1, &[0; MOST + 1]).starts_with("what a rank tells has 65537 bytes"));
    assert!(run(&nowhere, 0, &[]).starts_with("/no/such/folder/root: "));
    let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"));
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = run(&at(port, None), 0, &[]);
    assert!(
        taken.starts_with(&format!("rank 0 cannot listen at port {port}")),
        "{taken}"
    );
    // Something that greets in another way.
    std::thread::scope(|scope| {
        scope.spawn(move || listener.accept().unwrap().0.write_all(&[b'x'; 64]).unwrap());
        let other = run(&at(port, None), 1, &[]);
        assert!(
            other.starts_with("it is not rank 0 that listens at localhost:"),
            "{other}"
        );
    });
}

/// Ranks whose secrets differ do not meet, and both sides say why; the one without the right secret gets no answer.
#[test]
fn only_ranks_with_the_secret_meet() {
    let [right, wrong] = [(), ()].map(|()| JobSecret::fresh().unwrap());
    let cases = [
        (
            Some(&right),
            Some(&wrong),
            "another secret than this rank",
            "another secret than rank 0",
        ),
        (
            Some(&right),
            None,
            "has a secret, this rank has none",
            "no secret, rank 0 has one",
        ),
        (
            None,
            Some(&wrong),
            "has no secret, this rank has one",
            "a secret, rank 0 has none",
        ),
    ];
    for (leaders, others, told, logged) in cases {
        let port = free_port().unwrap();
        let limit = Duration::from_secs(2);
        std::thread::scope(|scope| {
            let leader = scope.spawn(move || meet(&at(port, leaders), &[0], 3, limit).remove(0));
            let error = meet(&at(port, others), &[2], 3, LONG)
                .remove(0)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            let text = error.to_string();
            assert!(
                text.contains(told) && text.contains("(this is rank 2)"),
                "{text}"
            );
            let error = leader.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            let text = error.to_string();
            assert!(text.contains("ranks 1-2 of 3 did not come"), "{text}");
            let refused = text.contains("1 refused, the last: rank 2 from ");
            assert!(refused && text.contains(logged), "{text}");
        });
    }
}

/// Passes one connection on from `listener` to `port`; returns the bytes of rank 0 and those of the other rank.
fn tap(listener: &TcpListener, port: u16) -> [Vec<u8>; 2] {
    let (rank, _) = listener.accept().unwrap();
    let leader = stranger(&at(port, None));
    let pass = |mut from: &TcpStream, mut to: &TcpStream| {
        let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            seen.extend(&chunk[..count]);
            to.write_all(&chunk[..count]).unwrap();
        }
        let _ = to.shutdown(Shutdown::Write);
        seen
    };
    std::thread::scope(|scope| {
        let forth = scope.spawn(|| pass(&rank, &leader));
        [pass(&leader, &rank), forth.join().unwrap()]
    })
}

/// What somebody on the network has seen of one meeting is of no use at another with the same secret.
#[test]
fn a_meeting_cannot_be_replayed() {
    let secret = JobSecret::fresh().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tapped = listener.local_addr().unwrap().port();
    let run = |port, rank: u32, told: &[u8]| {
        let meeting = at(port, Some(&secret));
        meeting.meet(participant(rank, 2), told, |all| Ok(all[1].clone()))
    };
    let port = free_port().unwrap();
    let [of_rank_0, of_rank_1] = std::thread::scope(|scope| {
        let tap = scope.spawn(|| tap(&listener, port));
        let leader = scope.spawn(|| run(port, 0, b"-"));
        assert_eq!(run(tapped, 1, b"first").unwrap(), b"first");
        assert_eq!(leader.join().unwrap().unwrap(), b"first");
        tap.join().unwrap()
    });
    let told = |bytes: &[u8]| bytes.windows(5).any(|part| part == b"first");
    assert!(told(&of_rank_0) && told(&of_rank_1));

    // The hello, to another rank 0.
    let port = free_port().unwrap();
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| run(port, 0, b"-"));
        let mut replay = stranger(&at(port, None));
        replay.write_all(&of_rank_1).unwrap();
        let mut refusal = Vec::new();
        replay.read_to_end(&mut refusal).unwrap();
        let refusal = String::from_utf8_lossy(&refusal);
        assert!(
            refusal.contains("has another secret than rank 0"),
            "{refusal}"
        );
        assert_eq!(run(port, 1, b"second").unwrap(), b"second");
        assert_eq!(leader.join().unwrap().unwrap(), b"second");
    });

    // All that rank 0 said, to another rank 1.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut rank, _) = listener.accept().unwrap();
            rank.write_all(&of_rank_0).unwrap();
            let _ = rank.read_to_end(&mut Vec::new());
        });
        let error = run(tapped, 1, b"third").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("has another secret"), "{error}");
    });
}

/// However many connect and say nothing, ranks still come through.
#[test]
fn more_strangers_than_are_kept_do_not_hold_a_meeting_up() {
    meet_beside_idle_strangers(300, 2, LONG);
}
