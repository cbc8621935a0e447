//! `exchange = shared` where PCIe joins devices. The mock reads once what joins them, so each case has a process of its own.

use std::process::Command;

use super::{gradients, reduced, specs};
use crate::library::backend::acl_without;
use crate::support::{folder, in_world};
use adasum::reduce::{DType, Form, GradientReducer, Options};

const SERVERS: &str = "SERVERS_OF_THE_TEST";
const LOCALS: &str = "LOCALS_OF_THE_TEST";

/// Each rank says whether it gets a reducer, and why not. The world is good either way.
#[test]
#[ignore = "in processes of their own, started by other tests"]
fn ranks_that_ask_for_shared() {
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    in_world(number(SERVERS), number(LOCALS), |world| {
        let messages = Options {
            allow_plain_mean: true,
            ..Options::default()
        };
        let shared = Options {
            exchange: Some(Form::Shared),
            ..messages.clone()
        };
        let inputs = gradients(world.rank());
        let result = reduced(world, &inputs, &messages);
        match GradientReducer::new(world, &specs(DType::F32), &shared) {
            Ok(_) => {
                assert_eq!(reduced(world, &inputs, &shared), result);
                println!("\nsaid made");
            }
            Err(error) => {
                assert_eq!(reduced(world, &inputs, &messages), result);
                println!("\nsaid {:?}: {error}", error.kind());
            }
        }
    });
}

/// What all ranks say in a process with these variables.
fn said(servers: u32, locals: u32, variables: &[(&str, &str)]) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("library::features::over_pcie::ranks_that_ask_for_shared")
        .args(["--exact", "--ignored", "--nocapture"])
        .env(SERVERS, servers.to_string())
        .env(LOCALS, locals.to_string())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().filter_map(|line| line.strip_prefix("said "));
    said.map(str::to_owned).collect()
}

fn refused(one: u32, other: u32) -> String {
    format!(
        "Unsupported: exchange is shared: PCIe (PIX) joins device {one} of rank {one} and device {other} of rank {other}, and \
         kernels do not read other NPUs over PCIe"
    )
}

#[test]
fn shared_is_refused_over_pcie_on_all_ranks() {
    // Two meshes of four.
    let old = ("ASCEND_MOCK_SOC", "Ascend910A");
    assert_eq!(said(8, 1, &[old]), vec![refused(0, 4); 8]);
    assert_eq!(said(1, 8, &[old]), vec![refused(0, 4); 8]);
    // A pair of one server, though PCIe joins ranks 0 and 3, too, which messages could serve.
    let three = ("ASCEND_MOCK_MESH", "3");
    assert_eq!(said(3, 2, &[three]), vec![refused(2, 3); 6]);
}

#[test]
fn shared_is_made_over_hccs() {
    for soc in ["Ascend910B1", "Ascend910_9391", "Ascend950PR_9599"] {
        assert_eq!(
            said(2, 2, &[("ASCEND_MOCK_SOC", soc)]),
            ["made"; 4],
            "{soc}"
        );
    }
    // Each server is a mesh: messages go between them.
    let old = ("ASCEND_MOCK_SOC", "Ascend910A");
    assert_eq!(said(2, 4, &[old]), ["made"; 8]);
}

#[test]
fn shared_is_made_where_the_library_does_not_tell_what_joins_devices() {
    let pcie = ("ASCEND_MOCK_MESH", "1");
    assert_eq!(said(2, 1, &[pcie]), vec![refused(0, 1); 2]);
    let folder = folder("without-topology");
    let acl = acl_without("aclrtGetDevicesTopo", &folder);
    let older = ("LD_PRELOAD", acl.to_str().unwrap());
    let said = said(2, 1, &[pcie, older]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(said, ["made"; 2]);
}
