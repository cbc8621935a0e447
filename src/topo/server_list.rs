//! Tables of versions 1.0 (servers) and 1.2 (servers in superpods).

use std::collections::{HashMap, HashSet};

use super::device::{Devices, Rules, check_count, server_id};
use super::field::Field;
use super::product::Product;
use super::table::Contents;
use super::{Section, Server};
use crate::error::quote;

/// Reads a table of servers. `None` if there is no list of them to look at.
pub(super) fn read(root: &Field<'_>, superpods: bool, product: Product) -> Option<Contents> {
    let list = root.get("server_list")?.elements()?;
    check_server_count(root, list.len());
    let pods_field = root.find("super_pod_list").filter(|_| superpods);
    let pods = pods_field.as_ref().map(Field::elements);
    let rules = Rules {
        product,
        // Devices of one superpod reach each other without an address.
        several: match &pods {
            None => list.len() > 1,
            Some(pods) => pods.as_ref().is_some_and(|pods| pods.len() > 1),
        },
        superpod_fields: superpods,
        in_superpods: pods.is_some(),
        ranked: true,
    };
    let mut devices = Devices::new(rules);
    let read: Vec<_> = list
        .iter()
        .enumerate()
        .map(|(index, field)| server(field, index, &mut devices))
        .collect();
    devices.check_ranks();

    let ids: Option<Vec<&str>> = read.iter().map(|(id, _)| id.as_deref()).collect();
    let pod_of = match (&pods, &ids) {
        (Some(Some(pods)), Some(ids)) => check_superpods(pods, ids, &list),
        _ => Vec::new(),
    };
    let mut servers: Vec<Server> = read.into_iter().filter_map(|(_, server)| server).collect();
    if devices.ranks_known() {
        for server in &mut servers {
            server.devices.sort_by_key(|device| device.rank);
            check_block(server, &list[server.index]);
        }
        let fields: Vec<_> = servers.iter().map(|s| list[s.index].clone()).collect();
        product.check(&servers, &fields);
    }
    servers.sort_by_key(Server::first_rank);
    let sections = sections(&pod_of, &servers);
    Some(Contents { servers, sections })
}

fn check_server_count(root: &Field<'_>, servers: usize) {
    if root.find("server_count").is_none() {
        // As HCCL: the list itself says how many there are.
        root.warn("server_count is missing");
    }
    check_count(root, "server_count", servers, "server_list");
}

/// Reads a server: its `server_id` and all of it, each if it could be read.
fn server<'a>(
    field: &Field<'a>,
    index: usize,
    devices: &mut Devices<'a>,
) -> (Option<String>, Option<Server>) {
    if !field.is_object() {
        devices.mark_incomplete();
        return (None, None);
    }
    let id = devices.unique_server_id(field);
    if let Some(host) = field.find("host_ip") {
        host.addresses();
    }
    let list = field.get("device").and_then(|list| list.elements());
    let Some(list) = list else {
        devices.mark_incomplete();
        return (id, None);
    };
    let mut on_server = HashMap::new();
    // Every device is read, so that all faults are found.
    let read: Vec<_> = list
        .iter()
        .map(|device| devices.read(device, &mut on_server))
        .collect();
    let devices = read.into_iter().collect::<Option<Vec<_>>>();
    let server = id
        .clone()
        .zip(devices)
        .map(|(id, devices)| Server { index, id, devices });
    (id, server)
}

fn check_block(server: &Server, field: &Field<'_>) {
    for pair in server.devices.windows(2) {
        let (before, after) = (pair[0].rank, pair[1].rank);
        if after != before + 1 {
            field.wrong(format!(
                "ranks of a server must be one block, but after rank {before} comes rank {after}"
            ));
            return;
        }
    }
}

