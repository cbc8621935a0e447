//! `python/adasum/_options.py` is made from the table of options. `ADASUM_BLESS=1 cargo test --test it -- header python` writes it.

use adasum::reduce::{OPTIONS, OptionInfo};

use crate::interface::header::root;

const HEAD: &str = "\
\"\"\"The options of worlds and reducers. Made from src/reduce/options/table.rs by a test: do not edit.\"\"\"

from typing import Literal, Optional, Sequence, TypedDict, Union


class OptionValues(TypedDict, total=False):
    \"\"\"Keywords of worlds, reducers and `adasum.Options`. None leaves the default.\"\"\"
";

/// The Python type of what an option may be.
fn python_type(values: &str) -> String {
    let literal = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        format!("Literal[{}]", quoted.join(", "))
    };
    let numbers = "Union[int, Literal[\"auto\"]]";
    match values {
        "0 or 1" => "bool".to_owned(),
        "a whole number above 0" | "1 to 64" | "whole milliseconds above 0" => "int".to_owned(),
        "a finite number" | "a number of at least 0 and below 1" => "float".to_owned(),
        "auto or a whole number above 0" | "auto or 2 to 8" | "auto or a whole number" => {
            numbers.to_owned()
        }
        "all, none or ascending positions as 3,7" => {
            format!("Union[Sequence[int], {}]", literal(&["all", "none"]))
        }
        "all or ascending ranks as 0,4" => format!("Union[Sequence[int], {}]", literal(&["all"])),
        _ if values.contains(" as ") => "str".to_owned(),
        _ => {
            let words: Vec<&str> = values
                .split(", ")
                .flat_map(|part| part.split(" or "))
                .collect();
            let plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            assert!(
                words.len() >= 2 && words.iter().all(plain),
                "no Python type for {values:?}"
            );
            literal(&words)
        }
    }
}

/// Letters of a line.
const WIDTH: usize = 130;

fn generated() -> String {
    let mut text = HEAD.to_owned();
    for OptionInfo {
        name,
        values,
        default,
        help,
        ..
    } in &OPTIONS
    {
        let kind = python_type(values);
        text += &format!("\n    {name}: Optional[{kind}]\n");
        let mut line = "    \"\"\"".to_owned();
        for word in help.split(' ') {
            if line.len() + word.len() > WIDTH {
                text += &format!("{}\n", line.trim_end());
                line = "    ".to_owned();
            }
            line += &format!("{word} ");
        }
        text += &format!("{}.\n\n", line.trim_end());
        text += &format!("    {values}; default {default}\"\"\"\n");
    }
    text
}

#[test]
fn python_options_are_those_of_the_table() {
    let file = root().join("python/adasum/_options.py");
    if std::env::var_os("ADASUM_BLESS").is_some() {
        std::fs::write(&file, generated()).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == generated(),
        "python/adasum/_options.py is not what the table gives: ADASUM_BLESS=1 cargo test --test it header"
    );
}
