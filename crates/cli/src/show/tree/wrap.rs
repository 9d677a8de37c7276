//! Long texts of the tree, in lines.

/// Columns of a wrapped line: 80 without the stem.
const COLUMNS: usize = 78;

/// A text in lines that fit 80 columns beside the stem.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= COLUMNS) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
