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
        let text = visible(&self.0);
        let from = text.len().saturating_sub(MAX_TAIL_BYTES);
        let start = (from..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
        text.get(start..).unwrap_or_default().to_owned()
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
}
