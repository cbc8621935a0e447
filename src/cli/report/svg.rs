//! Pictures as SVG, with colours for light and dark, chosen by the reader's setting.

use std::fmt::Write;

/// Colours as classes: `ink` for text, `soft` for lesser text, `grid`, `paper`, `c0` to `c7` for what is drawn (`f0` to
/// `f7` filled), `mark` for values that lines are held against, `point` for what shows itself under the pointer.
/// A text that embeds several pictures needs it once.
pub(crate) const STYLE: &str = "\
.paper{fill:#ffffff}.ink{fill:#1f2328}.soft{fill:#57606a}.grid{stroke:#d8dee4;stroke-width:1;fill:none}
.axis{stroke:#57606a;stroke-width:1.2;fill:none}.mark{stroke:#57606a;stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.point{fill-opacity:0;stroke-opacity:0;stroke-width:2}.point:hover{stroke-opacity:1}.box{fill:#eef1f4;stroke:#8c959f}.line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.c0{stroke:#0057b8}.c1{stroke:#c2410c}.c2{stroke:#15803d}.c3{stroke:#9333ea}.c4{stroke:#b8860b}.c5{stroke:#0e7490}.c6{stroke:#be185d}.c7{stroke:#57606a}
.f0{fill:#0057b8}.f1{fill:#c2410c}.f2{fill:#15803d}.f3{fill:#9333ea}.f4{fill:#b8860b}.f5{fill:#0e7490}.f6{fill:#be185d}.f7{fill:#57606a}
text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.soft{fill:#9da7b3}.grid{stroke:#30363d}.axis{stroke:#9da7b3}.mark{stroke:#9da7b3}.box{fill:#1c2330;stroke:#6e7681}
.c0{stroke:#6cb6ff}.c1{stroke:#ff9b5e}.c2{stroke:#57d37f}.c3{stroke:#d2a8ff}.c4{stroke:#e3b341}.c5{stroke:#56d4dd}.c6{stroke:#ff8bc2}.c7{stroke:#9da7b3}
.f0{fill:#6cb6ff}.f1{fill:#ff9b5e}.f2{fill:#57d37f}.f3{fill:#d2a8ff}.f4{fill:#e3b341}.f5{fill:#56d4dd}.f6{fill:#ff8bc2}.f7{fill:#9da7b3}}
";

/// Number of colours.
pub(crate) const COLOURS: usize = 8;

/// A picture under construction. Coordinates are those of its view box.
pub(crate) struct Picture {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text is anchored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Picture {
    /// An empty picture with a title for readers that cannot see it.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        let body = format!(
            "<title>{}</title>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
            escape(title)
        );
        Picture {
            width,
            height,
            body,
        }
    }

    /// A text whose baseline begins, ends or has its middle at (x, y).
    pub(crate) fn text(
        &mut self,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        class: &str,
        text: &str,
    ) {
        let (x, y) = at;
        let (anchor, text) = (anchor.name(), escape(text));
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A text that runs upwards, its middle at (x, y).
    pub(crate) fn upright(&mut self, at: (f64, f64), size: f64, class: &str, text: &str) {
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x:.1} {y:.1})\">{text}</text>"
        );
    }

    /// A rectangle from its upper left corner.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\"/>"
        );
    }

    /// Straight lines through points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        let _ = writeln!(
            self.body,
            "<polyline class=\"{class}\" points=\"{points}\"/>"
        );
    }

    /// A dot.
    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, class: &str) {
        let (x, y) = at;
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
        );
    }

    /// A place in a line that tells `text` under the pointer.
    pub(crate) fn told(&mut self, at: (f64, f64), radius: f64, class: &str, text: &str) {
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(
            self.body,
            "<circle class=\"point {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{text}</title></circle>"
        );
    }

    /// The picture to be put into a page that has [`STYLE`].
    pub(crate) fn embedded(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\">\n{}</svg>\n",
            self.width, self.height, self.body
        )
    }

    /// The picture as a file of its own.
    pub(crate) fn file(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n\
             <style>{STYLE}</style>\n{}</svg>\n",
            self.body,
            w = self.width,
            h = self.height
        )
    }
}

/// Text for XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // No control character may stand in XML but these.
            other if other.is_control() && !matches!(other, '\n' | '\t') => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_picture() {
        assert_eq!(escape("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
        let mut picture = Picture::new(10.0, 5.0, "<x>");
        picture.text((1.0, 2.0), 8.0, Anchor::End, "ink", "</svg>");
        let text = picture.file();
        assert_eq!(text.matches("</svg>").count(), 1, "{text}");
        assert!(text.contains("prefers-color-scheme:dark"));
    }
}
