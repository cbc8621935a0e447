//! The list of environment variables: complete, without dead entries, and the source of `docs/environment.md`, which
//! `ADASUM_BLESS=1 cargo test --test it variables` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use adasum::reduce::{self, BOOST_FILE};
use adasum::variables::{PREFIXES, Reader, VARIABLES, Variable};

/// Where variables are read.
const PLACES: [&str; 9] = [
    "src", "csrc", "build.rs", "benches", "examples", "python", "tests", "include", ".ci",
];
/// Names that tests make up, or give to processes of their own, and beginnings of names.
const OTHERS: [&str; 5] = [
    "ADASUM_TEST_",
    "ADASUM_BACKND",
    "ADASUM_RUN",
    "HCCL_MOCK_NETS",
    "ASCEND_MOCK_HBM",
];

/// All names that are listed.
fn listed() -> BTreeSet<&'static str> {
    let options = reduce::OPTIONS.iter().filter_map(|option| option.variable);
    let others = VARIABLES.iter().map(|variable| variable.name);
    options.chain(others).chain([BOOST_FILE]).collect()
}

/// The constants of the C interface, which look like variables.
fn constants() -> BTreeSet<String> {
    let header = fs::read_to_string(root().join("include/adasum.h")).unwrap();
    let word = |line: &str| {
        let line = line.trim_start();
        let line = line
            .strip_prefix("#define ")
            .or(line.strip_prefix("#ifndef "))
            .unwrap_or(line);
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        line[..end.unwrap_or(line.len())].to_owned()
    };
    header
        .lines()
        .map(word)
        .filter(|word| word.starts_with("ADASUM_"))
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.flat_map(|entry| files(&entry.path())).collect()
}

/// The names in a text that start with one of the prefixes, right after a quotation mark or a dollar.
fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for prefix in PREFIXES {
        for (at, _) in text.match_indices(prefix) {
            let before = text[..at].trim_end_matches('{').chars().next_back();
            if matches!(before, Some('"' | '\'' | '$')) {
                let letter = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_';
                let name: String = text[at..].chars().take_while(letter).collect();
                // A prefix alone is a rule about names.
                if name != prefix {
                    found.insert(name);
                }
            }
        }
    }
    found
}

