//! A command's output: its last bytes, as text.

use bellwether_core::records::evidence::MAX_TAIL_BYTES;

use super::hidden::hide;

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(crate) struct OutputTail(Vec<u8>);

impl OutputTail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(MAX_TAIL_BYTES);
        self.0.drain(..over);
    }

    /// As text, at most [`MAX_TAIL_BYTES`]; what is not UTF-8, and control characters, are made visible.
    pub(crate) fn text(&self) -> String {
        end_of(&visible(&self.0), MAX_TAIL_BYTES).to_owned()
    }
}

/// The last bytes of a text, at most so many.
fn end_of(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let start = (from..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// How a line begins with which a program says why it ends, before its stack.
const REASONS: [&str; 4] = ["panic: ", "fatal error: ", "*** Caught signal", "terminate called"];

/// The longest such line that is kept where it is not at the end.
const MAX_REASON_BYTES: usize = 512;

/// The last line that says why the program ends.
fn reason(output: &str) -> Option<&str> {
    let gives_reason = |line: &&str| REASONS.iter().any(|start| line.starts_with(start));
    output.lines().rev().find(gives_reason)
}

/// The line of an output that says most of why a program ended: the last one, but for a stack.
pub(crate) fn telling_line(output: &str) -> &str {
    let last = || output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    reason(output).or_else(last).unwrap_or_default()
}

/// The end of an output as text, at most [`MAX_TAIL_BYTES`]; before it the line that says why the program ended, where a stack follows that is
/// longer.
pub(crate) fn last_words(output: &[u8]) -> String {
    let text = visible(output);
    let end = end_of(&text, MAX_TAIL_BYTES);
    match reason(&text).filter(|line| !end.contains(line)) {
        Some(line) => {
            let line = one_line(line, MAX_REASON_BYTES);
            let end = end_of(&text, MAX_TAIL_BYTES.saturating_sub(line.len() + 8));
            format!("{line}\n[...]\n{end}")
        }
        None => end.to_owned(),
    }
}

/// Bytes as text, without secrets; what is not UTF-8, and control characters, are made visible.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    hide(String::from_utf8_lossy(bytes).chars().map(shown).collect())
}

/// A message in one line of at most `most` bytes, without control characters.
pub(crate) fn one_line(message: &str, most: usize) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat: String = words.chars().map(shown).collect();
    let end = (0..=flat.len().min(most)).rev().find(|index| flat.is_char_boundary(*index));
    flat.get(..end.unwrap_or_default()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_it_is_text() {
        let mut tail = OutputTail::default();
        tail.add(&[b'a'; 5_000]);
        tail.add("é\u{1b}[1m end\n".as_bytes());
        let text = tail.text();
        assert!(text.len() <= MAX_TAIL_BYTES && text.ends_with("é\u{fffd}[1m end\n"), "{text}");
        let mut tail = OutputTail::default();
        tail.add(&[0xff; 3_000]);
        assert!(tail.text().len() <= MAX_TAIL_BYTES);
    }

    #[test]
    fn the_reason_of_a_panic_is_kept_before_a_long_stack() {
        let panic = "panic: cannot open database (no space left on device)";
        let stack =
            format!("goroutine 1 [running]:\n{}", "main.main()\n\t/etcd/main.go:73 +0x12a\n".repeat(200));
        let said = last_words(format!("starting\n{panic}\n\n{stack}").as_bytes());
        assert!(said.len() <= MAX_TAIL_BYTES && said.starts_with(panic), "{said}");
        assert!(said.ends_with("main.go:73 +0x12a\n"), "{said}");
        assert_eq!(telling_line(&said), panic);
        let short = format!("{panic}\n\ngoroutine 1 [running]:\n");
        assert_eq!((last_words(short.as_bytes()), telling_line(&short)), (short.clone(), panic));
        assert_eq!(telling_line("listening\naddress in use\n\n"), "address in use");
        assert_eq!(telling_line("\n"), "");
    }
}
