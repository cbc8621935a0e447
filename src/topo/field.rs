//! Walks a JSON document and knows where it is, so that every fault names its place and its field.
//!
//! What cannot be read is noted as a fault and comes back as `None`. Must not know what a rank table means.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::fault::{FaultKind, Faults};
use super::json::{Node, Value};
use crate::error::quote;

/// The longest name that stands in a path as it is.
const PLAIN: usize = 64;

/// A value of the document and the path that leads to it.
#[derive(Clone)]
pub(super) struct Field<'a> {
    faults: &'a Faults,
    path: String,
    node: &'a Node<'a>,
}

impl<'a> Field<'a> {
    /// The whole document.
    pub(super) fn root(faults: &'a Faults, node: &'a Node<'a>) -> Self {
        let path = String::new();
        Field { faults, path, node }
    }

    /// Path of this field from the root, as in `server_list[1].device[3].rank_id`.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Notes what is wrong with this value.
    pub(super) fn wrong(&self, message: impl Display) {
        self.fault(FaultKind::Wrong, message);
    }

    /// Notes a fault of `kind` at this value.
    pub(super) fn fault(&self, kind: FaultKind, message: impl Display) {
        let (offset, path) = (self.node.offset, self.path.clone());
        self.faults.add(kind, offset, path, message.to_string());
    }

    /// Notes what is allowed, but probably not meant.
    pub(super) fn warn(&self, message: impl Display) {
        let path = self.path.clone();
        self.faults
            .warn(self.node.offset, path, message.to_string());
    }

    /// Whether this is an object, which is noted if not. Only then may its members be asked for.
    pub(super) fn is_object(&self) -> bool {
        let object = matches!(self.node.value, Value::Object(_));
        if !object {
            self.wrong_type("an object");
        }
        object
    }

    /// The member `name`, which must be there.
    pub(super) fn get(&self, name: &str) -> Option<Field<'a>> {
        let found = self.find(name);
        if found.is_none() {
            let (offset, path) = (self.node.offset, self.join(name));
            let message = "missing".to_owned();
            self.faults.add(FaultKind::Missing, offset, path, message);
        }
        found
    }

    /// The member `name`, if it is there; of several the last, as HCCL reads it.
    pub(super) fn find(&self, name: &str) -> Option<Field<'a>> {
        let Value::Object(members) = &self.node.value else {
            return None;
        };
        let (_, node) = members.iter().rev().find(|(known, _)| known == name)?;
        Some(Field {
            faults: self.faults,
            path: self.join(name),
            node,
        })
    }

    /// The elements of an array, of which there must be at least one.
    pub(super) fn elements(&self) -> Option<Vec<Field<'a>>> {
        let items = self.items()?;
        if items.is_empty() {
            self.wrong("is empty");
            return None;
        }
        Some(items)
    }

    /// The elements of an array, which may have none.
    pub(super) fn items(&self) -> Option<Vec<Field<'a>>> {
        let Value::Array(items) = &self.node.value else {
            self.wrong_type("an array");
            return None;
        };
        let element = |(index, node)| Field {
            faults: self.faults,
            path: format!("{}[{index}]", self.path),
            node,
        };
        Some(items.iter().enumerate().map(element).collect())
    }

    /// The elements of the member `name`, as far as there are any; notes nothing.
    pub(super) fn peek(&self, name: &str) -> Vec<Field<'a>> {
        let list = self.find(name);
        match list.as_ref().map(|list| &list.node.value) {
            Some(Value::Array(_)) => list.and_then(|list| list.items()).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The text of the member `name`, if it is there and is one; notes nothing.
    pub(super) fn peek_text(&self, name: &str) -> Option<&'a str> {
        match &self.find(name)?.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A string: in tables before version 2.0 every scalar is one.
    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.wrong_type("a string");
                None
            }
        }
    }

    /// A string of decimal digits that fits `T`.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        let text = self.text()?;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        if number.is_none() {
            self.wrong(format!("{} is not a number in range", quote(text)));
        }
        number
    }

    /// A JSON number in `range`, where a table has such.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let Value::Raw(raw) = &self.node.value else {
            self.wrong_type("a number");
            return None;
        };
        if !raw
            .get()
            .starts_with(|c: char| c.is_ascii_digit() || c == '-')
        {
            self.wrong_type("a number");
            return None;
        }
        let number = raw
            .get()
            .parse()
            .ok()
            .filter(|number| range.contains(number));
        if number.is_none() {
            let (first, last) = range.into_inner();
            let text = quote(raw.get());
            self.wrong(format!(
                "{} is not a number from {first} to {last}",
                text.trim_matches('"')
            ));
        }
        number
    }

    /// A string with one address, or several separated by commas.
    pub(super) fn addresses(&self) -> Option<Vec<IpAddr>> {
        let text = self.text()?;
        let mut addresses = Vec::new();
        for part in text.split(',') {
            match part.parse() {
                Ok(address) => addresses.push(address),
                Err(_) if part.contains('*') => {
                    let part = quote(part);
                    self.wrong(format!("{part} is masked: put the real address there"));
                    return None;
                }
                Err(_) => {
                    self.wrong(format!("{} is not an IP address", quote(part)));
                    return None;
                }
            }
        }
        Some(addresses)
    }

    fn join(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn wrong_type(&self, expected: &str) {
        let found = match &self.node.value {
            Value::Text(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
            Value::Raw(raw) => match raw.get().as_bytes().first() {
                Some(b'n') => "null",
                Some(b't' | b'f') => "a boolean",
                Some(b'[') => "an array",
                Some(b'{') => "an object",
                _ => "a number",
            },
        };
        self.wrong(format!("expected {expected}, found {found}"));
    }
}

/// Warns of members with the same name, everywhere in the document: readers differ in which one they take.
pub(super) fn warn_of_duplicates(field: &Field<'_>) {
    match &field.node.value {
        Value::Object(members) => {
            let mut names = std::collections::HashSet::new();
            for (name, node) in members {
                let member = Field {
                    faults: field.faults,
                    path: field.join(&shortened(name)),
                    node,
                };
                if !names.insert(name) {
                    member.warn("is there before: the last one counts");
                }
                warn_of_duplicates(&member);
            }
        }
        Value::Array(items) => {
            for (index, node) in items.iter().enumerate() {
                warn_of_duplicates(&Field {
                    faults: field.faults,
                    path: format!("{}[{index}]", field.path),
                    node,
                });
            }
        }
        _ => (),
    }
}

/// A name as a part of a path: one short line, whatever the file holds.
fn shortened(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= PLAIN && name.chars().all(plain) {
        return name.to_owned();
    }
    quote(name)
}
