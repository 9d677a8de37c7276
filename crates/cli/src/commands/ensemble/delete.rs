//! `ensemble delete`: asks, deletes, and waits until the name is free again if it is to.

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::osds::OsdPhase;
use bellwether_api::v1::ensemble::replication::MemberRole;
use bellwether_api::v1::ensemble::status::EnsembleStatus;
use bellwether_api::v1::ensemble::{Ensemble, PlanEnsemble};
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Span;

use super::snapshots;
use crate::args::Consent;
use crate::commands::rollout::follow::WaitLimit;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Time between two questions whether something is left of an ensemble.
const POLL: Duration = Duration::from_millis(500);

/// Deletes an ensemble, after the question whether its members may stop; may wait until they have, for ever or for a time.
pub(super) async fn delete(
    context: &Context,
    name: &str,
    wait: Option<Option<Span>>,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    // What will be refused is refused before the question.
    let asked = PlanEnsemble { delete: true, ..PlanEnsemble::default() };
    let before = client.plan_ensemble(namespace, name, &asked).await?;
    let left = snapshots::left_behind(before.status.as_ref());
    let members = before.status.as_ref().map_or(0, |status| status.members.len());
    confirm(&question(&before, members), consent)?;
    client.delete_ensemble(namespace, name).await?;
    context.show.changed(&format!("ensemble {name}: deleted"));
    for line in &left {
        context.show.note(line);
    }
    if members > 0 {
        context.show.note(&format!(
            "their data are set aside, as {name}.set-aside-N, on their nodes: {}; how they are used again is in the guide on ensembles, \"Deleting one\"",
            places(before.status.as_ref())
        ));
    }
    match wait {
        Some(timeout) => gone(context, &before, WaitLimit::from_now(timeout)).await?,
        None if members > 0 => {
            context.show.note(&format!("until all have left: bellwether why ensemble/{name}"));
        }
        None => {}
    }
    Ok(())
}

/// The members of an ensemble with their nodes, and which one is the primary: that one has all that was written.
fn places(status: Option<&EnsembleStatus>) -> String {
    let members = status.into_iter().flat_map(|status| &status.members);
    let place = |member: &EnsembleMember| {
        let is_primary = member.role == Some(MemberRole::Primary);
        let primary = if is_primary { ", the primary," } else { "" };
        format!("member {}{primary} on {}", member.number, member.node)
    };
    members.map(place).collect::<Vec<_>>().join("; ")
}

fn question(before: &Ensemble, members: usize) -> String {
    let name = &before.name;
    let osds = before.status.iter().flat_map(|status| &status.osds);
    let osds = match osds.filter(|osd| osd.state != OsdPhase::Removed).count() {
        0 => String::new(),
        osds => format!(" and its {}, whose devices stay as they are", plural(osds, "OSD")),
    };
    match members {
        0 => format!("delete ensemble {name}?"),
        members => format!("delete ensemble {name} and stop its {}{osds}?", plural(members, "member")),
    }
}

/// Waits until nothing is left of a deleted ensemble, telling what is whenever that changes.
async fn gone(context: &Context, deleted: &Ensemble, limit: WaitLimit) -> Result<(), Failure> {
    let (client, namespace, name) = (&context.client, context.namespace.as_str(), &deleted.name);
    let (subject, mut shown) = (format!("ensemble/{name}"), Vec::new());
    loop {
        let Some(why) = found(client.why(namespace, &subject).await)? else { break };
        // Another server may not know yet that it is deleted. Somebody may have made another one of its name, which was free then.
        let is_former = |now: &Ensemble| (now.revision, now.at_ms) == (deleted.revision, deleted.at_ms);
        match found(client.ensemble(namespace, name).await)? {
            Some(now) if is_former(&now) => {}
            Some(_) => break,
            None => {
                let left: Vec<String> = why.lines.iter().map(|line| ageless(line)).collect();
                if left != shown {
                    why.lines.iter().for_each(|line| context.show.note(&format!("waiting: {line}")));
                    shown = left;
                }
            }
        }
        if limit.is_over() {
            let what = format!("the members of ensemble {name} have not all stopped{}", limit.within());
            let message = format!("{what}; they continue to leave");
            return Err(Failure::stated(Exit::Timeout, message).hint(format!("bellwether why {subject}")));
        }
        tokio::time::sleep(POLL).await;
    }
    context.show.changed(&format!("ensemble {name}: nothing of it is left"));
    Ok(())
}

/// What was asked for; `None` if there is no such thing.
fn found<T>(answer: Result<T, CallError>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A line without the times in it, which change all the time.
fn ageless(line: &str) -> String {
    let is_time = |word: &&str| {
        let unit =
            word.trim_end_matches([',', ';', ':']).trim_start_matches(|char: char| char.is_ascii_digit());
        word.starts_with(|char: char| char.is_ascii_digit()) && ["ms", "s", "m", "h", "d"].contains(&unit)
    };
    line.split(' ').filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_in_times_alone_say_the_same() {
        let said = |age| {
            format!("member 1 on node n1 is removed for {age}: the ensemble was deleted; for {age}, it ends")
        };
        assert_eq!(ageless(&said("21s")), ageless(&said("6m 5s")));
        assert_ne!(ageless("3 on nodes n1, n2, n3"), ageless("2 on nodes n1, n2"));
        assert_ne!(ageless("exit code 5"), ageless("exit code 6"));
    }
}
