//! Heeding: what people asked for, each thing once, in the order abort, version, resume, pause.

use alloc::format;

use super::head::Head;
use super::pass::Pass;
use super::tell::said;
use crate::records::entity::{Entity, How, Wanted};
use crate::records::freeze::Freeze;
use crate::records::policy::Supersede;
use crate::records::rollout::{Heading, Judgement, Pause, Rollout, State};
use crate::rollout::board::lane::Lane;

/// Heeds what people asked for; says whether that changed anything.
pub(super) fn heed(pass: &mut Pass<'_>) -> bool {
    let mut head = pass.head();
    let entity = pass.board.entity();
    heed_abort(&mut head, entity);
    heed_request(&mut head, entity);
    heed_approval(&mut head, entity);
    let tally = pass.board.tree().tally();
    heed_resume(&mut head, entity, tally.of(Lane::Lost) + tally.of(Lane::Away));
    heed_pause(&mut head, entity, pass.around.stop(&entity.name, pass.now));
    let stop_ends = pass.around.stop(&entity.name, pass.now).and_then(|stop| stop.until);
    pass.look_again(stop_ends);
    pass.take(head)
}

fn heed_abort(head: &mut Head, entity: &Entity) {
    let Some(abort) = &entity.abort else { return };
    if head.rollout.as_ref().is_some_and(|rollout| rollout.request <= abort.request) {
        let state = State::Aborted { by: abort.by.clone(), why: abort.why.clone() };
        head.turn_to(state, said("aborted", &abort.by, &abort.why));
    }
    if let Some(wanted) = entity.wanted.as_ref().filter(|wanted| wanted.request <= abort.request) {
        head.change_progress(|progress| {
            progress.target = Some(wanted.version.clone());
            progress.handled = progress.handled.max(wanted.request);
        });
    }
}

fn heed_request(head: &mut Head, entity: &Entity) {
    let Some(wanted) = &entity.wanted else { return };
    if wanted.request <= head.progress.handled {
        return;
    }
    head.change_progress(|progress| progress.target = Some(wanted.version.clone()));
    let Some(rollout) = head.rollout.clone() else {
        begin(head, wanted, entity);
        return;
    };
    match ask(head, wanted, entity, &rollout) {
        Answer::Done => done(head, wanted),
        Answer::Later => {}
        Answer::Back => {
            done(head, wanted);
            let heading = Heading::BackByUndo { by: wanted.by.clone(), why: wanted.why.clone() };
            head.change_rollout(|rollout| rollout.heading = heading);
            head.turn_to(State::RollingBack, said("undone", &wanted.by, &wanted.why));
        }
        Answer::Replace => {
            let by = head.progress.last.next();
            let cause = said(&format!("{} asked for", wanted.version), &wanted.by, &wanted.why);
            head.turn_to(State::Superseded { by }, cause);
            begin(head, wanted, entity);
        }
    }
}

/// What a request means to a rollout under way.
enum Answer {
    /// It does that already.
    Done,
    /// It ends first.
    Later,
    /// It goes back.
    Back,
    /// A new one takes its place.
    Replace,
}

fn ask(head: &Head, wanted: &Wanted, entity: &Entity, rollout: &Rollout) -> Answer {
    let to_good = head.progress.last_known_good.as_ref() == Some(&wanted.version);
    let same = rollout.version == wanted.version;
    let bad = matches!(rollout.judgement, Judgement::Bad { .. });
    match rollout.heading {
        Heading::BackFromBad | Heading::BackByUndo { .. } if to_good => Answer::Done,
        Heading::BackFromBad | Heading::BackByUndo { .. } => Answer::Later,
        Heading::Forward if same && !bad => Answer::Done,
        Heading::Forward if to_good => Answer::Back,
        Heading::Forward => match entity.policy.supersede {
            Supersede::Replace => replace_or_refuse(head, wanted),
            Supersede::Finish | Supersede::Refuse if bad => replace_or_refuse(head, wanted),
            Supersede::Finish | Supersede::Refuse => Answer::Later,
        },
    }
}

/// A request for a version that became bad after it was made does not disturb what is under way.
fn replace_or_refuse(head: &Head, wanted: &Wanted) -> Answer {
    if is_refused(head, wanted) { Answer::Later } else { Answer::Replace }
}