/// Checks that every server is in one superpod and that the servers of a superpod follow each other in `server_list`.
/// Returns `super_pod_id` and index of the superpod of each server that has one.
fn check_superpods(
    pods: &[Field<'_>],
    ids: &[&str],
    servers: &[Field<'_>],
) -> Vec<Option<(String, usize)>> {
    let index_of: HashMap<&str, usize> = ids.iter().copied().zip(0..).collect();
    let mut pod_of: Vec<Option<(String, usize)>> = vec![None; ids.len()];
    let mut names = HashSet::new();
    let mut complete = true;
    for (pod_index, pod) in pods.iter().enumerate() {
        let Some((name, members)) = superpod(pod, &mut names) else {
            complete = false;
            continue;
        };
        for member in members {
            let id = member
                .is_object()
                .then(|| member.get("server_id"))
                .flatten()
                .and_then(|field| Some((server_id(&field)?, field)));
            let Some((id, field)) = id else {
                complete = false;
                continue;
            };
            match index_of.get(id.as_str()) {
                None => field.wrong(format!("{} is not in server_list", quote(&id))),
                Some(&server) => match &pod_of[server] {
                    None => pod_of[server] = Some((name.clone(), pod_index)),
                    Some((_, first)) => field.wrong(format!(
                        "{} is in super_pod_list[{first}] already",
                        quote(&id)
                    )),
                },
            }
        }
    }
    if complete {
        check_pod_blocks(&pod_of, pods, servers);
    }
    check_super_devices(&pod_of, servers);
    pod_of
}

/// Checks that no two devices of a superpod have the same `super_device_id`.
fn check_super_devices(pod_of: &[Option<(String, usize)>], servers: &[Field<'_>]) {
    let mut seen: HashMap<(usize, u32), String> = HashMap::new();
    for (server, pod) in servers.iter().zip(pod_of) {
        let Some((_, pod)) = pod else { continue };
        for device in server.peek("device") {
            let text = device.peek_text("super_device_id");
            let Some(id) = text.and_then(|text| text.parse().ok()) else {
                continue;
            };
            match seen.get(&(*pod, id)) {
                None => {
                    seen.insert((*pod, id), device.path().to_owned());
                }
                Some(first) => {
                    if let Some(field) = device.find("super_device_id") {
                        field.wrong(format!("\"{id}\" is already that of {first}"));
                    }
                }
            }
        }
    }
}

fn superpod<'a>(pod: &Field<'a>, names: &mut HashSet<String>) -> Option<(String, Vec<Field<'a>>)> {
    if !pod.is_object() {
        return None;
    }
    let members = pod.get("server_list").and_then(|list| list.elements());
    let field = pod.get("super_pod_id")?;
    let name = field.text()?;
    if name.is_empty() {
        field.wrong("is empty");
    } else if !names.insert(name.to_owned()) {
        field.wrong(format!(
            "{} is that of another superpod already",
            quote(name)
        ));
    }
    Some((name.to_owned(), members?))
}

fn check_pod_blocks(pod_of: &[Option<(String, usize)>], pods: &[Field<'_>], servers: &[Field<'_>]) {
    let mut seen = HashSet::new();
    let mut last = None;
    for (server, pod) in servers.iter().zip(pod_of) {
        let Some((_, pod)) = pod else {
            server.wrong("is in no superpod");
            continue;
        };
        if last != Some(*pod) && !seen.insert(*pod) {
            pods[*pod].wrong(format!(
                "the servers of a superpod must follow each other in server_list, but {} is apart from the others",
                server.path()
            ));
        }
        last = Some(*pod);
    }
}

/// The superpods in the order of their ranks.
fn sections(pod_of: &[Option<(String, usize)>], servers: &[Server]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut place_of = HashMap::new();
    for server in servers {
        let Some((name, pod)) = pod_of.get(server.index).and_then(Option::as_ref) else {
            continue;
        };
        let place = *place_of.entry(*pod).or_insert_with(|| {
            sections.push(Section {
                name: name.clone(),
                ranks: Vec::new(),
            });
            sections.len() - 1
        });
        let ranks = server.devices.iter().map(|device| device.rank);
        sections[place].ranks.extend(ranks);
    }
    sections
}
