//! `server check`: looks at the whole store of a stopped server.

use bellwether_core::words::plural::Plural;
use bellwether_server::check::{InstallationCheck, check};
use bellwether_server::config::Config;
use serde::Serialize;

use crate::args::Global;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::Show;

/// What was seen, as data.
#[derive(Serialize)]
struct Seen {
    revision: u64,
    records: u64,
    commits: u64,
    /// Groups of commits that only the journal has, as a server leaves them that was killed.
    journal_groups: usize,
    /// Whether the last one is not whole, as a power cut leaves it.
    journal_is_torn: bool,
    /// A copy of a journal whose last group an earlier start left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal_cut: Option<String>,
    findings: Vec<Finding>,
    #[serde(skip)]
    cut_warning: Option<String>,
}

#[derive(Serialize)]
struct Finding {
    file: String,
    what: String,
}

pub(super) fn run(global: &Global, config: &Config) -> CommandResult {
    if config.etcd.is_some() {
        let text = "this installation keeps its records in etcd: check that with etcdctl";
        return Err(Failure::stated(Exit::Refused, text));
    }
    let seen = seen(config, check(config)?);
    let show = Show::new(global);
    show.data(&seen, || seen.findings.iter().map(|finding| finding.what.clone()).collect(), |_| text(&seen))?;
    if seen.findings.is_empty() {
        return Ok(Exit::Yes);
    }
    show.note("keep a copy of the data directory as it is; then restore a backup into an empty one: bellwether server restore");
    Ok(Exit::No)
}

fn seen(config: &Config, check: InstallationCheck) -> Seen {
    let InstallationCheck { store, records, findings, cut_warning } = check;
    let of_store = store
        .findings
        .into_iter()
        .map(|finding| Finding { file: finding.file.display().to_string(), what: finding.what });
    let file = config.data_dir.join("store").display().to_string();
    let of_records = findings.into_iter().map(|what| Finding { file: file.clone(), what });
    Seen {
        revision: store.revision.0,
        records,
        commits: store.commits,
        journal_groups: store.groups,
        journal_is_torn: store.is_torn,
        journal_cut: store.cut_copy.map(|copy| copy.display().to_string()),
        cut_warning,
        findings: of_store.chain(of_records).collect(),
    }
}

fn text(seen: &Seen) -> String {
    let mut lines: Vec<String> =
        seen.findings.iter().map(|finding| format!("{}: {}", finding.file, finding.what)).collect();
    if lines.is_empty() {
        let (records, commits) = (Plural(seen.records, "record"), Plural(seen.commits, "commit"));
        lines.push(format!(
            "the store is sound: {records} at revision {}, {commits} of history",
            seen.revision
        ));
    }
    if seen.journal_is_torn {
        lines.push("the last group in the journal is not whole, and a start leaves it out; a power cut leaves it so before anybody is told of it, and damage after that looks the same; if the disk may be damaged, compare with a backup, and begin a new epoch after the start: bellwether server restore --in-place".to_owned());
    }
    lines.extend(seen.cut_warning.clone());
    lines.join("\n")
}