fn is_refused(head: &Head, wanted: &Wanted) -> bool {
    wanted.how != How::Retry && head.progress.bad(&wanted.version).is_some()
}

fn begin(head: &mut Head, wanted: &Wanted, entity: &Entity) {
    if let Some(bad) = head.progress.bad(&wanted.version).filter(|_| wanted.how != How::Retry) {
        let cause = format!("{} was found bad meanwhile: {}; use 'rollout retry'", bad.version, bad.reason);
        head.tell_refused(wanted, cause);
        done(head, wanted);
    } else {
        head.start(wanted, entity.policy.clone());
    }
}

fn done(head: &mut Head, wanted: &Wanted) {
    head.change_progress(|progress| progress.handled = wanted.request);
}

/// A resume releases a pause that the engine made, and lets pass what made it pause.
fn heed_resume(head: &mut Head, entity: &Entity, silent: u64) {
    if entity.resumes == head.progress.resumes {
        return;
    }
    head.change_progress(|progress| progress.resumes = entity.resumes);
    let Some(rollout) = head.rollout.clone() else { return };
    let State::Paused(pause) = &rollout.state else { return };
    let clock = head.progress.clock.at(head.now);
    match pause {
        Pause::Person { .. } | Pause::Stopped { .. } => return,
        Pause::Bad { .. } | Pause::MonitorSilent { .. } => head.change_rollout(|rollout| {
            rollout.waived.monitor = true;
            rollout.judgement = Judgement::Open;
            if let Some(gain) = &mut rollout.gain {
                gain.at = clock;
            }
        }),
        Pause::TooManyFailed { failed, .. } | Pause::NothingToRollBackTo { failed, .. } => {
            let failed = *failed;
            head.change_rollout(|rollout| {
                rollout.waived.failed = rollout.waived.failed.max(failed);
                rollout.judgement = Judgement::Open;
            });
        }
        Pause::TooManyUnreachable { .. } => {
            head.change_rollout(|rollout| {
                rollout.waived.unreachable = rollout.waived.unreachable.max(silent);
            });
        }
    }
    head.turn_to(moving(&rollout), format!("a person let it pass: {pause}"));
}

/// A person's approval of a stage.
fn heed_approval(head: &mut Head, entity: &Entity) {
    let Some(approval) = &entity.approval else { return };
    let lacks = head
        .rollout
        .as_ref()
        .is_some_and(|rollout| rollout.number == approval.rollout && rollout.stage.approved < approval.stage);
    if lacks {
        let what = format!("stage {} approved", approval.stage);
        head.tell("rollout.approved", said(&what, &approval.by, &approval.why));
        head.change_rollout(|rollout| rollout.stage.approved = approval.stage);
    }
}

/// A stop stands above a person's pause; both end with what made them.
fn heed_pause(head: &mut Head, entity: &Entity, stop: Option<&Freeze>) {
    let Some(rollout) = head.rollout.clone() else { return };
    if let Some(Freeze { name, by, why, .. }) = stop {
        let pause = Pause::Stopped { freeze: name.clone(), by: by.clone(), why: why.clone() };
        head.turn_to(State::Paused(pause), said(&format!("stopped by {name},"), by, why));
        return;
    }
    match (&entity.hold, &rollout.state) {
        (Some(hold), _) => {
            let pause = Pause::Person { by: hold.by.clone(), why: hold.why.clone() };
            head.turn_to(State::Paused(pause), said("paused", &hold.by, &hold.why));
        }
        (None, State::Paused(pause @ (Pause::Person { .. } | Pause::Stopped { .. }))) => {
            head.turn_to(moving(&rollout), format!("no longer paused {pause}"));
        }
        (
            None,
            State::Running
            | State::Waiting(_)
            | State::Paused(_)
            | State::RollingBack
            | State::Succeeded
            | State::SucceededPartly { .. }
            | State::RolledBack
            | State::RollbackFailed { .. }
            | State::Aborted { .. }
            | State::Superseded { .. },
        ) => {}
    }
}

/// The state of a rollout that nothing holds.
const fn moving(rollout: &Rollout) -> State {
    match rollout.heading {
        Heading::Forward => State::Running,
        Heading::BackFromBad | Heading::BackByUndo { .. } => State::RollingBack,
    }
}
