//! `cluster view`: the data stores of a cluster as a tree.

use std::time::Duration;

use bellwether_api::v1::cluster::ClusterMode;
use bellwether_api::v1::cluster::view::{ClusterView, ConditionKind, NodeStores, ShardSummary, StoreSummary};
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::probes::{Amount, DataStore, ShardRole, StoreState};
use bellwether_core::words::plural::plural;

use super::past_view;
use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::paint::{Paint, Tone};
use crate::show::screen::Screen;
use crate::show::time::ago;

/// Time between two drawings.
const REDRAW: Duration = Duration::from_secs(1);

/// Shows the data stores once, live until Ctrl-C, or as they were after an event.
pub(super) async fn run(context: &Context, name: &str, live: bool, at: Option<u64>) -> CommandResult {
    if let Some(event) = at {
        return past_view::run(context, name, event).await;
    }
    let drawn = live && context.show.terminal && !context.show.is_data();
    let (mut screen, mut said) = (Screen::default(), None);
    let mut ticks = tokio::time::interval(REDRAW);
    loop {
        ticks.tick().await;
        let view = context.client.cluster_view(&context.namespace, name).await?;
        if drawn {
            screen.draw(&lines(&view, context.show.paint));
            continue;
        }
        let state = (view.stores.clone(), view.nodes.clone());
        if said.as_ref() != Some(&state) {
            let names = || view.nodes.iter().map(|node| node.node.clone()).collect();
            context.show.data(&view, names, |_| lines(&view, context.show.paint).join("\n"))?;
        }
        if !live {
            return Ok(Exit::Yes);
        }
        said = Some(state);
    }
}

/// What a person should know about the stores, with since when it is so where that is decided. Members whose store is down or unknown
/// stand below anyway.
fn problems(view: &ClusterView, probe: &str, summary: &StoreSummary) -> Vec<String> {
    if view.number.is_none() || view.mode == ClusterMode::Disabled {
        return summary.problems.clone();
    }
    let own = view.conditions.iter().filter(|condition| condition.probe == probe);
    let told = own.filter(|condition| {
        !matches!(condition.kind, ConditionKind::StoreDown | ConditionKind::StoreUnknown)
    });
    told.map(|condition| format!("{} for {}", condition.reason, ago(view.at_ms, condition.since_ms)))
        .collect()
}

/// The tree, line by line.
fn lines(view: &ClusterView, paint: Paint) -> Vec<String> {
    let mode = match view.mode {
        ClusterMode::Active => "",
        ClusterMode::Observe => "  observed: nothing is started",
        ClusterMode::Disabled => "  disabled: no events, nothing is started",
    };
    let mut lines = vec![format!(
        "{}  {}{mode}",
        paint.text(Tone::Strong, &view.cluster),
        plural(view.nodes.len(), "member")
    )];
    if view.stores.is_empty() {
        let hint = "no member probes a data store; name them in the agents' configuration: [probe.NAME]";
        lines.push(format!("└ {hint}"));
        return lines;
    }
    let last = view.stores.len() - 1;
    for (index, (name, summary)) in view.stores.iter().enumerate() {
        let (branch, rest) = if index == last { ("└", " ") } else { ("├", "│") };
        lines.push(format!("{branch} {}  {}", paint.text(Tone::Strong, name), head(summary, paint)));
        let problems = problems(view, name, summary);
        let problems = problems.iter().map(|problem| paint.text(Tone::Bad, &format!("! {problem}")));
        let shards = summary.shards.iter().map(|(shard, of)| shard_line(shard, of, paint));
        let members = view.nodes.iter().map(|node| member(view, node, (name, summary), paint));
        let leaves: Vec<String> = problems.chain(shards).chain(members).collect();
        let end = leaves.len().saturating_sub(1);
        let leaf = |(index, leaf): (usize, &String)| {
            format!("{rest} {} {leaf}", if index == end { "└" } else { "├" })
        };
        lines.extend(leaves.iter().enumerate().map(leaf));
    }
    lines
}

