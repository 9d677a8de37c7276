//! A part of the terminal that is redrawn in place: the last lines are replaced by the next ones.

use std::io::{IsTerminal, Write};

use super::visible;

/// The lines that are on the screen now.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    lines: usize,
}

/// Columns and rows where the terminal does not report them.
const FALLBACK: (usize, usize) = (100, 40);

impl Screen {
    /// Replaces the last drawn lines by these, cut to the terminal.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        let (columns, rows) = size();
        let mut out = String::new();
        if self.lines > 0 {
            out.push_str(&format!("\x1b[{}A", self.lines));
        }
        out.push_str("\r\x1b[J");
        let most = rows.saturating_sub(1).max(1);
        let hidden = lines.len().saturating_sub(most);
        let shown = if hidden > 0 { most.saturating_sub(1) } else { lines.len() };
        for line in lines.iter().take(shown) {
            out.push_str(&cut(&visible::coloured(line), columns));
            out.push('\n');
        }
        if hidden > 0 {
            out.push_str(&format!("… {} more lines\n", lines.len() - shown));
        }
        self.lines = shown + usize::from(hidden > 0);
        let mut stdout = std::io::stdout().lock();
        // A reader that has gone away is not a failure of the command.
        drop(stdout.write_all(out.as_bytes()));
        drop(stdout.flush());
    }

    /// Keeps the drawn lines, and draws below them from now on.
    pub(crate) fn keep(&mut self) {
        self.lines = 0;
    }
}

/// Columns and rows of the terminal.
pub(crate) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let size = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(FALLBACK, |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// The first `columns` visible characters, the last of them `…` if there are more; escape sequences do not count, and colour
/// ends where the line does.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if visible(line) <= columns {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut visible = 1;
    let mut escape = false;
    for c in line.chars() {
        match c {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            _ if escape => {}
            _ if visible >= columns => {
                out.push_str("\x1b[0m…");
                return out;
            }
            _ => visible += 1,
        }
        out.push(c);
    }
    out
}

/// Lines for standard output: on a terminal, those that do not fit go on below themselves, beside the stem of their tree.
pub(crate) fn folded(lines: &[String]) -> String {
    let columns = std::io::stdout().is_terminal().then(|| size().0);
    let fold = |line: &String| columns.map_or_else(|| line.clone(), |columns| fold(line, columns));
    lines.iter().map(fold).collect::<Vec<_>>().join("\n")
}

/// A line that goes on below itself after the last space that fits.
fn fold(line: &str, columns: usize) -> String {
    let begin = line.len() - line.trim_start_matches(|c| "│├└─ ".contains(c)).len();
    let stem = line.chars().take_while(|c| "│├└─ ".contains(*c));
    let stem: String = stem.map(|c| if matches!(c, '│' | '├') { '│' } else { ' ' }).collect();
    let below = format!("{stem}  ");
    let (mut out, mut rest, mut least) = (String::new(), line.to_owned(), begin);
    while visible(&rest) > columns {
        let fits = |at: &usize| *at > least && rest.get(..*at).is_some_and(|part| visible(part) <= columns);
        let Some(at) = rest.rmatch_indices(' ').map(|found| found.0).find(fits) else { break };
        let (part, after) = rest.split_at(at);
        out.push_str(part.trim_end());
        out.push('\n');
        rest = format!("{below}{}", after.trim_start());
        least = below.len();
    }
    out + &rest
}

/// The number of visible characters.
fn visible(line: &str) -> usize {
    let mut escape = false;
    let seen = line.chars().filter(|c| match c {
        '\x1b' => {
            escape = true;
            false
        }
        'm' if escape => {
            escape = false;
            false
        }
        _ => !escape,
    });
    seen.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_on_beside_the_stem_of_its_tree() {
        let line = "│ ├─ \x1b[31mweb-1\x1b[0m  assigned v2, blocked: exit code 75";
        assert_eq!(fold(line, 80), line);
        assert_eq!(
            fold(line, 24),
            "│ ├─ \x1b[31mweb-1\x1b[0m  assigned v2,\n│ │    blocked: exit\n│ │    code 75"
        );
        assert_eq!(fold("└─ one two", 7), "└─ one\n     two");
        assert_eq!(fold("a-word-that-is-too-long for it", 10), "a-word-that-is-too-long for it");
        assert_eq!(fold(&"x".repeat(30), 10), "x".repeat(30));
    }

    #[test]
    fn cutting_counts_what_is_seen() {
        assert_eq!(cut("abcdef", 3), "ab\x1b[0m…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("\x1b[32mab\x1b[0m", 2), "\x1b[32mab\x1b[0m");
        assert_eq!(cut("✓✓✓", 2), "✓\x1b[0m…");
    }
}
