//! Checks: probed continuously, one task each; hysteresis turns the results into the health of an entity.

mod exec;
mod failure;
mod http;
mod tcp;

use std::collections::BTreeMap;

use bellwether_core::local::delay;
use bellwether_core::local::health::{CheckHistory as Folded, CheckVerdict};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::CheckName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use bellwether_rt::observed::{self, TimeLimit};
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use tokio::sync::watch;

use crate::apply::CommandFacts;
use crate::apply::output::one_line;
use crate::check_store::StoredCheck;
use crate::config::recipe::{CheckRecipe, Probe};
use failure::ProbeFailure;

/// Longest message of a failing check, in bytes.
const MAX_MESSAGE_BYTES: usize = 256;

/// The running checks of one entity. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct EntityChecks {
    folded: watch::Receiver<BTreeMap<CheckName, Folded>>,
    /// Number of the last request to ask every check again.
    requests: watch::Sender<u64>,
    /// The newest request that each check passed after.
    answers: watch::Receiver<BTreeMap<CheckName, u64>>,
    /// What was said by the last probe of each check that failed.
    said: watch::Receiver<BTreeMap<CheckName, String>>,
    level: Tasks,
}

impl Drop for EntityChecks {
    fn drop(&mut self) {
        self.level.cancel();
    }
}

/// What checks run with.
#[derive(Debug)]
pub(crate) struct CheckContext<'a> {
    pub(crate) facts: &'a CommandFacts,
    pub(crate) clock: &'a Clock,
    pub(crate) tasks: &'a Tasks,
    /// Spreads the probes.
    pub(crate) seed: u64,
    /// End of the start-up of what is checked, in which failures do not count before the first pass; `None` if it runs.
    pub(crate) starting_until: Option<Timestamp>,
}

impl EntityChecks {
    /// Starts the checks, each from what is stored of it, else without a verdict: results about another version never count
    /// for this one, nor do those of another probe.
    pub(crate) fn start(
        checks: &BTreeMap<CheckName, CheckRecipe>,
        stored: &BTreeMap<CheckName, StoredCheck>,
        CheckContext { facts, clock, tasks, seed, starting_until }: CheckContext<'_>,
    ) -> Self {
        let level = tasks.child();
        let now = clock.now();
        let first = checks.iter().map(|(name, check)| {
            let stored = stored.get(name).filter(|stored| stored.probe == check.probe.digest());
            // One interval and the longest time that a probe takes.
            let until = now.plus(check.interval).plus(check.timeout);
            let first = stored.map(|stored| Folded::restored(stored.history.clone(), until));
            let fresh = || starting_until.map_or_else(Folded::new, Folded::starting);
            (name.clone(), first.unwrap_or_else(fresh))
        });
        let first = first.collect();
        let (sender, folded) = watch::channel(first);
        let (requests, requested) = watch::channel(0);
        let unanswered = checks.keys().map(|name| (name.clone(), 0)).collect();
        let (answered, answers) = watch::channel(unanswered);
        let (heard, said) = watch::channel(BTreeMap::new());
        for (name, check) in checks {
            let asking = CheckTask {
                name: name.clone(),
                check: check.clone(),
                facts: facts.clone(),
                clock: clock.clone(),
                folded: sender.clone(),
                requested: requested.clone(),
                answered: answered.clone(),
                heard: heard.clone(),
                seed,
            };
            level.spawn("check", asking.run(level.clone()));
        }
        Self { folded, requests, answers, said, level }
    }

    /// Evidence of failing checks with what the first of them said: the beginning of a response, or the end of an output.
    pub(crate) fn with_said(&self, evidence: Evidence) -> Evidence {
        let Some(first) = evidence.failing_checks.first().filter(|_| evidence.tail.is_empty()) else {
            return evidence;
        };
        let said = self.said.borrow();
        let found = said.iter().find(|(name, _)| name.as_str() == first);
        let tail = found.map(|(_, said)| said.clone()).unwrap_or_default();
        Evidence { tail, ..evidence }
    }

    /// Asks every check at once, whenever its next turn is. Returns the number of the request.
    pub(crate) fn ask_again(&self) -> u64 {
        self.requests.send_modify(|request| *request += 1);
        *self.requests.borrow()
    }

    /// Whether every check passed since that request.
    pub(crate) fn have_passed_since(&self, request: u64) -> bool {
        self.answers.borrow().values().all(|answered| *answered >= request)
    }

    /// Waits until a verdict changes, or a check passes that was asked again. Cancel safe.
    pub(crate) async fn changed_or_answered(&mut self) {
        tokio::select! {
            () = changed_or_never(&mut self.folded) => {}
            () = changed_or_never(&mut self.answers) => {}
        }
    }

    /// The current verdicts.
    pub(crate) fn now(&self) -> BTreeMap<CheckName, Folded> {
        self.folded.borrow().clone()
    }

