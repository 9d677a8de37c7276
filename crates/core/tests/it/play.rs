//! Reads and performs a play. Each line is one step:
//! ```text
//! given targets web-1..web-3 on v1        healthy and reporting; "on nothing" when no version is known
//! given policy batch=1 soak=60s           fields of the policy; those not named take their default
//! given known good v1                     a rollout of v1 that every target already runs
//! given time 0                            the clock begins at the epoch
//! when start v2 | retry v2 | retry | undo | abort | pause | resume        by alice; "start v2: why"
//! when outdated start v2                   by someone who does not know the outcome of the last request
//! when web-1 runs v2                      healthy, answering its last assignment
//! when web-1 applies | web-1 waits: text
//! when web-1 fails: text                  an error report; "fails twice", "fails thrice" for more attempts
//! when web-1 checks fail: text            a failing check on what it runs
//! when web-1 still says v2                runs v2, but the report answers an older assignment
//! when web-1 swaps to v2                  runs v2, and its checks noticed nothing
//! when web-1 is suspect | unreachable | never | up | held: text | released
//! when web-1 refuses orders: text | accepts orders
//! when web-1 measures soaks | confirms 60s | is counted by reports | reports        its agent does; and its last report once more
//! when web-1 has its agent started again | recovered in its soak: text       its checks failed unseen
//! when web-4 joins on v1 | leaves | comes back         as it was when it left
//! when targets in flight comply           each of them runs its assigned version
//! when the servers are away for 10m           and allow 20 s to reconnect
//! when 60s pass | policy changes to batch=2 | the server restarts | the decider dies after 1 write
//! expect assigned v2: web-1, web-2        exactly these are assigned v2; "assigned v2: nobody"
//! expect in flight: web-1                 exactly these have no verdict yet
//! expect number web-1: 2                  it was assigned twice
//! expect succeeded | failed | unreachable: web-1
//! expect state in progress                of the newest rollout, as text; "expect rollout 1 superseded by rollout 2"
//! expect good v1 | bad v2 | target v2 | rolling v2 | from v1        or "none"
//! expect refused: text | why: text | why web-1: text      contained in the answer
//! expect listed text | unlisted web-1 | wake in 60s      in the list of targets that need attention; by itself
//! expect event rollout.started | event A then B | no event target.failed   since the last "when"
//! given web-1,web-2 labelled zone=a       what selectors, domains and orders see besides the name
//! given the clock shows 2026-11-21T01:00:00Z
//! when a freeze NAME of everything|web|targets SELECTOR [for 10m]: why    a stop NAME …; the freeze NAME ends
//! when service db has 2 functional | cluster db has db-1 primary, db-2 replica down        see `stores`
//! when approve | approve stage 2          by alice
//! when selection chooses web-3, web-1 | approval agrees | approval refuses: text | monitoring likes|dislikes web-1: text
//! when removal removes web-1 | monitor is content | monitor is worried: text | selection is silent: text
//! expect asked selection: web-1..web-4 | asked monitor | asked nobody
//! ```
//!
//! A `when` with ` & ` has several things happen before one pass.

mod environment;
mod names;
mod policy;
mod stores;

use std::collections::BTreeMap;

use bellwether_core::decide::rollout::decide;
use bellwether_core::records::progress::Progress;
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::records::target::{AssignmentOutcome, TargetState};
use bellwether_core::rollout::environment::Watch;
use bellwether_core::rollout::observation::{HealthProof, Observation, PresenceState};
use bellwether_core::rollout::operations;
use bellwether_core::rollout::why::{why, why_rollout};
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

use self::names::{names_of, same_names};
use self::policy::policy;
use crate::world::{World, evidence, newcomer};

/// A play on its stage.
struct Stage {
    world: World,
    refusal: String,
    dies_after: Option<usize>,
    wake: Option<Span>,
    left: BTreeMap<TargetName, Observation>,
}

/// Performs a play; stops at the first line that does not hold.
pub(crate) fn perform(text: &str) {
    let (world, refusal, left) = (World::new(), String::new(), BTreeMap::new());
    let mut stage = Stage { world, refusal, dies_after: None, wake: None, left };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap().trim();
        let result = match line.split_once(' ') {
            None if line.is_empty() => Ok(()),
            Some(("given", rest)) => stage.given(rest),
            Some(("when", rest)) => stage.when(rest),
            Some(("expect", rest)) => stage.expect(rest),
            Some(_) | None => Err("a line begins with given, when or expect".into()),
        };
        if let Err(problem) = result {
            let progress = &stage.world.progress;
            let newest = stage.world.newest().map(|rollout| rollout.state.to_string());
            panic!("line {number}: {line}\n  {problem}\n  {newest:?}\n  {progress:?}");
        }
    }
}