fn head(summary: &StoreSummary, paint: Paint) -> String {
    let versions: Vec<&str> = summary.versions.keys().map(String::as_str).collect();
    let count = |count: u64, word: &str, tone: Tone| {
        (count > 0).then(|| paint.text(tone, &format!("{count} {word}")))
    };
    let counts = [
        count(summary.up, "up", Tone::Good),
        count(summary.down, "down", Tone::Bad),
        count(summary.unknown, "unknown", Tone::Busy),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let parts = [versions.join(", "), counts.join(", ")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
}

fn shard_line(name: &str, shard: &ShardSummary, paint: Paint) -> String {
    let primary = match shard.primaries.len() {
        0 => "no primary".to_owned(),
        _ => format!("primary {}", shard.primaries.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
    };
    let count = |count: u64, word: &str| {
        (count > 0).then(|| plural(usize::try_from(count).unwrap_or(usize::MAX), word).to_string())
    };
    let vacant = (shard.vacant > 0).then(|| format!("{} without a role", shard.vacant));
    let rest = [Some(primary), count(shard.replicas, "replica"), count(shard.learners, "learner"), vacant];
    let rest: Vec<String> = rest.into_iter().flatten().collect();
    paint.text(Tone::Dim, &format!("shard {name}: {}", rest.join(", ")))
}

fn member(
    view: &ClusterView,
    node: &NodeStores,
    (probe, summary): (&str, &StoreSummary),
    paint: Paint,
) -> String {
    let now_ms = view.at_ms;
    let NodeStores { node: name, presence, received_at_ms, stores } = node;
    let Some(store) = stores.get(probe) else {
        return paint.text(Tone::Dim, &format!("{name}  no probe {probe}"));
    };
    let (glyph, tone) = match store.state {
        StoreState::Up => ("✓", Tone::Good),
        StoreState::Down => ("✗", Tone::Bad),
        StoreState::Unknown => ("?", Tone::Busy),
    };
    let state = paint.text(tone, &format!("{glyph} {}", store.state.as_str()));
    let since = ago(now_ms, store.since_ms);
    let told = received_at_ms.map_or_else(String::new, |at| format!("recorded {} ago", ago(now_ms, at)));
    let mut parts = vec![format!("{name}  {state} for {since}")];
    if !store.reason.is_empty() {
        parts.push(store.reason.clone());
    }
    parts.extend(roles(view, node, store, summary));
    if *presence != PresenceState::Up {
        parts.push(format!("its agent is {}", presence.as_str()));
    }
    parts.push(paint.text(Tone::Dim, &told));
    parts.join("  ")
}

/// A member's part in each shard; in the last words, how far it is.
fn roles(view: &ClusterView, node: &NodeStores, store: &DataStore, summary: &StoreSummary) -> Vec<String> {
    let is_up = store.state == StoreState::Up;
    let amount = |amount: &Amount| format!("{} {}", amount.amount, amount.unit);
    let parts = store.facts.shards.iter().map(|(name, part)| {
        let shard = summary.shards.get(name).filter(|_| is_up);
        let lag = shard.and_then(|shard| Some((shard, shard.lags.get(&node.node)?)));
        let lag = lag.map(|(shard, lag)| {
            let apart = part.lag.is_none().then(|| apart(view, node, shard)).flatten().unwrap_or_default();
            format!(", {} behind{apart}", amount(lag))
        });
        let at = part.offset.as_ref().filter(|_| is_up && part.role == ShardRole::Primary);
        let at = at.map(|offset| format!(" at {}", amount(offset)));
        let of = part.upstream.as_ref().map(|from| match part.streaming {
            Some(false) => format!(" of {from} (not connected)"),
            Some(true) | None => format!(" of {from}"),
        });
        let shard = if store.facts.shards.len() > 1 { format!("{name}: ") } else { String::new() };
        let last = if is_up { "" } else { "last " };
        let texts = [of, at, lag].into_iter().flatten().collect::<String>();
        format!("{shard}{last}{}{texts}", part.role.as_str())
    });
    parts.collect()
}

/// How far apart the offsets of a member and of the primary were recorded, of which its lag is the difference; `None` where that is less than a
/// second. What the primary wrote in between is in the figure, so that it compares with that of no other member.
fn apart(view: &ClusterView, node: &NodeStores, shard: &ShardSummary) -> Option<String> {
    let primary = view.nodes.iter().find(|of| shard.primaries.contains(&of.node))?;
    let (ahead, own) = (primary.received_at_ms?, node.received_at_ms?);
    let (earlier, later) = (ahead.min(own), ahead.max(own));
    (later - earlier >= 1_000).then(|| {
        let order = if own < ahead { "before" } else { "after" };
        format!(" (recorded {} {order} the primary)", ago(later, earlier))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bellwether_api::v1::cluster::view::{Agreement, ClusterCondition};
    use bellwether_api::v1::probes::{Shard, StoreFacts};

    use super::*;

    fn node(name: &str, state: StoreState, role: ShardRole) -> NodeStores {
        let shard = Shard {
            role,
            history: None,
            offset: Some(Amount { amount: 120, unit: "bytes".to_owned() }),
            lag: None,
            upstream: (role == ShardRole::Replica).then(|| "10.0.0.1:6379".to_owned()),
            streaming: Some(true),
        };
        let reason = if state == StoreState::Down { "127.0.0.1:6379: Connection refused" } else { "" };
        let facts = StoreFacts { shards: BTreeMap::from([("0".to_owned(), shard)]), ..StoreFacts::default() };
        let store = DataStore { state, since_ms: 50_000, reason: reason.to_owned(), facts };
        NodeStores {
            node: name.to_owned(),
            presence: PresenceState::Up,
            received_at_ms: Some(57_000),
            stores: BTreeMap::from([("db".to_owned(), store)]),
        }
    }

    fn condition(kind: ConditionKind) -> ClusterCondition {
        let reason = "stores differ on who is a member".to_owned();
        ClusterCondition { probe: "db".to_owned(), kind, since_ms: 40_000, reason }
    }

    #[test]
    fn the_stores_read_as_a_tree_with_what_a_person_should_know_first() {
        let shard = ShardSummary {
            primaries: BTreeSet::from(["db-1".to_owned()]),
            last_primaries: BTreeSet::new(),
            replicas: 2,
            learners: 0,
            vacant: 0,
            lags: ["db-2", "db-4"]
                .map(|node| (node.to_owned(), Amount { amount: 3, unit: "bytes".to_owned() }))
                .into(),
        };
        let summary = StoreSummary {
            up: 3,
            down: 1,
            unknown: 0,
            missing: 0,
            versions: BTreeMap::from([("redis 7.0.15".to_owned(), 4)]),
            cluster_ids: BTreeMap::new(),
            shards: BTreeMap::from([("0".to_owned(), shard)]),
            agreement: Agreement::None,
            problems: vec!["unused".to_owned()],
        };
        let view = ClusterView {
            cluster: "shop".to_owned(),
            revision: 1,
            at_ms: 60_000,
            mode: ClusterMode::Observe,
            number: Some(3),
            changed_at_ms: Some(40_000),
            conditions: [ConditionKind::StoreDown, ConditionKind::MembersDiffer].map(condition).into(),
            stores: BTreeMap::from([("db".to_owned(), summary)]),
            nodes: vec![
                node("db-1", StoreState::Up, ShardRole::Primary),
                node("db-2", StoreState::Up, ShardRole::Replica),
                NodeStores {
                    received_at_ms: Some(32_000),
                    ..node("db-4", StoreState::Up, ShardRole::Replica)
                },
                node("db-3", StoreState::Down, ShardRole::Replica),
            ],
        };
        insta::assert_snapshot!(lines(&view, Paint::new(false)).join("\n"), @r"
        shop  4 members  observed: nothing is started
        └ db  redis 7.0.15  3 up, 1 down
          ├ ! stores differ on who is a member for 20s
          ├ shard 0: primary db-1, 2 replicas
          ├ db-1  ✓ up for 10s  primary at 120 bytes  recorded 3s ago
          ├ db-2  ✓ up for 10s  replica of 10.0.0.1:6379, 3 bytes behind  recorded 3s ago
          ├ db-4  ✓ up for 10s  replica of 10.0.0.1:6379, 3 bytes behind (recorded 25s before the primary)  recorded 28s ago
          └ db-3  ✗ down for 10s  127.0.0.1:6379: Connection refused  last replica of 10.0.0.1:6379  recorded 3s ago
        ");
    }
}