    /// What must be stored to continue these checks after a restart.
    pub(crate) fn stored(
        &self,
        checks: &BTreeMap<CheckName, CheckRecipe>,
    ) -> BTreeMap<CheckName, StoredCheck> {
        let folded = self.folded.borrow();
        let stored = folded.iter().filter_map(|(name, history)| {
            let probe = checks.get(name)?.probe.digest();
            Some((name.clone(), StoredCheck { probe, history: history.stored() }))
        });
        stored.collect()
    }

    /// Whether each check has a verdict or a result.
    pub(crate) fn have_results(&self) -> bool {
        self.folded.borrow().values().all(Folded::has_result)
    }

    /// Waits until a verdict changes, or a result speaks against one. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        // Without checks, or after they were stopped with the agent, no verdict will change.
        changed_or_never(&mut self.folded).await;
    }
}

struct CheckTask {
    name: CheckName,
    check: CheckRecipe,
    facts: CommandFacts,
    clock: Clock,
    folded: watch::Sender<BTreeMap<CheckName, Folded>>,
    requested: watch::Receiver<u64>,
    answered: watch::Sender<BTreeMap<CheckName, u64>>,
    heard: watch::Sender<BTreeMap<CheckName, String>>,
    seed: u64,
}

impl CheckTask {
    async fn run(mut self, level: Tasks) {
        let token = level.token();
        for round in 0_u32.. {
            let request = *self.requested.borrow_and_update();
            // Both arms may be dropped anywhere: a probe that is dropped ends what it started.
            let passed = tokio::select! {
                () = token.cancelled() => return,
                result = self.ask_observed() => {
                    let passed = result.is_ok();
                    self.fold(result);
                    passed
                }
            };
            if passed {
                self.answer(request);
            }
            // Spread a little, so that a thousand agents do not probe a shared dependency in step.
            let spread = delay::spread(self.check.interval, self.seed, round);
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(spread.to_duration()) => {}
                () = changed_or_never(&mut self.requested) => {}
            }
        }
    }

    /// Notes that the check passed after this request.
    fn answer(&self, request: u64) {
        self.answered.send_if_modified(|all| {
            all.get_mut(&self.name).is_some_and(|answered| core::mem::replace(answered, request) != request)
        });
    }

    /// Asks; a failure during a standstill says nothing, and it asks once more.
    async fn ask_observed(&self) -> Result<Option<String>, ProbeFailure> {
        let mut limit = TimeLimit::new(self.check.timeout.to_duration());
        let result = limit.count_during(self.ask()).await;
        if result.is_err() && limit.standstills() > 0 { self.ask().await } else { result }
    }

    async fn ask(&self) -> Result<Option<String>, ProbeFailure> {
        ask(&self.check.probe, &self.facts, self.check.timeout).await
    }

    fn fold(&self, result: Result<Option<String>, ProbeFailure>) {
        self.heard.send_modify(|said| match &result {
            Ok(_) => drop(said.remove(&self.name)),
            Err(failure) => drop(said.insert(self.name.clone(), failure.said.clone())),
        });
        let result = result.map(|warning| warning.map(|warning| one_line(&warning, MAX_MESSAGE_BYTES)));
        let result = result.map_err(|failure| one_line(&failure.message, MAX_MESSAGE_BYTES));
        let now = self.clock.now();
        self.folded.send_if_modified(|all| {
            let before = all.remove(&self.name).unwrap_or_default();
            let kind = turn(&before);
            let after = before.fold(result, self.check.hysteresis, now);
            // A result that only confirms the verdict wakes nobody: the message of a failing check may differ every time.
            let turned = kind != turn(&after);
            all.insert(self.name.clone(), after);
            turned
        });
    }
}

/// Asks once: what it warns of, if it passes.
///
/// # Errors
/// Why it does not pass.
pub(crate) async fn ask(
    probe: &Probe,
    facts: &CommandFacts,
    timeout: Span,
) -> Result<Option<String>, ProbeFailure> {
    let limit = timeout.to_duration();
    let asked = async {
        match probe {
            Probe::Exec { command, warning } => exec::ask(command, *warning, facts, limit).await,
            Probe::Http { authority, path, status } => http::ask((authority, path), *status, limit).await,
            Probe::Tcp { authority } => tcp::ask(authority).await.map_err(ProbeFailure::from),
        }
    };
    match probe {
        // The probe has its own deadline, and gives a better reason.
        Probe::Exec { .. } => asked.await,
        Probe::Http { .. } | Probe::Tcp { .. } => match observed::timeout(limit, asked).await {
            Ok(result) => result,
            Err(_) => Err(format!("no answer within {timeout}").into()),
        },
    }
}

/// What readers distinguish: the verdict, whether it warns, how many results speak against it, whether there is any.
fn turn(check: &Folded) -> (u8, u32, bool) {
    let verdict = match check.verdict() {
        CheckVerdict::Unknown => 0,
        CheckVerdict::Passing(_) => {
            if check.warning().is_some() {
                3
            } else {
                1
            }
        }
        CheckVerdict::Failing(_, _) => 2,
    };
    (verdict, check.stored().against, check.has_result())
}

#[cfg(test)]
mod tests;