type Step = Result<(), String>;

impl Stage {
    fn given(&mut self, line: &str) -> Step {
        if let Some(rest) = line.strip_prefix("targets ") {
            let (names, version) = rest.split_once(" on ").ok_or("targets … on …")?;
            for name in names_of(names) {
                self.join(&name, version);
            }
            Ok(())
        } else if let Some((names, label)) = line.split_once(" labelled ") {
            environment::label(&mut self.world, names, label)
        } else if let Some(time) = line.strip_prefix("the clock shows ") {
            let shown: jiff::Timestamp = time.parse().map_err(|error| format!("{error}"))?;
            self.world.now = Timestamp::from_millis(shown.as_millisecond().try_into().unwrap());
            Ok(())
        } else if line == "time 0" {
            self.world.now = Timestamp::EPOCH;
            Ok(())
        } else if let Some(rest) = line.strip_prefix("policy ") {
            self.world.set_policy(policy(rest)?);
            Ok(())
        } else if let Some(rest) = line.strip_prefix("known good ") {
            self.operate(&format!("start {rest}"));
            self.world.decide();
            self.expect(&format!("good {rest}"))
        } else {
            Err("unknown".into())
        }
    }

    fn when(&mut self, line: &str) -> Step {
        self.world.events.clear();
        for part in line.split(" & ") {
            self.happen(part.trim())?;
        }
        if let Some(writes) = self.dies_after.take() {
            let verdict = decide(&self.world.board, &self.world.environment, self.world.now);
            self.world.apply_first(verdict, writes);
            self.world.board = self.world.rebuilt();
            return Ok(());
        }
        let wake = self.world.decide().wake;
        self.wake = wake.map(|wake| wake.since(self.world.now));
        Ok(())
    }

    fn happen(&mut self, line: &str) -> Step {
        let now = self.world.now;
        if let Some(span) = line.strip_suffix(" pass") {
            self.world.pass_time(span.parse::<Span>().map_err(|error| error.to_string())?);
        } else if let Some(span) = line.strip_prefix("the servers are away for ") {
            self.world.pass_time(span.parse::<Span>().map_err(|error| error.to_string())?);
            self.world.environment.watch =
                Watch { since: self.world.now, grace: Span::from_secs(20), detection: Span::ZERO };
        } else if let Some(rest) = line.strip_prefix("policy changes to ") {
            self.world.set_policy(policy(rest)?);
        } else if line == "the server restarts" {
            self.world.board = self.world.rebuilt();
        } else if let Some(rest) = line.strip_prefix("the decider dies after ") {
            let count = rest.split(' ').next().and_then(|count| count.parse().ok());
            self.dies_after = Some(count.ok_or("after how many writes?")?);
        } else if line == "targets in flight comply" {
            self.comply();
        } else if let Some(result) = environment::happen(&mut self.world, line) {
            result?;
        } else if is_operation(line) {
            self.operate(line);
        } else {
            let (names, what) = line.split_once(' ').ok_or("who does what?")?;
            for name in names_of(names) {
                self.target_does(&name, what, now)?;
            }
        }
        Ok(())
    }

    fn comply(&mut self) {
        let in_flight: Vec<_> = self.world.states.iter().filter(|(_, state)| state.is_in_flight()).collect();
        let in_flight: Vec<_> =
            in_flight.into_iter().map(|(name, state)| (name.clone(), state.version.clone())).collect();
        for (name, version) in in_flight {
            if self
                .world
                .observations
                .get(&name)
                .is_some_and(|observation| observation.contact == PresenceState::Up)
            {
                self.world.runs(&name, &version);
            }
        }
    }

    fn join(&mut self, name: &TargetName, version: &str) {
        let version = (version != "nothing").then(|| self::version(version));
        let observation = newcomer(version.as_ref(), self.world.now);
        self.world.see(name, Some(observation));
    }

