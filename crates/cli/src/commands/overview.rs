//! `status` and `why`.

use bellwether_api::v1::freeze::{FreezeKind, FreezeView};
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::overview::{
    ConditionOverview, EntityOverview, ImpairedEnsemble, Overview, StuckSink,
};
use bellwether_api::v1::server::StoreStatus;
use bellwether_core::words::plural::Plural;

use super::freeze::scope;
use super::past_rollout;
use super::subject::{self, canonical};
use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::currency;
use crate::show::paint::{Paint, Tone};
use crate::show::table;
use crate::show::time::date;

/// Share of its quota, in percent, above which a store is shown as nearly full.
const FILLING: u64 = 80;

pub(super) async fn status(context: &Context) -> CommandResult {
    let overview = context.client.overview(&context.namespace).await?;
    let names = || overview.entities.iter().map(|entity| entity.name.clone()).collect();
    context.show.data(&overview, names, |_| {
        let paint = context.show.paint;
        let leads = match (&overview.leader, overview.term) {
            (Some(leader), Some(term)) if currency::is_stale() => {
                format!("{} was the leader, term {term}", leader.server)
            }
            (Some(leader), Some(term)) => {
                format!("{} is the leader since {}, term {term}", leader.server, date(leader.since_ms))
            }
            (Some(_) | None, _) => paint.text(Tone::Bad, "no server leads: nothing is decided"),
        };
        let servers = match overview.servers {
            0 | 1 => String::new(),
            several => format!("{several} servers, "),
        };
        let counts = overview.nodes.iter().map(|(contact, count)| format!("{count} {}", presence(*contact)));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let nodes = if counts.is_empty() { "none".to_owned() } else { counts };
        let mut lines = vec![
            format!("namespace  {}", paint.text(Tone::Strong, &overview.namespace)),
            format!("server     {} ({servers}{leads})", overview.server_version),
            format!("nodes      {nodes}"),
        ];
        lines.extend(overview.store.iter().map(|store| store_line(store, paint)));
        lines.extend(
            overview.warnings.iter().map(|text| format!("warning    {}", paint.text(Tone::Bad, text))),
        );
        if let Some(first) = &overview.first_waiting_drain {
            lines.push(format!("draining   {} waiting; {first}", overview.waiting_drains));
        }
        if overview.paused > 0 {
            lines.push(format!("paused     {}", overview.paused));
        }
        lines.extend(node_lines(&overview, paint));
        lines.extend(condition_lines(&overview, paint));
        lines.extend(overview.freezes.iter().map(|view| freeze_line(view, paint)));
        lines.push(format!("events     {}", overview.last_event));
        lines.push(String::new());
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let rows = overview.entities.iter().map(|entity| {
            let versions = [&entity.desired, &entity.last_known_good, &entity.last_known_bad].map(dash);
            let [version, good, mut bad] = versions;
            if entity.known_bad > 1 {
                bad.push_str(&format!(" and {} more", entity.known_bad - 1));
            }
            let state = state(entity, &overview.entities);
            vec![entity.name.clone(), entity.targets.to_string(), version, good, bad, state]
        });
        let header = ["entity", "targets", "version", "known good", "known bad", "state"];
        lines.push(table(&header, rows));
        lines.join("\n")
    })?;
    Ok(Exit::Yes)
}

/// Reasons longer than this, in characters, are shown once: a pause of everything is the reason of each entity.
const SHORT_REASON: usize = 60;

/// The state of an entity; the name of an earlier one in place of the same long reason.
fn state(entity: &EntityOverview, all: &[EntityOverview]) -> String {
    let reason = &entity.reason;
    let first = all.iter().find(|other| other.reason == *reason).filter(|first| first.name != entity.name);
    let reason = match first {
        Some(first) if reason.chars().count() > SHORT_REASON => format!("as {}", first.name),
        Some(_) | None => reason.clone(),
    };
    match entity.late_failures {
        0 => reason,
        late => format!("{reason}; {} in the last 10m", Plural(late, "late failure")),
    }
}

/// What is wrong with nodes that are in contact.
fn node_lines(overview: &Overview, paint: Paint) -> impl Iterator<Item = String> {
    let failing = failing_line(overview, paint).into_iter().chain(halted_line(overview));
    refusing_line(overview, paint).into_iter().chain(failing)
}

