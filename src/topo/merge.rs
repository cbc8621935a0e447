//! Joins tables of version 1.0 into one, with the name, order and bytes of MindSpore's `merge_hccl.py`, but checked.

use std::borrow::Cow;
use std::path::Path;

use super::json::{self, Node, Value};
use super::make::NewTable;
use super::{Product, RankTable, Version, table};
use crate::error::{Context, Error, Result};

/// One table of all servers of `tables`, each the name and the content of a file, in their order: ranks are counted
/// anew in the order of the files, other fields stay as they are.
///
/// # Errors
/// If a table has a fault or another version, or if they do not go together; the message says which positions disagree.
pub fn merge<'a>(tables: impl IntoIterator<Item = (&'a Path, &'a [u8])>) -> Result<NewTable> {
    let mut merged = Merged::default();
    for (path, bytes) in tables {
        let read = RankTable::parse(path, bytes)?;
        if read.version() != Version::V1_0 {
            return Err(Error::unsupported(format!(
                "{}: only tables of version 1.0 are merged, this is one {}",
                table::display(path),
                read.version()
            )));
        }
        merged.add(path, bytes)?;
    }
    merged.finish()
}

#[derive(Default)]
struct Merged<'a> {
    servers: Vec<Node<'a>>,
    /// The place of each server in its table.
    origins: Vec<String>,
    /// The other fields of the first table.
    others: Vec<(Cow<'a, str>, Node<'a>)>,
    ranks: u32,
}

impl<'a> Merged<'a> {
    fn add(&mut self, path: &Path, bytes: &'a [u8]) -> Result<()> {
        let name = table::display(path);
        let root = json::text(bytes)
            .and_then(json::parse)
            .map_err(|(_, _, message)| Error::invalid(format!("{name}: {message}")))?;
        let Value::Object(members) = root.value else {
            return Err(Error::invalid(format!("{name}: not an object")));
        };
        let is_first = self.origins.is_empty();
        let mut list = Vec::new();
        for (key, node) in members {
            match (key.as_ref(), node.value) {
                // As in a check: of several members the last counts.
                ("server_list", Value::Array(items)) => list = items,
                ("version" | "server_count" | "status", _) => (),
                (_, value) if is_first => {
                    let offset = node.offset;
                    self.others.push((key, Node { offset, value }));
                }
                _ => (),
            }
        }
        for (index, mut server) in list.into_iter().enumerate() {
            self.renumber(&mut server);
            self.servers.push(server);
            self.origins.push(format!("server_list[{index}] of {name}"));
        }
        Ok(())
    }

    fn renumber(&mut self, server: &mut Node<'a>) {
        let Value::Object(members) = &mut server.value else {
            return;
        };
        let lists = members.iter_mut().filter(|(name, _)| name == "device");
        for device in lists.flat_map(|(_, list)| list.elements_mut()) {
            let Value::Object(fields) = &mut device.value else {
                continue;
            };
            for (name, field) in fields {
                if name == "rank_id" {
                    field.value = Value::Text(self.ranks.to_string().into());
                }
            }
            self.ranks += 1;
        }
    }

    fn finish(self) -> Result<NewTable> {
        let text_node = |text: &str| Node::new(Value::Text(text.to_owned().into()));
        let count = self.servers.len();
        let mut members = vec![
            ("version".into(), text_node("1.0")),
            ("server_count".into(), text_node(&count.to_string())),
            ("server_list".into(), Node::new(Value::Array(self.servers))),
        ];
        members.extend(self.others);
        members.push(("status".into(), text_node("completed")));
        let text = json::python_style(&Node::new(Value::Object(members)))?;

        let file_name = format!("hccl_{count}s_{}p.json", self.ranks);
        let report = RankTable::check(Path::new("merged"), text.as_bytes(), Product::Any);
        if let Some(fault) = report.faults().first() {
            // The merged text is never written, so its lines would help nobody: servers are named instead.
            let message = format!("{}: {}", fault.field, fault.message);
            let origins = self.origins.iter().enumerate();
            let named: Vec<String> = origins
                .filter(|(index, _)| message.contains(&format!("server_list[{index}]")))
                .map(|(index, origin)| format!("server_list[{index}] is {origin}"))
                .collect();
            return Err(Error::invalid(format!("{message} ({})", named.join(", "))))
                .context(|| "the tables do not go together");
        }
        Ok(NewTable { file_name, text })
    }
}

impl<'a> Node<'a> {
    /// A value that was not read from a text.
    fn new(value: Value<'a>) -> Self {
        Node { offset: 0, value }
    }

    fn elements_mut(&mut self) -> &mut [Node<'a>] {
        match &mut self.value {
            Value::Array(items) => items,
            _ => &mut [],
        }
    }
}