    fn operate(&mut self, line: &str) {
        let (line, reason) = line.split_once(": ").unwrap_or((line, ""));
        let (world, intent) = (&self.world, self.world.intent(reason));
        let (entity, progress) = (&world.entity, &world.progress);
        let (operation, argument) = line.split_once(' ').unwrap_or((line, ""));
        let result = match operation {
            "start" => operations::start(entity, progress, version(argument), intent),
            "outdated" => {
                let outdated = Progress { handled: progress.handled, ..Progress::default() };
                operations::start(entity, &outdated, version(argument.trim_start_matches("start ")), intent)
            }
            "retry" => {
                let version = (!argument.is_empty()).then(|| version(argument));
                operations::retry(entity, progress, version, intent)
            }
            "undo" => operations::undo(entity, progress, intent),
            "approve" => {
                let stage = argument.strip_prefix("stage ").and_then(|stage| stage.parse().ok());
                operations::approve(entity, world.active().as_ref(), stage, intent)
            }
            "abort" => operations::abort(entity, progress, intent),
            "pause" => operations::pause(entity, progress, intent),
            _ => operations::resume(entity, progress),
        };
        self.refusal = self.world.operate(result).map(|refusal| refusal.to_string()).unwrap_or_default();
    }

    fn target_does(&mut self, name: &TargetName, what: &str, now: Timestamp) -> Step {
        let (what, text) = what.split_once(": ").unwrap_or((what, ""));
        let world = &mut self.world;
        match what.split(' ').collect::<Vec<_>>()[..] {
            ["runs", running] => world.runs(name, &version(running)),
            ["fails"] => world.fails(name, 1, text),
            ["fails", "twice"] => world.fails(name, 2, text),
            ["fails", "thrice"] => world.fails(name, 3, text),
            ["waits"] => world.answers(name, TargetActivity::Waiting { reason: text.into() }),
            ["applies"] => world.answers(name, TargetActivity::Applying { attempt: 1, waiting_for: None }),
            ["checks", "fail"] => {
                let answering = world.assignment(name);
                world.change(name, |observation| {
                    observation.answering = answering;
                    observation.health = TargetHealth::Failing { evidence: evidence(text) };
                    observation.healthy_since = None;
                });
            }
            ["recovered", "in", "its", "soak"] => {
                world.change(name, |observation| observation.soak_failure = Some(text.into()));
            }
            ["has", "its", "agent", "started", "again"] => world.change(name, |seen| {
                (seen.agent_restarted, seen.healthy_since) = (true, Some(now));
            }),
            ["still", "says", running] => {
                world.runs(name, &version(running));
                let older = AssignmentNumber::new(world.assignment(name).get().saturating_sub(1));
                world.change(name, |observation| observation.answering = older);
            }
            ["is", "suspect"] => {
                world.change(name, |observation| observation.contact = PresenceState::Suspect)
            }
            ["is", "unreachable"] => {
                world.change(name, |observation| observation.contact = PresenceState::Unreachable)
            }
            ["is", "never"] => world.change(name, |observation| observation.contact = PresenceState::Never),
            ["is", "up"] => world.change(name, |observation| observation.contact = PresenceState::Up),
            ["is", "held"] => world.change(name, |observation| observation.held = Some(text.into())),
            ["is", "released"] => world.change(name, |observation| observation.held = None),
            ["refuses", "orders"] => world.refuses(name, Some(text)),
            ["accepts", "orders"] => world.refuses(name, None),
            ["joins", "on", running] => self.join(name, running),
            ["joins", "unchecked", "on", running] => {
                self.join(name, running);
                self.world.change(name, |observation| observation.health = TargetHealth::NoChecks);
            }
            ["swaps", "to", running] => {
                let since = world.observations.get(name).and_then(|observation| observation.healthy_since);
                world.runs(name, &version(running));
                world.change(name, |observation| observation.healthy_since = since);
            }
            ["leaves"] => {
                self.left.extend(
                    world.observations.get(name).map(|observation| (name.clone(), observation.clone())),
                );
                world.see(name, None);
            }
            ["comes", "back"] => world.see(name, self.left.remove(name)),
            _ => return soak_does(world, name, what).ok_or(format!("a target cannot do that, at {now:?}")),
        }
        Ok(())
    }

    fn expect(&mut self, line: &str) -> Step {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what.trim_end_matches(':') {
            "assigned" => {
                let (version, names) = rest.split_once(':').ok_or("assigned VERSION: TARGETS")?;
                same_names(names, self.named(|state| state.version.as_str() == version))
            }
            "in" => same_names(rest.trim_start_matches("flight:"), self.named(TargetState::is_in_flight)),
            "succeeded" => same_names(
                rest,
                self.named(|state| matches!(state.outcome, AssignmentOutcome::Succeeded { .. })),
            ),
            "failed" => same_names(
                rest,
                self.named(|state| matches!(state.outcome, AssignmentOutcome::Failed { .. })),
            ),
            "unreachable" => same_names(
                rest,
                self.named(|state| matches!(state.outcome, AssignmentOutcome::Unreachable { .. })),
            ),
            _ => self.expect_of_entity(line),
        }
    }

