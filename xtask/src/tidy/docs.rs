//! Documents: every page of the tree names only paths that are there, and its links lead somewhere.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::table;

/// Complains about the pages, given by their paths in the tree.
pub(super) fn check(root: &Path, pages: &[String]) -> Result<Vec<String>> {
    let tops = tops(root)?;
    let mut found = Vec::new();
    for page in pages {
        let text = read(root, page)?;
        for (line, span) in table::code_spans(&text) {
            if is_path(&tops, span) && !root.join(span.trim_end_matches('/')).exists() {
                found.push(format!("{page}:{line} names {span}, which is not there"));
            }
        }
        for (line, link) in links(&text) {
            if let Some(problem) = broken(root, page, &text, link)? {
                found.push(format!("{page}:{line} links to {link}: {problem}"));
            }
        }
    }
    Ok(found)
}

/// The folders at the top of the tree, each with a slash behind it.
fn tops(root: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(root).with_context(|| format!("cannot read {}", root.display()))?;
    let mut tops = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What a build leaves is there on some machines only.
        if entry.path().is_dir() && name != "target" {
            tops.push(format!("{name}/"));
        }
    }
    Ok(tops)
}

/// Whether a code span names something in this tree, without a part that stands for others.
fn is_path(tops: &[String], span: &str) -> bool {
    tops.iter().any(|top| span.starts_with(top)) && !span.contains([' ', '*', '{', '$'])
}

/// Where links lead, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    table::prose(text)
        .flat_map(|(number, line)| {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            targets.map(move |target| (number, target))
        })
        .collect()
}

/// What is wrong with a link, if it stays within the tree.
fn broken(root: &Path, page: &str, text: &str, link: &str) -> Result<Option<&'static str>> {
    if link.contains(':') {
        return Ok(None);
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = plain(&folder.join(path));
    if !path.is_empty() && !root.join(&target).exists() {
        return Ok(Some("there is no such file"));
    }
    let Some(anchor) = anchor else { return Ok(None) };
    let text = if path.is_empty() { text.to_owned() } else { read(root, &target.to_string_lossy())? };
    let headings = table::prose(&text).filter(|(_, line)| line.starts_with('#'));
    let has = headings.into_iter().any(|(_, line)| slug(line) == anchor);
    Ok((!has).then_some("there is no such heading"))
}

/// A path without `..` in it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// What a heading is called in a link.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn read(root: &Path, page: &str) -> Result<String> {
    std::fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))
}
