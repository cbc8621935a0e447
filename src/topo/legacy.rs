//! Tables without a version: groups of instances (pods), whose ranks count in the order of the table.

use std::collections::HashMap;

use super::device::{Devices, Rules, check_count, server_id};
use super::field::Field;
use super::product::Product;
use super::table::Contents;
use super::{Section, Server};
use crate::error::quote;

/// A server while its instances are read.
struct PartialServer<'a> {
    server: Server,
    on_server: HashMap<i32, String>,
    field: Field<'a>,
}

/// The servers so far, in the order in which they come, and which has which `server_id`.
#[derive(Default)]
struct Servers<'a> {
    list: Vec<PartialServer<'a>>,
    by_id: HashMap<String, usize>,
}

/// Reads a table of groups. `None` if there is no list of them to look at.
pub(super) fn read(root: &Field<'_>, product: Product) -> Option<Contents> {
    let groups = root.get("group_list")?.elements()?;
    check_count(root, "group_count", groups.len(), "group_list");
    let rules = Rules {
        product,
        several: has_several_servers(&groups),
        superpod_fields: false,
        in_superpods: false,
        ranked: false,
    };
    let mut devices = Devices::new(rules);
    let mut servers = Servers::default();
    let mut sections = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let ranks = read_group(group, &mut servers, &mut devices);
        let name = group.peek_text("group_name");
        sections.push(Section {
            name: name.map_or_else(|| index.to_string(), str::to_owned),
            ranks,
        });
    }
    let fields: Vec<_> = servers
        .list
        .iter()
        .map(|partial| partial.field.clone())
        .collect();
    let servers: Vec<_> = servers
        .list
        .into_iter()
        .map(|partial| partial.server)
        .collect();
    if devices.ranks_known() {
        product.check(&servers, &fields);
    }
    Some(Contents { servers, sections })
}

/// Whether instances name more than one server. What cannot be read is noted later.
fn has_several_servers(groups: &[Field<'_>]) -> bool {
    let mut ids = groups
        .iter()
        .flat_map(|group| group.peek("instance_list"))
        .filter_map(|instance| instance.peek_text("server_id"));
    let first = ids.next();
    ids.any(|id| Some(id) != first)
}

/// Reads a group and returns its ranks.
fn read_group<'a>(
    group: &Field<'a>,
    servers: &mut Servers<'a>,
    devices: &mut Devices<'a>,
) -> Vec<u32> {
    let instances = group
        .is_object()
        .then(|| group.get("instance_list"))
        .flatten()
        .and_then(|list| list.elements());
    let Some(instances) = instances else {
        devices.mark_incomplete();
        return Vec::new();
    };
    check_count(group, "instance_count", instances.len(), "instance_list");
    let mut ranks = Vec::new();
    let mut complete = true;
    for instance in &instances {
        match read_instance(instance, servers, devices) {
            Some(more) => ranks.extend(more),
            None => complete = false,
        }
    }
    if complete {
        check_count(group, "device_count", ranks.len(), "the group");
    }
    ranks
}

/// Reads an instance into the server of its `server_id`, and returns its ranks.
fn read_instance<'a>(
    instance: &Field<'a>,
    servers: &mut Servers<'a>,
    devices: &mut Devices<'a>,
) -> Option<Vec<u32>> {
    if !instance.is_object() {
        devices.mark_incomplete();
        return None;
    }
    let id = instance
        .get("server_id")
        .and_then(|field| server_id(&field));
    let list = instance.get("devices").and_then(|list| list.elements());
    let mut apart = HashMap::new();
    let position = id.map(|id| position(id, instance, servers));
    let on_server = match position {
        Some(index) => &mut servers.list[index].on_server,
        None => &mut apart,
    };
    let Some(list) = list else {
        devices.mark_incomplete();
        return None;
    };
    let read: Vec<_> = list
        .iter()
        .map(|device| devices.read(device, on_server))
        .collect();
    let read = read.into_iter().collect::<Option<Vec<_>>>()?;
    let ranks = read.iter().map(|device| device.rank).collect();
    servers.list[position?].server.devices.extend(read);
    Some(ranks)
}

/// The place of the server `id` in `servers`, where it is put if it is new. Instances of one server follow each other.
fn position<'a>(id: String, instance: &Field<'a>, servers: &mut Servers<'a>) -> usize {
    if let Some(&index) = servers.by_id.get(&id) {
        if index + 1 != servers.list.len() {
            let (id, first) = (quote(&id), servers.list[index].field.path());
            instance.wrong(format!(
                "the ranks of a server must be one block, but server {id} of {first} has others in between"
            ));
        }
        return index;
    }
    let index = servers.list.len();
    servers.by_id.insert(id.clone(), index);
    let devices = Vec::new();
    servers.list.push(PartialServer {
        server: Server { index, id, devices },
        on_server: HashMap::new(),
        field: instance.clone(),
    });
    index
}
