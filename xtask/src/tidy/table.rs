//! Tables of Markdown pages, and code spans: what tidy reads from documents.

use anyhow::{Result, bail};

/// The rows of the table whose first column is headed `heading`, each a list of cells.
pub(super) fn rows<'a>(text: &'a str, heading: &str) -> Result<Vec<Vec<&'a str>>> {
    let head = |line: &&str| cells(line).first() == Some(&heading);
    let mut lines = text.lines().skip_while(|line| !head(line));
    if lines.next().is_none() {
        bail!("there is no table whose first column is {heading:?}");
    }
    // The second line only draws the rule under the heading.
    Ok(lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect())
}

/// What stands in backquotes, blocks of code aside, with its line from 1.
pub(super) fn code_spans(text: &str) -> Vec<(usize, &str)> {
    let lines = prose(text);
    lines
        .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |span| (number, span)))
        .collect()
}

/// The lines that are not in blocks of code, numbered from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}
