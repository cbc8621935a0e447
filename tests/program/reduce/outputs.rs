//! What happens to the files that are written to.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::{Array, Run, read};
use crate::support::adasum_run::{FULL_DISK, adasum_run_within, err};

fn run(name: &str, count: usize) -> Run {
    let rank = |rank| vec![Array::random("t", count, rank)];
    Run::new(&format!("outputs-{name}"), &[rank(0), rank(1)])
}

#[test]
fn an_output_is_no_other_file_of_the_command() {
    let run = run("same", 8);
    let before = fs::read(&run.files[0]).unwrap();
    symlink("rank0.npz", run.path("link.npz")).unwrap();
    fs::hard_link(&run.files[0], run.path("hard.npz")).unwrap();
    fs::write(run.path("taken.npz"), "").unwrap();
    symlink("later.npz", run.path("dangling.npz")).unwrap();
    for (options, said) in [
        (
            &["-o", "x.npz", "--stats", "x.npz"][..],
            "--stats x.npz: --output is the same file",
        ),
        (
            &["-o", "x.npz", "--stats", "./x.npz"],
            "--stats ./x.npz: --output",
        ),
        (
            &["-o", "taken.npz", "--stats", "taken.npz"],
            "--stats taken.npz: --output",
        ),
        (
            &["-o", "rank1.npz"],
            "--output rank1.npz: an input is the same file",
        ),
        (&["-o", "hard.npz"], "--output hard.npz: an input"),
        (
            &["-o", "link.npz", "--force"],
            "--output link.npz: an input",
        ),
        (
            &["-o", "x.npz", "--stats", "rank0.npz"],
            "--stats rank0.npz: an input",
        ),
        (
            &["-o", "later.npz", "--stats", "dangling.npz", "--force"],
            "--stats dangling.npz: --output",
        ),
    ] {
        let text = run.refused(options);
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(fs::read(&run.files[0]).unwrap(), before);
    assert!(!run.path("x.npz").exists() && !run.path("later.npz").exists());
}

/// A place that cannot be written is known before a file is read.
#[test]
fn places_of_outputs_are_looked_at_first() {
    let run = run("place", 8);
    fs::write(&run.files[0], "not a file of tensors").unwrap();
    for (options, said) in [
        (
            &["-o", "none/x.npz"][..],
            "--output: none/x.npz: No such file",
        ),
        (
            &["-o", "x.npz", "--stats", "none/x.json"],
            "--stats: none/x.json: No such file",
        ),
    ] {
        let text = run.refused(options);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn only_force_replaces_read_only_files_and_follows_links() {
    let run = run("force", 8);
    let (expected, _) = run.reduced(&[]);
    let kept = run.path("kept.npz");
    fs::write(&kept, "kept").unwrap();
    fs::set_permissions(&kept, Permissions::from_mode(0o440)).unwrap();
    symlink("kept.npz", run.path("link.npz")).unwrap();
    symlink("new.json", run.path("link.json")).unwrap();
    for (options, said) in [
        (
            &["-o", "kept.npz"][..],
            "--output kept.npz: the file is read-only; --force",
        ),
        (
            &["-o", "link.npz"],
            "--output link.npz: a symbolic link; --force",
        ),
        (
            &["-o", "x.npz", "--stats", "link.json"],
            "--stats link.json: a symbolic link; --force",
        ),
    ] {
        let text = run.refused(options);
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(fs::read(&kept).unwrap(), b"kept");
    let output = run.end(&["-o", "link.npz", "--stats", "link.json", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(read(&kept), expected);
    assert_eq!(kept.metadata().unwrap().mode() & 0o777, 0o440);
    assert!(run.path("link.npz").is_symlink() && run.path("link.json").is_symlink());
    assert!(
        fs::read_to_string(run.path("new.json"))
            .unwrap()
            .contains("kappa")
    );
}

/// The elements do not fit on the disk, or the archive's directory does not.
#[test]
fn a_full_disk_leaves_what_was_there() {
    let large = || [0, 1].map(|rank| vec![Array::random("t", 1000, rank)]);
    let small = |rank| {
        ["a", "b", "c"]
            .map(|name| Array::random(name, 1, rank))
            .to_vec()
    };
    for (name, ranks, output) in [
        ("npz", large(), "out.npz"),
        ("safetensors", large(), "out.safetensors"),
        ("directory", [0, 1].map(small), "out.npz"),
    ] {
        let run = Run::new(&format!("outputs-full-{name}"), &ranks);
        fs::write(run.path(output), "old").unwrap();
        let before = fs::read_dir(run.folder.path()).unwrap().count();
        let arguments = ["reduce", "--arithmetic", "mindspore", "-o", output];
        let mut command = adasum_run_within(FULL_DISK, &arguments);
        let ended = command
            .args(&run.files)
            .current_dir(run.folder.path())
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(1), "{}", err(&ended));
        let text = err(&ended);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("MindSpore's arithmetic"), "{text}");
        assert!(
            lines[1].contains(output) && lines[1].contains("File too large"),
            "{text}"
        );
        assert_eq!(fs::read(run.path(output)).unwrap(), b"old");
        assert_eq!(fs::read_dir(run.folder.path()).unwrap().count(), before);
    }
}
