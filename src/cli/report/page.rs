//! `index.html`: one file, without scripts and without anything from elsewhere.

use std::fmt::Write;

use crate::cli::report::chart::Chart;
use crate::cli::report::svg::{STYLE, escape};

const LAYOUT: &str = "\
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1240px;padding:16px;background:#ffffff;color:#1f2328;font:16px/1.5 'DejaVu Sans',Verdana,Arial,sans-serif}
h1{font-size:1.5em;margin:.2em 0 .6em}
table{border-collapse:collapse}
td{padding:3px 16px 3px 0;vertical-align:top;overflow-wrap:anywhere}
td:first-child{color:#57606a;white-space:nowrap}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:20px;margin-top:20px}
figure{margin:0;border:1px solid #d8dee4;border-radius:6px;padding:8px}
figcaption{font-size:.85em;text-align:right}
svg{display:block;width:100%;height:auto}
a{color:#0057b8}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}td:first-child{color:#9da7b3}figure{border-color:#30363d}a{color:#6cb6ff}}
";

/// The page: rows of a name and a text, then the pictures.
pub(crate) fn page(title: &str, facts: &[(String, String)], charts: &[Chart]) -> String {
    let title = escape(title);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{LAYOUT}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>\n"
    );
    for (name, fact) in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td></tr>",
            escape(name),
            escape(fact)
        );
    }
    text += "</table>\n<main>\n";
    if charts.is_empty() {
        text += "<p>No rank has recorded anything: a program records by writing to the folder that ADASUM_STATISTICS_DIR names.</p>\n";
    }
    for chart in charts {
        let name = escape(&chart.name);
        let _ = writeln!(
            text,
            "<figure>\n{}<figcaption><a href=\"{name}.csv\">CSV</a> <a href=\"{name}.svg\">SVG</a></figcaption>\n</figure>",
            chart.draw().embedded()
        );
    }
    text + "</main>\n</body>\n</html>\n"
}
