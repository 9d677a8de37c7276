//! What happens around an entity in a play: labels, freezes, services, controllers, and what they are asked.

use std::sync::Arc;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::freeze::{Freeze, FreezeKind, FreezeScope};
use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::rollout::hook_answer::{HookAnswer, TargetJudgement};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::rollout::operations;
use bellwether_core::rollout::why::targets::why_targets;
use bellwether_core::words::label::{Label, Labels};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Span;

use super::Step;
use super::names::{names_of, same_names};
use super::stores;
use crate::world::World;

/// Gives targets labels; says whether the line does.
pub(super) fn label(world: &mut World, names: &str, label: &str) -> Step {
    let label: Label = label.parse().map_err(|error| format!("{error}"))?;
    for name in names_of(names) {
        world.change(&name, |observation| observation.labels.set(label.clone()).unwrap());
    }
    Ok(())
}

/// Performs a line about what is around; none if it is about something else.
pub(super) fn happen(world: &mut World, line: &str) -> Option<Step> {
    let (head, text) = line.split_once(": ").unwrap_or((line, ""));
    let words: Vec<&str> = head.split(' ').collect();
    Some(match words[..] {
        ["a", kind @ ("freeze" | "stop"), name, "of", ref scope @ ..] => {
            begin(world, kind, name, scope, text)
        }
        ["the", "freeze" | "stop", name, "ends"] => {
            world.environment.freezes.retain(|freeze| freeze.name.as_str() != name);
            Ok(())
        }
        ["service", name, "has", count, "functional"] => {
            world.environment.services.insert(name.parse().unwrap(), count.parse().unwrap());
            Ok(())
        }
        ["cluster", cluster, "has", ref members @ ..] => {
            stores::set(world, (cluster, false), &members.join(" "))
        }
        ["cluster", cluster, "fell", "apart", "and", "has", ref members @ ..] => {
            stores::set(world, (cluster, true), &members.join(" "))
        }
        ["the", "failure", "of", name, "is", "tried", "again"] => try_again(world, name),
        [asked @ ("selection" | "approval" | "monitoring" | "removal" | "monitor"), ref verb @ ..] => {
            answer(world, asked, &verb.join(" "), text)
        }
        _ => return None,
    })
}

/// A person has the last assignment of a target, which failed, tried again, as of the run of a workflow.
fn try_again(world: &mut World, name: &str) -> Step {
    let target: TargetName = name.parse().map_err(|error| format!("{error}"))?;
    let asked = operations::retry_target(&world.entity, &world.progress, &target, world.assignment(&target));
    world.operate(asked).map_or(Ok(()), |refusal| Err(refusal.to_string()))
}

fn begin(world: &mut World, kind: &str, name: &str, scope: &[&str], reason: &str) -> Step {
    let (scope, until) = match scope {
        [scope @ .., "for", span] if span.parse::<Span>().is_ok() => (scope, Some(span.parse().unwrap())),
        scope => (scope, None),
    };
    let scope = match scope {
        ["everything"] => FreezeScope::Everything,
        ["web"] => FreezeScope::Entity("web".parse().unwrap()),
        ["db"] => FreezeScope::Entity("db".parse().unwrap()),
        ["targets", selector @ ..] => {
            FreezeScope::Targets(Selector::parse(&selector.join(" ")).map_err(|error| error.to_string())?)
        }
        _ => return Err("of everything, web, db, or targets SELECTOR".into()),
    };
    let kind = if kind == "stop" { FreezeKind::Stop } else { FreezeKind::Freeze };
    let (name, by, reason) = (name.parse().unwrap(), "alice".parse().unwrap(), reason.into());
    let (at, until) = (world.now, until.map(|span| world.now.plus(span)));
    world.environment.freezes.push(Arc::new(Freeze {
        name,
        scope,
        kind,
        annotation: Annotation { by, reason, at },
        until,
        labels: Labels::default(),
    }));
    world.environment.freezes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}

fn answer(world: &mut World, asked: &str, verb: &str, text: &str) -> Step {
    let kind = HookPurpose::ALL.into_iter().find(|kind| kind.as_str() == asked).ok_or("which hook?")?;
    let names = |text: &str| -> Vec<TargetName> {
        if text == "nobody" { Vec::new() } else { text.split(", ").flat_map(names_of).collect() }
    };
    let judged = |names: &str, well| {
        let judge = |target| TargetJudgement { target, well, reason: text.into() };
        HookAnswer::Judged(names_of(names).into_iter().map(judge).collect())
    };
    let answer = match (kind, verb.split_once(' ').unwrap_or((verb, ""))) {
        (_, ("is", "silent")) => HookAnswer::Silent { reason: text.into() },
        (HookPurpose::Selection, ("chooses", chosen)) => HookAnswer::Selected(names(chosen)),
        (HookPurpose::Approval, ("agrees", _)) => {
            HookAnswer::Approved { approved: true, reason: text.into() }
        }
        (HookPurpose::Approval, ("refuses", _)) => {
            HookAnswer::Approved { approved: false, reason: text.into() }
        }
        (HookPurpose::Monitoring, ("likes", target)) => judged(target, true),
        (HookPurpose::Monitoring, ("dislikes", target)) => judged(target, false),
        (HookPurpose::Removal, ("removes", gone)) => HookAnswer::Removed(names(gone)),
        (HookPurpose::Monitor, ("is", "content")) => HookAnswer::Watched { well: true, reason: text.into() },
        (HookPurpose::Monitor, ("is", "worried")) => HookAnswer::Watched { well: false, reason: text.into() },
        _ => return Err("that is no answer".into()),
    };
    world.answer(kind, answer).ok_or_else(|| format!("{asked} was not asked: {:?}", world.questions))
}

/// Expects what was asked: `asked nobody`, or `asked selection: web-1..web-3`, `asked monitor`.
pub(super) fn expect_asked(world: &World, rest: &str) -> Step {
    let (asked, names) = rest.split_once(": ").unwrap_or((rest, ""));
    if asked == "nobody" {
        let none = world.questions.is_empty();
        return if none { Ok(()) } else { Err(format!("it asked {:?}", world.questions)) };
    }
    let found = world.questions.iter().find(|question| question.asked().as_str() == asked);
    let text = |names: &[TargetName]| names.iter().map(ToString::to_string).collect();
    let about = match found.ok_or_else(|| format!("it asked {:?}", world.questions))? {
        HookQuestion::Selection { candidates, .. } => text(candidates),
        HookQuestion::Approval { targets, .. } | HookQuestion::Removal { targets } => text(targets),
        HookQuestion::Monitoring { targets } => targets.iter().map(|(name, _)| name.to_string()).collect(),
        HookQuestion::Monitor { .. } => Vec::new(),
    };
    if names.is_empty() { Ok(()) } else { same_names(names, about) }
}

/// Checks a text, or a target's name, against the list of targets that need attention.
pub(super) fn expect_listed(world: &World, line: &str) -> Result<(), String> {
    let listed = why_targets(&world.board, world.newest(), world.why_time()).join("\n");
    let as_expected = match line.split_once(' ') {
        Some(("listed", text)) => listed.contains(text),
        Some((_, target)) => !listed.contains(&format!("{target}: ")),
        None => return Err("listed text, or unlisted TARGET".into()),
    };
    if as_expected { Ok(()) } else { Err(format!("the list is\n{listed}")) }
}
