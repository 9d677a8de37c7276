//! How deep YAML is nested, by its text alone: the time that its parser takes grows with the square of the depth.
//!
//! It reads no more of the grammar than that needs. What it takes for nesting and is none counts only if there is very much of it.

/// Deepest nesting of collections, in blocks and in brackets.
const MAX_DEPTH: usize = 64;

/// Refuses what is nested too deep, with the number of its line, behind so many others.
pub(crate) fn check(text: &str, lines_before: usize) -> Result<(), String> {
    let mut scan = Scan::default();
    for (number, line) in text.lines().enumerate() {
        scan.line(line);
        if scan.deepest > MAX_DEPTH {
            return Err(format!(
                "it is nested deeper than {MAX_DEPTH} levels at line {}",
                lines_before + number + 1
            ));
        }
    }
    Ok(())
}

/// What is open where the scan is.
#[derive(Debug, Default)]
struct Scan {
    /// The columns of the block collections.
    columns: Vec<usize>,
    /// How many brackets and braces.
    brackets: usize,
    quote: Option<char>,
    /// The column that the lines of a block of text are to the right of.
    text_right_of: Option<usize>,
    deepest: usize,
}

/// What may begin at a column of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A node that may be a collection of its own, at its column.
    Entry,
    /// The value of a key on the same line.
    Value,
    /// Nothing: it is within a text.
    Within,
}

impl Scan {
    fn line(&mut self, line: &str) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() {
            return;
        }
        if self.text_right_of.is_some_and(|column| indent > column) {
            return;
        }
        self.text_right_of = None;
        let is_marker = self.quote.is_none()
            && line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if is_marker {
            (self.columns, self.brackets) = (Vec::new(), 0);
        }
        let mut chars = line.char_indices().skip(if is_marker { 3 } else { 0 }).peekable();
        let (mut place, mut before) = (Expected::Entry, ' ');
        while let Some((column, letter)) = chars.next() {
            let next = chars.peek().map_or(' ', |(_, next)| *next);
            let is_after_space = before.is_whitespace();
            let is_after_quote = matches!(before, '"' | '\'');
            before = letter;
            if let Some(quote) = self.quote {
                let escapes =
                    (quote == '"' && letter == '\\') || (quote == '\'' && letter == quote && next == quote);
                if escapes {
                    chars.next();
                } else if letter == quote {
                    (self.quote, place) = (None, Expected::Within);
                }
                continue;
            }
            if letter == '#' && is_after_space {
                return;
            }
            if matches!(letter, '&' | '!') && place != Expected::Within {
                // What it is named, or its kind: what it is follows.
                while chars.next_if(|(_, next)| !next.is_whitespace()).is_some() {}
            } else if !letter.is_whitespace() {
                let ends_key = next.is_whitespace() || (self.brackets > 0 && is_after_quote);
                place = if letter == ':' && ends_key {
                    Expected::Value
                } else {
                    self.at((column, letter), next, place)
                };
                if self.text_right_of.is_some() {
                    return;
                }
            }
        }
    }

    /// Takes a letter that is no space, and says what may come behind it.
    fn at(&mut self, (column, letter): (usize, char), next: char, place: Expected) -> Expected {
        let (in_brackets, begins) = (self.brackets > 0, place != Expected::Within);
        match letter {
            '[' | '{' if in_brackets || begins => {
                self.brackets += 1;
                self.deepest = self.deepest.max(self.columns.len() + self.brackets);
                Expected::Value
            }
            ']' | '}' if in_brackets => {
                self.brackets -= 1;
                Expected::Within
            }
            ',' if in_brackets => Expected::Value,
            '-' | '?' if !in_brackets && place == Expected::Entry && next.is_whitespace() => {
                self.open(column);
                Expected::Entry
            }
            '|' | '>' if !in_brackets && begins => {
                if place == Expected::Entry {
                    self.close(column);
                }
                self.text_right_of = Some(self.columns.last().copied().unwrap_or_default());
                Expected::Within
            }
            '"' | '\'' if begins => {
                self.quote = Some(letter);
                self.entry(column, place)
            }
            _ if begins => self.entry(column, place),
            _ => Expected::Within,
        }
    }

    /// Takes the begin of a text, which may be the first key of a mapping.
    fn entry(&mut self, column: usize, place: Expected) -> Expected {
        if self.brackets == 0 && place == Expected::Entry {
            self.open(column);
        }
        Expected::Within
    }

    /// Ends the collections that something at a column is not in.
    fn close(&mut self, column: usize) {
        while self.columns.last().is_some_and(|last| *last >= column) {
            self.columns.pop();
        }
    }

    fn open(&mut self, column: usize) {
        self.close(column);
        self.columns.push(column);
        self.deepest = self.deepest.max(self.columns.len() + self.brackets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_refused_in_every_form() {
        let keys = |depth: usize| (0..depth).map(|level| format!("{}k:\n", " ".repeat(level)));
        for (what, text) in [
            ("lists", format!("a: {}{}", "[".repeat(64), "]".repeat(64))),
            ("mappings", format!("a: {}", "{b: ".repeat(64))),
            ("JSON", format!("{{\"a\":{}", "{\"b\":".repeat(64))),
            ("mixed", format!("a:\n- b: x\n  c: {}", "[{d: ".repeat(40))),
            ("lines", "[\n".repeat(65)),
            ("after a name", format!("a: &x !y {}", "[".repeat(64))),
            ("dashes", "- ".repeat(70)),
            ("keys", keys(65).collect()),
            ("after texts", format!("a: |\n  \"[\nb: it's\nc: 'x'' [' # \"\nd: {}", "[".repeat(64))),
        ] {
            let refused = check(&text, 0).expect_err(what);
            assert!(refused.contains("deeper than 64 levels at line "), "{what}: {refused}");
        }
    }

    #[test]
    fn what_is_no_nesting_is_not_taken_for_it() {
        let many = "[{".repeat(100);
        for (what, text) in [
            ("a block of text", format!("a:\n- b: |-\n    x\n\n    {many}\n  c: >\n    {many}\nd: 1\n")),
            ("quotes", format!("a: \"{many} \\\" {many}\"\nb: 'x'' {many}\n {many}'\nc: 1\n")),
            ("a comment", format!("# {many}\na: 1 # {many}\n")),
            ("within a text", format!("a: x{many}\nb: it's {many}\n")),
            ("one beside the other", "- a: [1, {b: 2}]\n".repeat(1_000)),
            ("in turn", "a:\n  b:\n    - c:\n".repeat(200)),
            ("documents", format!("--- {}\n", "[1]").repeat(100)),
            ("63", format!("a: {}{}", "[".repeat(63), "]".repeat(63))),
        ] {
            assert_eq!(check(&text, 0), Ok(()), "{what}");
        }
    }
}
