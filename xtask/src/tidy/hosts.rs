//! Hosts: nothing in the tree names one that is not ours to name. What is fetched comes from a registry, by its name.

use std::path::Path;

use anyhow::{Context, Result};

/// What an address begins with.
const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Ends of names that lead nowhere, by the rules of DNS.
const NOWHERE: [&str; 2] = ["example", "invalid"];

/// Complains about addresses of hosts in the files, given by their paths in the tree.
pub(super) fn check(root: &Path, files: &[&String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        for (number, line) in (1..).zip(text.lines()) {
            let named = hosts(line).into_iter().filter(|host| is_outside(host));
            found.extend(named.map(|host| format!("{path}:{number} names the host {host}")));
        }
    }
    Ok(found)
}

/// The hosts of all addresses in a line.
fn hosts(line: &str) -> Vec<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let after = SCHEMES.iter().flat_map(|scheme| line.split(scheme).skip(1));
    after.filter_map(|rest| rest.split(|c| !part(c)).next()).collect()
}

/// Whether somebody may answer by that name: it has a domain, and no number at its end.
fn is_outside(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.rsplit_once('.').is_some_and(|(_, last)| {
        !NOWHERE.contains(&last) && !last.is_empty() && last.chars().all(|c| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_a_domain_is_outside_and_an_address_or_an_example_is_not() {
        let is = |line| hosts(line).into_iter().any(is_outside);
        assert!(is(concat!("see https", "://docs.rs/x")) && is(concat!("(http", "://a.b.org).")));
        for line in
            ["http://127.0.0.1:80/", "https://control.example:7420", "http://host/x", "https://{host}/"]
        {
            assert!(!is(line), "{line}");
        }
    }
}