/// The numbers of nodes with failed statuses and of failing service instances; `None` if there are none.
fn failing_line(overview: &Overview, paint: Paint) -> Option<String> {
    let counts = failing(overview)?;
    Some(format!("failing    {}: bellwether get-failures", paint.text(Tone::Bad, &counts)))
}

pub(super) fn failing(overview: &Overview) -> Option<String> {
    let counts = [(overview.failing, "node"), (overview.failing_instances, "service instance")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    let counts = counts.collect::<Vec<_>>().join(", ");
    (!counts.is_empty()).then_some(counts)
}

/// An ensemble of which not all works.
fn impaired_line(of: &ImpairedEnsemble, paint: Paint) -> String {
    let (text, next) = impaired(of);
    format!("ensemble   {}: {}; {next}", of.ensemble, paint.text(Tone::Bad, &text))
}

/// What does not work of an ensemble, and the command that says more.
pub(super) fn impaired(of: &ImpairedEnsemble) -> (String, String) {
    let ImpairedEnsemble {
        ensemble,
        members,
        working,
        wanted,
        osds,
        working_osds,
        staying,
        unrecorded,
        warning,
        held,
    } = of;
    let counted = |working: u64, all: u64, what| {
        let verb = if working == 1 { "works" } else { "work" };
        (working < all).then(|| format!("{working} of {} {verb}", Plural(all, what)))
    };
    let missing = wanted.saturating_sub(*members);
    let missing = (missing > 0).then(|| format!("{} of {} missing", missing, Plural(*wanted, "member")));
    let staying = (*staying > 0).then(|| {
        let have = if *staying == 1 { "has" } else { "have" };
        format!("deleted, and {} {have} not left", Plural(*staying, "member"))
    });
    let unrecorded = (*unrecorded > 0).then(|| {
        let are = if *unrecorded == 1 { "is" } else { "are" };
        format!("{} {are} not recorded", Plural(*unrecorded, "member"))
    });
    let unknown = unrecorded.is_some() && *wanted == 0;
    let parts = [
        held.then(|| "held after a restore".to_owned()),
        unrecorded,
        staying,
        missing,
        counted(*working, *members, "member"),
        counted(*working_osds, *osds, "OSD"),
        (*warning > 0).then(|| {
            let verb = if *warning == 1 { "warns" } else { "warn" };
            format!("{} {verb}", Plural(*warning, "member"))
        }),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    // Of one that is not recorded at all, there is nothing else to read.
    let next = match unknown {
        true => "bellwether get-failures".to_owned(),
        false => format!("bellwether why ensemble/{ensemble}"),
    };
    (text, next)
}

/// The nodes that do not accept their orders; `None` if there are none.
fn refusing_line(overview: &Overview, paint: Paint) -> Option<String> {
    let nodes = match overview.refusing {
        0 => return None,
        1 => "1 node does not accept its orders".to_owned(),
        several => format!("{several} nodes do not accept their orders"),
    };
    let first = overview.first_refusing.as_ref().map_or(String::new(), |first| format!("; {first}"));
    Some(format!("refused    {}{first}", paint.text(Tone::Bad, &nodes)))
}

/// The nodes that begin no run; `None` if there are none.
fn halted_line(overview: &Overview) -> Option<String> {
    let first = overview.first_not_runnable.as_ref().map_or(String::new(), |first| format!("; {first}"));
    let nodes = Plural(overview.not_runnable, "node");
    (overview.not_runnable > 0).then(|| format!("halted     no run begins on {nodes}{first}"))
}

/// The ensembles of which not all works, the conditions that are true, the reactions that start nothing for them any more, and the sinks that do not send.
fn condition_lines(overview: &Overview, paint: Paint) -> impl Iterator<Item = String> {
    let condition = move |of: &ConditionOverview| {
        let text = format!("{} of {} since {}", of.condition, of.subject, date(of.since_ms));
        format!("condition  {}", paint.text(Tone::Bad, &text))
    };
    let shown = u64::try_from(overview.first_conditions.len()).unwrap_or(u64::MAX);
    let more = overview.conditions.saturating_sub(shown);
    let more = (more > 0).then(|| format!("condition  and {more} more"));
    let limited = overview.limited_reactions.iter().map(|name| {
        format!("limited    reaction {name} fired as often as it may within an hour: bellwether why reaction/{name}")
    });
    let stuck = overview.stuck_sinks.iter().map(move |stuck| stuck_line(stuck, paint));
    let impaired = overview.impaired_ensembles.iter().map(move |of| impaired_line(of, paint));
    let conditions = overview.first_conditions.iter().map(condition).chain(more);
    impaired.chain(conditions).chain(limited).chain(stuck)
}

/// A sink that does not send.
fn stuck_line(StuckSink { sink, since_ms, reason }: &StuckSink, paint: Paint) -> String {
    let text = format!("sink {sink} does not send since {}: {reason}", date(*since_ms));
    format!("stuck      {}; bellwether why sink/{sink}", paint.text(Tone::Bad, &text))
}

/// The connection state of a node, for people: whether it is up now is not known from an answer that may be out of
/// date, or while the store takes no changes.
pub(super) fn presence(state: PresenceState) -> &'static str {
    match state {
        PresenceState::Up if currency::is_presence_old() => "was up",
        PresenceState::Never => "never seen",
        PresenceState::Up | PresenceState::Suspect | PresenceState::Unreachable => state.as_str(),
    }
}

/// A freeze or stop in force.
fn freeze_line(view: &FreezeView, paint: Paint) -> String {
    let freeze = &view.freeze;
    let reason = if freeze.reason.is_empty() { String::new() } else { format!(": {}", freeze.reason) };
    let until = freeze.until_ms.map_or_else(String::new, |until| format!(" until {}", date(until)));
    let text = format!("{} by {} covers {}{until}{reason}", freeze.name, freeze.by, scope(view));
    match freeze.kind {
        FreezeKind::Stop => format!("stopped    {}", paint.text(Tone::Bad, &text)),
        FreezeKind::Freeze => format!("frozen     {text}"),
    }
}

/// The store and its condition.
pub(super) fn store_line(store: &StoreStatus, paint: Paint) -> String {
    let version = store.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
    let full = store.size_bytes.zip(store.quota_bytes.filter(|quota| *quota > 0));
    let full = full.map(|(size, quota)| size.saturating_mul(100).checked_div(quota).unwrap_or_default());
    let full = match full {
        Some(used) if used > FILLING => {
            paint.text(Tone::Bad, &format!(", {used}% of its quota: free space, or writes will be refused"))
        }
        Some(used) => format!(", {used}% of its quota"),
        None => String::new(),
    };
    let what = match (store.condition.as_str(), &store.reason) {
        ("writable", _) => String::new(),
        ("read_only", Some(reason)) => format!(": read-only, writes are refused: {reason}"),
        ("unreachable", Some(reason)) => format!(": unreachable, this answer may be out of date: {reason}"),
        ("failed", Some(reason)) => {
            format!(": failed, writes are refused until the server is restarted: {reason}")
        }
        (condition, _) => format!(": {condition}"),
    };
    let line = format!("{}{version}{full}{what}", store.engine);
    let line = if what.is_empty() { line } else { paint.text(Tone::Bad, &line) };
    format!("store      {line}")
}

pub(super) async fn why(context: &Context, asked: &str) -> CommandResult {
    if let Some(run) = asked.strip_prefix("run/") {
        // Its entity may not be named in an error: nobody typed it.
        context.client.run(&context.namespace, run).await?;
    }
    if let Some((entity, number)) = asked.strip_prefix("rollout/").and_then(subject::past_rollout) {
        return past_rollout::show(context, entity, number).await;
    }
    let why = context.client.why(&context.namespace, &canonical(asked)).await?;
    context.show.data(&why, || vec![why.subject.clone()], |_| why.lines.join("\n"))?;
    Ok(Exit::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_that_several_entities_share_is_shown_once() {
        let long = format!("rollout paused by kim: {}", "all stands still ".repeat(5));
        let made = [("a", "up to date"), ("b", long.as_str()), ("c", "up to date"), ("d", long.as_str())];
        let all = made.map(|(name, reason)| {
            serde_json::from_value(serde_json::json!({"name": name, "targets": 1, "reason": reason})).unwrap()
        });
        let shown: Vec<String> = all.iter().map(|entity| state(entity, &all)).collect();
        assert_eq!(shown, ["up to date", &long, "up to date", "as b"]);
    }
}
