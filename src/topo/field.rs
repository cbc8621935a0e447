//! Walks a JSON document and knows where it is, so that every complaint names file and field.
//!
//! Must not know what a rank table means: `table.rs` does.

use std::fmt::Display;

use serde_json::Value;

use crate::error::{Error, Result};

/// Longest part of a value that a message repeats.
const QUOTE: usize = 64;

/// A value of the document with the file and the path that lead to it.
pub(super) struct Field<'a> {
    file: &'a str,
    path: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    /// The whole document.
    pub(super) fn root(file: &'a str, value: &'a Value) -> Self {
        let path = String::new();
        Field { file, path, value }
    }

    /// Path of this field from the root, as in `server_list[1].device[3].rank_id`.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// `file: path: message`.
    pub(super) fn error(&self, message: impl Display) -> Error {
        Error::invalid(self.line(message))
    }

    /// The same sentence for something that is well formed but not read here.
    pub(super) fn unsupported(&self, message: impl Display) -> Error {
        Error::unsupported(self.line(message))
    }

    fn line(&self, message: impl Display) -> String {
        if self.path.is_empty() {
            format!("{}: {message}", self.file)
        } else {
            format!("{}: {}: {message}", self.file, self.path)
        }
    }

    /// The member `name`, which must be there.
    pub(super) fn get(&self, name: &str) -> Result<Field<'a>> {
        match self.find(name)? {
            Some(field) => Ok(field),
            None => Err(Field {
                file: self.file,
                path: self.join(name),
                value: self.value,
            }
            .error("missing")),
        }
    }

    /// The member `name`, if it is there.
    pub(super) fn find(&self, name: &str) -> Result<Option<Field<'a>>> {
        let Value::Object(members) = self.value else {
            return Err(self.wrong_type("an object"));
        };
        Ok(members.get(name).map(|value| Field {
            file: self.file,
            path: self.join(name),
            value,
        }))
    }

    /// The elements of an array, of which there must be at least one.
    pub(super) fn elements(&self) -> Result<Vec<Field<'a>>> {
        let Value::Array(values) = self.value else {
            return Err(self.wrong_type("an array"));
        };
        if values.is_empty() {
            return Err(self.error("is empty"));
        }
        let element = |(index, value)| Field {
            file: self.file,
            path: format!("{}[{index}]", self.path),
            value,
        };
        Ok(values.iter().enumerate().map(element).collect())
    }

    /// A string: in a rank table every scalar is one.
    pub(super) fn text(&self) -> Result<&'a str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// A string of decimal digits that fits `T`.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Result<T> {
        let text = self.text()?;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| self.error(format!("{} is not a number in range", quote(text))))
    }

    fn join(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn wrong_type(&self, expected: &str) -> Error {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.error(format!("expected {expected}, found {found}"))
    }
}

/// `text` in quotes, on one line, shortened if it is long.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTE) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}
