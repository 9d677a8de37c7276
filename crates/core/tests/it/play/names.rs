//! Names of targets in a play.

use bellwether_core::words::name::TargetName;

pub(super) fn same_names(wanted: &str, found: Vec<String>) -> Result<(), String> {
    let wanted = wanted.trim();
    let wanted: Vec<String> = match wanted {
        "nobody" => Vec::new(),
        names => names.split(", ").flat_map(names_of).map(|name| name.to_string()).collect(),
    };
    if wanted == found { Ok(()) } else { Err(format!("it is {}", found.join(", "))) }
}

/// `web-1`, `web-1,web-2` or `web-08..web-11`.
pub(super) fn names_of(text: &str) -> Vec<TargetName> {
    let Some((first, last)) = text.split_once("..") else {
        return text.split(',').map(|name| name.parse().unwrap_or_else(|error| panic!("{error}"))).collect();
    };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let (from, to) = (&first[stem.len()..], &last[stem.len()..]);
    let width = from.len();
    let range = from.parse::<u64>().unwrap()..=to.parse::<u64>().unwrap();
    range.map(|number| format!("{stem}{number:0width$}").parse().unwrap()).collect()
}