    fn expect_of_entity(&mut self, line: &str) -> Step {
        let world = &self.world;
        let slot = |slot: Option<&Version>| slot.map_or("none".to_string(), ToString::to_string);
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what.trim_end_matches(':') {
            "state" => {
                same(rest, &world.newest().map(|rollout| rollout.state.to_string()).unwrap_or_default())
            }
            "rollout" => {
                let (number, state) = rest.split_once(' ').ok_or("rollout N STATE")?;
                let number = number.parse().map(RolloutNumber::new).map_err(|_| "which rollout?")?;
                let rollout = world.rollouts.get(&number);
                same(state, &rollout.map(|rollout| rollout.state.to_string()).unwrap_or_default())
            }
            "from" => same(rest, &slot(world.newest().and_then(|rollout| rollout.from.as_ref()))),
            "number" => {
                let (name, number) = rest.split_once(": ").ok_or("number NAME: N")?;
                same(number, &world.assignment(&names_of(name)[0]).to_string())
            }
            "good" => same(rest, &slot(world.progress.last_known_good.as_ref())),
            "bad" => same(rest, &slot(world.progress.last_known_bad().map(|bad| &bad.version))),
            "target" => same(rest, &slot(world.progress.target.as_ref())),
            "rolling" => same(rest, &slot(world.progress.rolling.as_ref())),
            "refused" => contains(rest, &self.refusal),
            "accepted" => same("", &self.refusal),
            "why" if line.starts_with("why:") => contains(rest, &why_rollout(&world.board, world.newest())),
            "why" => {
                let (name, text) = rest.split_once(": ").ok_or("why NAME: text")?;
                contains(text, &why(&world.board, &names_of(name)[0], world.why_time()))
            }
            "listed" | "unlisted" => environment::expect_listed(world, line),
            "event" | "no" => self.expect_event(line),
            "asked" => environment::expect_asked(&self.world, rest),
            "wake" => same(rest, &self.wake.map_or("never".into(), |wake| format!("in {wake}"))),
            _ => Err("unknown".into()),
        }
    }

    fn expect_event(&self, line: &str) -> Step {
        let kinds: Vec<_> = self.world.events.iter().map(|event| event.kind).collect();
        let (wanted, kind) = match line.strip_prefix("no event ") {
            Some(kind) => (false, kind),
            None => (true, line.trim_start_matches("event ")),
        };
        let mut left = kinds.iter();
        let is_there = kind.split(" then ").all(|kind| left.any(|is| *is == kind));
        if is_there == wanted { Ok(()) } else { Err(format!("the events were {kinds:?}")) }
    }

    fn named(&self, is: impl Fn(&TargetState) -> bool) -> Vec<String> {
        let states = self.world.states.iter().filter(|(name, _)| self.world.observations.contains_key(*name));
        states.filter(|(_, state)| is(state)).map(|(name, _)| name.to_string()).collect()
    }
}

/// What proves that a target is healthy changes; none if it is something else that it does.
fn soak_does(world: &mut World, name: &TargetName, what: &str) -> Option<()> {
    let (now, soak) = (world.now, what.strip_prefix("confirms ").and_then(|soak| soak.parse().ok()));
    match (what, soak) {
        ("measures soaks", _) => {
            world.change(name, |observation| observation.proof = HealthProof::Confirmed(Span::ZERO));
        }
        ("is counted by reports", _) => {
            world.change(name, |observation| observation.proof = HealthProof::Reports)
        }
        ("reports", _) => world.change(name, |observation| observation.reported_at = now),
        (_, Some(soak)) => {
            world.change(name, |observation| observation.proof = HealthProof::Confirmed(soak));
        }
        (_, None) => return None,
    }
    Some(())
}

fn is_operation(line: &str) -> bool {
    let word = line.split([' ', ':']).next().unwrap_or_default();
    ["start", "outdated", "approve", "retry", "undo", "abort", "pause", "resume"].contains(&word)
}

fn same(wanted: &str, found: &str) -> Step {
    if wanted == found { Ok(()) } else { Err(format!("it is {found:?}")) }
}

fn contains(wanted: &str, found: &str) -> Step {
    if found.contains(wanted) && !wanted.is_empty() { Ok(()) } else { Err(format!("it is {found:?}")) }
}

fn version(text: &str) -> Version {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
