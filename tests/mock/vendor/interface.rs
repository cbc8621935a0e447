//! What a table that bindgen made declares, as plain data that can be compared.

use std::collections::BTreeMap;

/// Everything that crosses the border to a library. Types are text with aliases resolved and names of arguments removed.
#[derive(Debug, Default)]
pub(super) struct Interface {
    /// Arguments and result by the function's name.
    pub(super) functions: BTreeMap<String, String>,
    /// Values of enumerators, with the type, and of constants.
    pub(super) values: BTreeMap<String, String>,
    /// Size and alignment of structures and unions.
    pub(super) layouts: BTreeMap<String, String>,
    /// Offset and type by `Structure::field`.
    pub(super) fields: BTreeMap<String, String>,
}

impl Interface {
    /// Reads the texts of both tables.
    pub(super) fn read(texts: &[String]) -> Interface {
        let text = words(&texts.join(" "));
        let aliases = aliases(&text);
        let mut interface = Interface::default();
        for table in ["Acl", "Hccl"] {
            interface.read_functions(body(&text, &format!("pub struct {table} {{")), &aliases);
        }
        interface.read_values(&text);
        interface.read_layouts(&text, &aliases);
        interface
    }

    fn read_functions(&mut self, table: &str, aliases: &BTreeMap<&str, &str>) {
        for entry in table.split("pub ").skip(1) {
            let Some((name, rest)) = entry.split_once(": Result<") else {
                continue;
            };
            let signature = rest
                .split_once("extern \"C\" fn")
                .and_then(|(_, rest)| rest.rsplit_once("::libloading::Error"))
                .unwrap_or_else(|| panic!("not a function: {entry}"))
                .0;
            self.functions
                .insert(name.to_owned(), plain_type(signature, aliases));
        }
    }

    /// `pub const NAME: TYPE = TYPE(1);` of an enumeration, `pub const NAME: u32 = 1;` of a constant or macro.
    fn read_values(&mut self, text: &str) {
        for entry in text.split("pub const ").skip(1) {
            let value = entry
                .split_once(';')
                .and_then(|(declaration, _)| declaration.split_once(": "))
                .and_then(|(name, rest)| Some((name, rest.split_once(" = ")?.1)));
            if let Some((name, value)) = value {
                let value = value.replace("( ", "(").replace(", )", ")");
                self.values.insert(name.to_owned(), value);
            }
        }
    }

    /// bindgen proves layouts by `["Size of X"][size_of::<X>() - 16usize]` and the like.
    fn read_layouts(&mut self, text: &str, aliases: &BTreeMap<&str, &str>) {
        let mut field_types = BTreeMap::new();
        for entry in text.split("[ \"").skip(1) {
            let Some((what, rest)) = entry.split_once('"') else {
                continue;
            };
            let number: String = rest
                .split_once(" - ")
                .map(|(_, number)| number.chars().take_while(char::is_ascii_digit).collect())
                .unwrap_or_default();
            if let Some(name) = what.strip_prefix("Size of ") {
                self.layouts.insert(name.to_owned(), format!("{number} B"));
                for kind in ["struct", "union"] {
                    collect_fields(text, kind, name, aliases, &mut field_types);
                }
            } else if let Some(name) = what.strip_prefix("Alignment of ") {
                if let Some(layout) = self.layouts.get_mut(name) {
                    *layout += &format!(" aligned to {number}");
                }
            } else if let Some(name) = what.strip_prefix("Offset of field: ") {
                let field_type = field_types.get(name).map_or("?", String::as_str);
                self.fields
                    .insert(name.to_owned(), format!("{field_type} at {number}"));
            }
        }
    }
}

fn collect_fields(
    text: &str,
    kind: &str,
    name: &str,
    aliases: &BTreeMap<&str, &str>,
    types: &mut BTreeMap<String, String>,
) {
    for field in body(text, &format!("pub {kind} {name} {{"))
        .split("pub ")
        .skip(1)
    {
        if let Some((field, rest)) = field.split_once(": ") {
            types.insert(format!("{name}::{field}"), plain_type(rest, aliases));
        }
    }
}

/// The text with single spaces, so that it does not matter where lines were broken.
fn words(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace("[\"", "[ \"")
}

/// What stands between `start`, which ends in a brace, and the end of the item.
fn body<'a>(text: &'a str, start: &str) -> &'a str {
    text.split_once(start)
        .and_then(|(_, rest)| rest.split_once('}'))
        .map_or("", |(body, _)| body)
}

fn aliases(text: &str) -> BTreeMap<&str, &str> {
    text.split("pub type ")
        .skip(1)
        .filter_map(|entry| entry.split_once(';')?.0.split_once(" = "))
        .collect()
}

/// A type or signature in the one form that is compared.
fn plain_type(text: &str, aliases: &BTreeMap<&str, &str>) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !is_name(first) {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if let Some(after) = after.strip_prefix(": ") {
            // The name of an argument.
            rest = after;
        } else if let Some(meaning) = aliases.get(word) {
            plain += &plain_type(meaning, aliases);
        } else {
            plain += word;
        }
    }
    let plain = plain.replace("::core::ffi::", "").replace(", )", ")");
    let plain = plain.replace("( ", "(").replace(" )", ")");
    plain.trim().trim_end_matches(',').to_owned()
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[test]
fn tables_are_read() {
    let text = "
        pub type Size = u64;
        pub struct aclThing { pub first: Size, pub second: [u8; 4usize], }
        const _: () = { [ \"Size of aclThing\", ][size_of::<aclThing>() - 16usize];
          [\"Alignment of aclThing\"][align_of::<aclThing>() - 8usize];
          [ \"Offset of field: aclThing::second\", ][offset_of!(aclThing, second) - 8usize]; };
        impl E { pub const E_ONE: E = E(1); }
        pub const ACL_TWO: u32 = 2;
        pub struct Acl { __library: L,
          pub aclDo: Result< unsafe extern \"C\" fn( a: Size, b: *mut aclThing, ) -> aclError, ::libloading::Error, >, }";
    let read = Interface::read(&[text.to_owned()]);
    assert_eq!(read.functions["aclDo"], "(u64, *mut aclThing) -> aclError");
    assert_eq!(read.values["E_ONE"], "E(1)");
    assert_eq!(read.values["ACL_TWO"], "2");
    assert_eq!(read.layouts["aclThing"], "16 B aligned to 8");
    assert_eq!(read.fields["aclThing::second"], "[u8; 4usize] at 8");
}
