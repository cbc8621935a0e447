//! JSON with positions: a tree of values that know where in the text they stand, members in the order of the file.
//!
//! The grammar is serde_json's. Must not know what a rank table means.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::PrettyFormatter;
use serde_json::value::RawValue;

use crate::error::Error;

/// The deepest nesting that is parsed; a rank table needs 8. Deeper values are kept as they are written.
const DEEPEST: usize = 16;

/// A value and the byte of the text at which it starts.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) offset: usize,
    pub(super) value: Value<'a>,
}

/// A value; `Raw` is a scalar that is not a string, or something nested too deeply to matter.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    Raw(&'a RawValue),
}

/// Why a file is not JSON: line, column and a sentence.
pub(super) type Unreadable = (usize, usize, String);

/// The text of a file. A byte order mark is skipped, as HCCL's reader does.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let (line, column) = position(bytes, error.valid_up_to());
        (line, column, "not UTF-8 text".to_owned())
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The one JSON value that `text` is.
pub(super) fn parse(text: &str) -> Result<Node<'_>, Unreadable> {
    // First the whole of it by the full grammar: raw values are only skimmed over.
    serde_json::from_str::<serde_json::Value>(text)
        .and_then(|_| node(text, serde_json::from_str(text)?, 0))
        .map_err(|error| {
            let full = error.to_string();
            let reason = full.split(" at line ").next().unwrap_or(&full);
            let message = format!("not valid JSON: {reason}");
            (error.line(), error.column(), message)
        })
}

/// Line and column (of bytes) at `offset`, both from 1.
pub(super) fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n');
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    (
        lines + 1,
        before.len() - line_start.map_or(0, |at| at + 1) + 1,
    )
}

fn node<'a>(text: &str, raw: &'a RawValue, depth: usize) -> serde_json::Result<Node<'a>> {
    let source = raw.get();
    let child = |raw| node(text, raw, depth + 1);
    let value = match source.as_bytes().first() {
        Some(b'"') => Value::Text(serde_json::from_str::<Text>(source)?.0),
        Some(b'[') if depth < DEEPEST => {
            let items: Vec<&RawValue> = serde_json::from_str(source)?;
            Value::Array(items.into_iter().map(child).collect::<Result<_, _>>()?)
        }
        Some(b'{') if depth < DEEPEST => {
            let members = serde_json::from_str::<Members>(source)?.0;
            let member = |(name, raw)| Ok((name, child(raw)?));
            Value::Object(
                members
                    .into_iter()
                    .map(member)
                    .collect::<serde_json::Result<_>>()?,
            )
        }
        _ => Value::Raw(raw),
    };
    Ok(Node {
        // A raw value is a slice of the text.
        offset: source.as_ptr().addr() - text.as_ptr().addr(),
        value,
    })
}

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in the order of the text, with those whose names are there twice.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Array(items) => serializer.collect_seq(items),
            Value::Raw(raw) => raw.serialize(serializer),
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// `value` as Python's `json.dump(value, file, indent=4)` writes it: indented by 4, pure ASCII, no line break at the end.
///
/// # Errors
/// If the value cannot be JSON.
pub(super) fn python_style(value: &impl Serialize) -> crate::Result<String> {
    let mut bytes = Vec::new();
    let style = PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, style);
    value
        .serialize(&mut serializer)
        .map_err(|error| Error::invalid(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| Error::invalid(error.to_string()))?;
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        // In JSON white space stands as it is between values only, and all else that is not ASCII within strings.
        if matches!(character, ' '..='~' | '\n' | '\r' | '\t') {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii += &format!("\\u{unit:04x}");
            }
        }
    }
    Ok(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_place() {
        let text = "{\n  \"a\": [1,\n\t\"x\\u0041\"],\n  \"a\": {}}";
        let root = parse(text).unwrap();
        let Value::Object(members) = &root.value else {
            panic!("not an object")
        };
        let Value::Array(items) = &members[0].1.value else {
            panic!("not an array")
        };
        assert!(matches!(&items[1].value, Value::Text(text) if text == "xA"));
        let at = |node: &Node<'_>| position(text.as_bytes(), node.offset);
        assert_eq!(at(&root), (1, 1));
        assert_eq!((at(&members[0].1), at(&items[0])), ((2, 8), (2, 9)));
        assert_eq!((at(&items[1]), at(&members[1].1)), ((3, 2), (4, 8)));
    }

    #[test]
    fn what_is_written_is_what_python_writes() {
        let root = parse("{\"b\":[\"\\u00e9\u{1f600}\\n\u{7f}\",[],{}],\"a\":null}").unwrap();
        assert_eq!(
            python_style(&root).unwrap(),
            "{\n    \"b\": [\n        \"\\u00e9\\ud83d\\ude00\\n\\u007f\",\n        [],\n        {}\n    ],\n    \"a\": null\n}"
        );
    }
}