/// Each name, and the files that hold it.
fn read() -> BTreeMap<String, Vec<PathBuf>> {
    let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in PLACES.iter().flat_map(|place| files(&root().join(place))) {
        // The list, and names that this file makes up.
        if file.ends_with("src/variables.rs") || file.ends_with("tests/pages/variables.rs") {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        for name in names(&text) {
            all.entry(name).or_default().push(file.clone());
        }
    }
    all
}

#[test]
fn every_variable_that_is_read_is_listed() {
    let (listed, constants) = (listed(), constants());
    let unlisted: Vec<_> = read()
        .into_iter()
        .filter(|(name, _)| !listed.contains(name.as_str()) && !constants.contains(name))
        .filter(|(name, _)| !OTHERS.iter().any(|other| name.starts_with(other)))
        .collect();
    assert!(
        unlisted.is_empty(),
        "not in src/variables.rs: {unlisted:#?}"
    );
}

#[test]
fn every_listed_variable_is_read() {
    let read = read();
    let unread: Vec<&str> = VARIABLES
        .iter()
        .map(|variable| variable.name)
        .filter(|name| !read.contains_key(*name))
        .collect();
    assert!(unread.is_empty(), "read nowhere: {unread:?}");
    let options = reduce::OPTIONS.iter();
    let options = options.filter(|option| option.variable.is_some()).count();
    assert_eq!(listed().len(), VARIABLES.len() + options + 1);
}

/// The scanner itself: a name that it would miss may be missing from the list.
#[test]
fn names_are_found_in_every_form() {
    let text = "var(\"ADASUM_A\") getenv('HCCL_MOCK_B2') $ASCEND_MOCK_C ${ADASUM_D:-} -DADASUM_E \"ADASUM_\"";
    let expected = ["ADASUM_A", "ADASUM_D", "ASCEND_MOCK_C", "HCCL_MOCK_B2"];
    assert_eq!(names(text), expected.map(str::to_owned).into());
}

const START: &str = "\
# Environment variables

Made from `src/variables.rs`, `src/reduce/options/table.rs` and `tests/pages/variables.rs` by a test: do not edit.
`adasum-run doctor` lists those that are set and warns of misspelt ones.

The place of a rank comes from `RANK_TABLE_FILE` (or `MINDSPORE_HCCL_CONFIG_PATH`, its older name), `RANK_ID`, `RANK_SIZE`
and `DEVICE_ID`, or, where there is no rank table, from torchrun's `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`,
`MASTER_ADDR` and `MASTER_PORT`. `adasum-run launch` sets all of them, `DEVICE_NUM` and `SERVER_ID`; with `--hosts` it sets no
`RANK_TABLE_FILE`, and the table of `-n` has no addresses of devices: [the program](program.md#launch) says which HCCL takes it. The variables of HCCL (`HCCL_CONNECT_TIMEOUT`, `HCCL_EXEC_TIMEOUT`, `HCCL_BUFFSIZE` and
others) are the vendor's: `adasum-run doctor` checks their values, and `csrc/mock/README.md` says which of them the mock
obeys.

A rank table has the numbers of devices on their server. A process counts its own from 0: in a container, and those that
`ASCEND_RT_VISIBLE_DEVICES` leaves. With CANN 8.5 or newer a rank finds its device by the number in the table, and `DEVICE_ID` may be either
number; with older ones it must be the process's own, unless both are the same. Without a rank table it is the process's own.

With a rank table of version 2.0, and on Ascend 950, ranks meet as those without a table do: `MASTER_ADDR` and `MASTER_PORT`, or
`ADASUM_ROOTINFO_FILE`, must be set, too, as `adasum-run launch` does.

Where torchrun's variables are not set either, those of MindSpore's msrun place a rank: `RANK_ID` (or `MS_NODE_ID`), `RANK_SIZE` (or
`MS_WORKER_NUM`), `DEVICE_ID` (or `LOCAL_RANK`), `LOCAL_WORLD_SIZE` if it is set (else servers are the hosts), `MS_SCHED_HOST` and
`MS_SCHED_PORT`. The scheduler listens at that port, so ranks meet at the one behind it. A process with another `MS_ROLE` than
`MS_WORKER` is no rank; in Python `adasum.mindspore.world` ends that of the scheduler. With several nodes but without
`--node_rank` no worker has the right `RANK_ID`: `adasum.mindspore.world` sets it where `mindspore.communication.init` was called before. Rank 0
must run on the scheduler's machine, or `ADASUM_MASTER_ADDR` name its own.

## Who may join

Ranks without a rank table meet at a port of rank 0. With a secret, each side of a connection proves that it knows it
(HMAC-SHA-256 over random numbers of both sides), and what rank 0 answers is proved, too. Nothing is encrypted. Without a secret
whoever reaches the port can join, and rank 0 says so once: the port must be on a trusted network then.

- `adasum-run launch` makes a new secret for each start of all ranks, if it starts all of them and none is set.
- Several launchers of a job (`--server-id`, `--rank`), torchrun and msrun need one that all have: `ADASUM_JOB_SECRET`, or
  `ADASUM_JOB_SECRET_FILE`, whose file is refused if it belongs to another user or others may use it. If it is missing for some ranks,
  or differs, these are refused. `adasum.torch` needs none: its ranks meet by torch's process group.
- A file in place of the port (`ADASUM_ROOTINFO_FILE`) needs no secret: it has mode 0600, and a file that belongs to another user or
  that others may write is refused.
";

fn page() -> String {
    let mut page = START.to_owned();
    page += &table(
        "Library and adasum-run",
        VARIABLES
            .iter()
            .filter(|variable| variable.reader == Reader::Library)
            .map(row),
    );
    let options = reduce::OPTIONS.iter().filter_map(|option| {
        let cells = [option.variable?, option.values, option.default, option.help];
        Some(cells.map(str::to_owned))
    });
    page += &table("Options of reductions", options);
    page += &format!(
        "\nThese are read by programs that ask for it: `adasum_options_load_environment` in C, `Settings::load_environment` in Rust, \
         `adasum.Options.from_environment` in Python. \
         What only a program can know has no variable: `adasum_options_set` in `include/adasum.h` lists all options. \
         `{BOOST_FILE}` names a boost configuration of MindSpore, which is read last.\n"
    );
    for (reader, title) in [
        (Reader::Build, "Build"),
        (Reader::Mock, "Mock of ACL and HCCL"),
        (Reader::Tests, "Tests"),
    ] {
        page += &table(
            title,
            VARIABLES
                .iter()
                .filter(|variable| variable.reader == reader)
                .map(row),
        );
    }
    page
}

fn row(variable: &Variable) -> [String; 4] {
    [
        variable.name,
        variable.values,
        variable.default,
        variable.meaning,
    ]
    .map(str::to_owned)
}

fn table(title: &str, rows: impl Iterator<Item = [String; 4]>) -> String {
    let mut table =
        format!("\n## {title}\n\n| variable | values | default | meaning |\n|---|---|---|---|\n");
    for [name, values, default, meaning] in rows {
        table += &format!("| `{name}` | {values} | {default} | {meaning} |\n");
    }
    table
}

#[test]
fn the_page_is_that_of_the_list() {
    let file = root().join("docs/environment.md");
    if std::env::var_os("ADASUM_BLESS").is_some() {
        fs::write(&file, page()).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == page(),
        "docs/environment.md is not what src/variables.rs gives: ADASUM_BLESS=1 cargo test --test it variables"
    );
}
