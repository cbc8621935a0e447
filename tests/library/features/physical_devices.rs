//! Ranks whose process counts its devices otherwise than their server does: in containers, and with `ASCEND_RT_VISIBLE_DEVICES`.
//! Devices are read once by a process, so each rank is one.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;

use super::{download, upload};
use crate::library::backend::acl_without;
use crate::support::folder;
use adasum::ascend::Stream;
use adasum::reduce::{DType, Form, GradientReducer, Options, Settings, TensorSpec, World};

type Variables<'a> = &'a [(&'a str, &'a str)];

/// What a rank says: where it is, and the AdaSum of orthogonal gradients, which is their sum.
#[test]
#[ignore = "in processes of their own, started by other tests"]
fn a_rank_of_the_environment() {
    let settings = Settings {
        devices_per_server: Some(1),
        ..Settings::default()
    };
    let world = match World::from_environment(&settings) {
        Ok(world) => world,
        Err(error) => return println!("\nsaid {error}"),
    };
    let mut gradient = vec![0.0; 2];
    gradient[world.rank() as usize] = 1.0 + world.rank() as f32;
    // By messages, and by kernels that read the other rank's memory.
    let results = [None, Some(Form::Shared)].map(|exchange| {
        let options = Options {
            exchange,
            ..Options::default()
        };
        let specs = [TensorSpec::new("t", 2, DType::F32)];
        let mut reducer = GradientReducer::new(&world, &specs, &options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let spans = upload(world.device(), std::slice::from_ref(&gradient), DType::F32);
        reducer.reduce(&spans, &stream).unwrap();
        reducer.synchronize(&stream, super::PATIENCE).unwrap();
        download(&spans, DType::F32).remove(0)
    });
    assert_eq!(results[0], results[1]);
    println!("\nsaid device {}: {:?}", world.device().id(), results[0]);
}

fn start(variables: Variables) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg("library::features::physical_devices::a_rank_of_the_environment")
        .args(["--exact", "--ignored", "--nocapture"])
        .env("ADASUM_BACKEND", "mock")
        .env_remove("ADASUM_JOB_SECRET")
        .env_remove("ASCEND_RT_VISIBLE_DEVICES")
        .env_remove("DEVICE_ID")
        .env_remove("RANK_TABLE_FILE")
        .env_remove("MINDSPORE_HCCL_CONFIG_PATH")
        .env("HCCL_CONNECT_TIMEOUT", "120")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.lines().find_map(|line| line.strip_prefix("said "));
    said.unwrap_or_else(|| panic!("{output:?}")).to_owned()
}

/// What two ranks of one server say whose rank table has these devices. `name` is the job's.
fn job(name: &str, devices: [u32; 2], all: Variables, each: [Variables; 2]) -> [String; 2] {
    let folder = folder(name);
    let table = table(&folder, devices);
    let ranks = [("0", each[0]), ("1", each[1])].map(|(rank, own)| {
        let place = [
            ("RANK_TABLE_FILE", table.as_str()),
            ("HCCL_MOCK_JOB", table.as_str()),
            ("RANK_ID", rank),
        ];
        start(&[&place[..], all, own].concat())
    });
    let said = ranks.map(|rank| said(&rank.wait_with_output().unwrap()));
    std::fs::remove_dir_all(&folder).unwrap();
    said
}

fn table(folder: &Path, devices: [u32; 2]) -> String {
    let device =
        |rank: usize| json!({"device_id": devices[rank].to_string(), "rank_id": rank.to_string()});
    let server = json!({"server_id": "one", "device": [device(0), device(1)]});
    let table = json!({"version": "1.0", "status": "completed", "server_count": "1", "server_list": [server]});
    let path = folder.join("rank_table.json");
    std::fs::write(&path, table.to_string()).unwrap();
    path.display().to_string()
}

fn summed(devices: [u32; 2]) -> [String; 2] {
    devices.map(|device| format!("device {device}: [1.0, 2.0]"))
}

const CONTAINER: Variables = &[
    ("ASCEND_MOCK_DEVICES", "2"),
    ("ASCEND_MOCK_FIRST_DEVICE", "6"),
];

#[test]
fn a_container_counts_its_devices_from_0() {
    let untold = job("container", [6, 7], CONTAINER, [&[], &[]]);
    assert_eq!(untold, summed([0, 1]));
    let own: [Variables; 2] = [&[("DEVICE_ID", "0")], &[("DEVICE_ID", "1")]];
    assert_eq!(job("container-own", [6, 7], CONTAINER, own), summed([0, 1]));
    // As our launcher tells it.
    let physical: [Variables; 2] = [&[("DEVICE_ID", "6")], &[("DEVICE_ID", "7")]];
    let told = job("container-physical", [6, 7], CONTAINER, physical);
    assert_eq!(told, summed([0, 1]));
}

#[test]
fn processes_may_see_different_devices() {
    let each: [Variables; 2] = [
        &[("ASCEND_RT_VISIBLE_DEVICES", "2"), ("DEVICE_ID", "0")],
        &[("ASCEND_RT_VISIBLE_DEVICES", "3,5"), ("DEVICE_ID", "1")],
    ];
    assert_eq!(job("visible", [2, 5], &[], each), summed([0, 1]));
    // The same without a rank table, by root info.
    let folder = folder("visible-root-info");
    let meeting = folder.join("meeting").display().to_string();
    let ranks = [("0", each[0]), ("1", each[1])].map(|(rank, own)| {
        let place = [
            ("ADASUM_ROOTINFO_FILE", meeting.as_str()),
            ("RANK", rank),
            ("LOCAL_RANK", rank),
            ("WORLD_SIZE", "2"),
            ("LOCAL_WORLD_SIZE", "2"),
        ];
        start(&[&place[..], own].concat())
    });
    let said = ranks.map(|rank| said(&rank.wait_with_output().unwrap()));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(said, summed([0, 1]));
}

/// Before CANN 8.5 only the starter of a process knows.
#[test]
fn device_id_counts_where_acl_cannot_tell() {
    let folder = folder("without-physical");
    let acl = acl_without("aclrtGetLogicDevIdByPhyDevId", &folder);
    let older = ("LD_PRELOAD", acl.to_str().unwrap());
    let all = [&[older], CONTAINER].concat();
    let own: [Variables; 2] = [&[("DEVICE_ID", "0")], &[("DEVICE_ID", "1")]];
    let told = job("older", [6, 7], &all, own);
    let untold = job("older-untold", [0, 1], &[older], [&[], &[]]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(told, summed([0, 1]));
    assert_eq!(untold, summed([0, 1]));
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let says = |name: &str, all: Variables, own: [Variables; 2], what: [&str; 2]| {
        let said = job(name, [6, 7], all, own);
        for (said, what) in said.iter().zip(what) {
            assert!(said.contains(what), "{said}");
        }
    };
    let wrong: [Variables; 2] = [&[("DEVICE_ID", "3")], &[("DEVICE_ID", "-1")]];
    let why = [
        "says 6 for rank 0, which is device 0 of this process",
        "DEVICE_ID is -1, but",
    ];
    says("wrong-number", CONTAINER, wrong, why);
    let two = [("ASCEND_RT_VISIBLE_DEVICES", "0,1")];
    let why = ["gives rank 0 device 6 of its server", "physical device 7"];
    says("not-seen", &two, [&[], &[]], why);
}
