//! Members of clusters that are listed outside: what the flags say, what is shown, and `cluster members --accept`.

use bellwether_api::v1::cluster::discovery::{AcceptMembers, DiscoverySpec};
use bellwether_api::v1::cluster::{Cluster, ClusterSpec};
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Span;

use crate::args::{ClusterFlags, Consent};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::time::date;

/// Most hosts that one line names.
const NAMED: usize = 8;

/// Where the members are to be listed, and the filter without a flag for it. What a filter of before said was without a list.
pub(super) fn changed(before: &ClusterSpec, flags: &ClusterFlags) -> (Option<DiscoverySpec>, Option<String>) {
    let interval = flags.discover_every.map(|span| span.to_string());
    let kept = before.discovery.clone();
    let is_other = flags.discover_url.is_some() || flags.discover_file.is_some();
    let discovery = match (flags.no_discovery, is_other, kept) {
        (true, _, _) => None,
        (false, true, kept) => Some(DiscoverySpec {
            url: flags.discover_url.clone(),
            file: flags.discover_file.clone(),
            interval: interval.or(kept.and_then(|kept| kept.interval)),
        }),
        (false, false, Some(kept)) => Some(DiscoverySpec { interval: interval.or(kept.interval), ..kept }),
        // The server says what is missing.
        (false, false, None) => {
            interval.map(|interval| DiscoverySpec { interval: Some(interval), ..DiscoverySpec::default() })
        }
    };
    let is_same_kind = discovery.is_some() == before.discovery.is_some();
    (discovery, before.filter.clone().filter(|_| is_same_kind))
}

/// Has the members leave that the list does not have any more.
pub(super) async fn accept(context: &Context, name: &str, reason: String, consent: Consent) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let cluster = client.cluster(namespace, name).await?;
    let Some(held) = cluster.discovery.and_then(|discovery| discovery.held) else {
        let what = format!("accept that members of cluster {name} are gone: none waits for that");
        return Err(Failure::stated(Exit::Refused, format!("cannot {what}"))
            .hint(format!("bellwether why cluster/{name}")));
    };
    let gone = plural(held.hosts.len(), "member");
    let named = some_of(&held.hosts.iter().map(String::as_str).collect::<Vec<_>>());
    confirm(&format!("have {gone} leave cluster {name}? {named}"), consent)?;
    let count = u64::try_from(held.hosts.len()).ok();
    let after = client.accept_members(namespace, name, &AcceptMembers { count, reason }).await?;
    let left = plural(usize::try_from(after.members).unwrap_or(usize::MAX), "member");
    context.show.changed(&format!("cluster {name}: {gone} left; it has {left}"));
    context.show.data(&after, || vec![after.name.clone()], |_| String::new())?;
    Ok(Exit::Yes)
}

/// What is shown of a list, each line after a line feed; nothing without a list.
pub(super) fn lines(cluster: &Cluster) -> String {
    let Some(of) = &cluster.discovery else { return String::new() };
    let source = of.url.clone().or_else(|| of.file.as_ref().map(|file| format!("file {file}")));
    let every = Span::from_millis(of.interval_ms);
    let mut lines = vec![format!("list              {}, every {every}", source.unwrap_or_default())];
    let changed = of.changed_at_ms.map_or("not read yet".to_owned(), |at| format!("changed {}", date(at)));
    let unknown = if of.unknown > 0 { format!(" ({} no nodes)", of.unknown) } else { String::new() };
    lines.push(format!("listed            {}{unknown}, {changed}", of.listed));
    if let Some(failure) = &of.failure {
        let since = date(failure.since_ms);
        lines.push(format!("list unreadable   since {since}: {}; the last one is kept", failure.reason));
    }
    if let Some(held) = &of.held {
        let named = some_of(&held.hosts.iter().map(String::as_str).collect::<Vec<_>>());
        let (count, since) = (held.hosts.len(), date(held.since_ms));
        lines.push(format!("missing           {count} since {since}: {named}; accept: bellwether cluster members {} --accept", cluster.name));
    }
    lines.iter().map(|line| format!("\n{line}")).collect()
}

/// The first names, and how many more there are.
fn some_of(names: &[&str]) -> String {
    let named = names.get(..NAMED.min(names.len())).unwrap_or_default().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> ClusterFlags {
        use clap::{Args, FromArgMatches};
        let command = ClusterFlags::augment_args(clap::Command::new("set"));
        let matches = command.no_binary_name(true).get_matches_from(words);
        ClusterFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn a_flag_changes_what_it_names_and_a_filter_of_before_is_not_for_a_list() {
        let filtered = ClusterSpec { filter: Some("role = db".to_owned()), ..ClusterSpec::default() };
        let (found, filter) = changed(&filtered, &flags(&["--discover-file", "db.json"]));
        let found = found.unwrap();
        assert_eq!((found.file.as_deref(), found.interval.as_deref(), filter), (Some("db.json"), None, None));
        let listed = ClusterSpec { discovery: Some(found.clone()), ..filtered };
        let (found, filter) = changed(&listed, &flags(&["--discover-every", "5s"]));
        let found = found.unwrap();
        assert_eq!((found.file.as_deref(), found.interval.as_deref()), (Some("db.json"), Some("5s")));
        assert_eq!(filter.as_deref(), Some("role = db"));
        let (found, filter) = changed(&listed, &flags(&["--no-discovery"]));
        assert_eq!((found, filter), (None, None));
    }
}
