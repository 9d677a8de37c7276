//! The writer of a picture: shapes and text as SVG. Owns escaping and numbers; knows nothing of what is drawn.

/// A picture under way.
pub(super) struct Svg {
    text: String,
}

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture of this size, with what it shows in words.
    pub(super) fn new((width, height): (f64, f64), title: &str, description: &str) -> Self {
        let (title, description) = (escaped(title), escaped(description));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, \
             sans-serif\">\n<title>{title}</title>\n<desc>{description}</desc>\n"
        );
        Self { text }
    }

    /// Something with these attributes, written as they stand.
    pub(super) fn shape(&mut self, name: &str, attributes: &str) {
        self.line(&format!("<{name} {attributes}/>"));
    }

    /// A straight line.
    pub(super) fn stroke(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) {
        let (x1, y1, x2, y2) = (number(x1), number(y1), number(x2), number(y2));
        self.shape("line", &format!("x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}"));
    }

    /// A text at a place.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, style: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (number(x), number(y), escaped(text));
        self.line(&format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {style}>{text}</text>"));
    }

    /// Opens a group; what follows belongs to it until [`Svg::end`].
    pub(super) fn group(&mut self, attributes: &str) {
        self.line(&format!("<g {attributes}>"));
    }

    /// Ends a group.
    pub(super) fn end(&mut self) {
        self.line("</g>");
    }

    /// The whole picture.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A path that goes level to each point's place and then up or down to it.
pub(super) fn steps(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let mut before: Option<(String, String)> = None;
    for (x, y) in points {
        let (x, y) = (number(*x), number(*y));
        path.push_str(&match &before {
            None => format!("M{x} {y}"),
            Some((_, level)) if *level == y => format!("H{x}"),
            Some((place, _)) if *place == x => format!("V{y}"),
            Some(_) => format!("H{x}V{y}"),
        });
        before = Some((x, y));
    }
    path
}

/// One decimal is a tenth of a pixel.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        assert_eq!(escaped("<a href=\"x\">&\u{7}"), "&lt;a href=&quot;x&quot;&gt;&amp; ");
        assert_eq!(steps(&[(0.0, 9.0), (1.0, 9.0), (2.0, 5.0), (2.0, 4.04)]), "M0 9H1H2V5V4");
    }
}
