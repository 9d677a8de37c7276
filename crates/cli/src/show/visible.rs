//! Texts that people read: what a terminal would obey instead of showing it is shown, wherever the text came from. Data for
//! programs does not pass here.

use std::borrow::Cow;

/// The escape sequences of colours, the only ones that a text may have, and only on a terminal: names, reasons and logs have none.
const COLOURS: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// A text of several lines: control characters other than line breaks and tabs become `\u{1b}`.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

/// A message: a text of several lines of which each word has a length that people read, whatever was typed or answered.
pub(crate) fn message(whole: &str) -> String {
    let words = text(whole);
    let short = words.split_inclusive([' ', '\n']).map(|word| match word.char_indices().nth(LONGEST_WORD) {
        None => Cow::Borrowed(word),
        Some((end, _)) => {
            let after = word.find([' ', '\n']).and_then(|end| word.get(end..)).unwrap_or_default();
            Cow::Owned(format!("{}…{after}", word.get(..end).unwrap_or_default()))
        }
    });
    short.collect()
}

/// A text within a line, such as a cell of a table: line breaks and tabs become `\n` and `\t` too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// A text of several lines with its colours.
pub(crate) fn coloured(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len());
    for (index, part) in whole.split('\x1b').enumerate() {
        let begins =
            index.checked_sub(1).map(|_| COLOURS.iter().find(|colour| part.starts_with(&colour[1..])));
        match begins {
            Some(Some(colour)) => {
                out.push_str(colour);
                out.push_str(&text(&part[colour.len() - 1..]));
            }
            Some(None) => {
                out.push_str(&line("\x1b"));
                out.push_str(&text(part));
            }
            None => out.push_str(&text(part)),
        }
    }
    out
}

/// Most characters of a word in a message: names have at most 253, and a path has a few of them.
const LONGEST_WORD: usize = 600;

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' if is_hidden(c) => out.push_str("\\n"),
            '\t' if is_hidden(c) => out.push_str("\\t"),
            _ if is_hidden(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters, breaks of lines that few look for, those that turn the direction of a text around, and those that nobody sees.
pub(super) fn is_obeyed(c: char) -> bool {
    let is_unseen = matches!(
        c,
        '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::paint::{Paint, Tone};

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(text("a\nb\tü \x1b]2;x\x07\u{9b}1m\r"), "a\nb\tü \\u{1b}]2;x\\u{7}\\u{9b}1m\\u{d}");
        assert_eq!(line("nobody\nFORGED\t\u{202e}"), "nobody\\nFORGED\\t\\u{202e}");
        assert_eq!(line("a\u{61c}b\u{200b}\u{e0041}"), "a\\u{61c}b\\u{200b}\\u{e0041}");
    }

    #[test]
    fn a_word_that_nobody_reads_is_cut_in_a_message() {
        let long = "ä".repeat(100_000);
        assert_eq!(
            message(&format!("no {long}\nand \u{202e}.\n")),
            format!("no {}…\nand \\u{{202e}}.\n", "ä".repeat(600))
        );
        assert_eq!(message("a b\n  hint: c "), "a b\n  hint: c ");
    }

    #[test]
    fn colours_stay_and_other_sequences_do_not() {
        for tone in [Tone::Good, Tone::Bad, Tone::Busy, Tone::Dim, Tone::Strong, Tone::Plain] {
            let painted = Paint::new(true).text(tone, "✓ text");
            assert_eq!(coloured(&format!("a {painted} b")), format!("a {painted} b"));
        }
        assert_eq!(coloured("\x1b[2J\x1b[31mred\x1b[0m\x1b"), "\\u{1b}[2J\x1b[31mred\x1b[0m\\u{1b}");
    }

    #[test]
    fn a_painted_text_has_no_other_sequences() {
        assert_eq!(Paint::new(true).text(Tone::Strong, "a\x1b[0m\nb"), "\x1b[1ma\\u{1b}[0m\nb\x1b[0m");
    }
}
