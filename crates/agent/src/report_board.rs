//! What this agent reports: one account per entity. The report and the local status are made from it.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::v1;
use bellwether_core::local::account::{self, AgentActivity, EntityAccount, StateReason};
use bellwether_core::local::health::CheckHistory;
use bellwether_core::local::health_tracker::vital;
use bellwether_core::local::report_numbers::OTHERS_REPORT;
use bellwether_core::local::statuses::{LocalStatuses, StatusUpdate};
use bellwether_core::records::job::{Job, NodeJobs};
use bellwether_core::records::order::Order;
use bellwether_core::records::report::TargetActivity;
use bellwether_core::records::status::{FILES, ORDERS, StatusState};
use bellwether_core::words::counter::Generation;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::{EntityName, LedgerId, NodeName};
use bellwether_core::words::time::{Span, Timestamp};

use crate::check_store::{CheckOwner, CheckStore, StoredCheck};
use crate::config::Config;
use crate::files::state::FileStates;
use crate::ledger::EntityEntry;

/// Status category of the static and dynamic parts.
pub(crate) const CONFIGURE: &str = "configure";

/// Status category of validation.
pub(crate) const VALIDATE: &str = "validate";

/// Status category of whether the machine is set up.
pub(crate) const PROVISION: &str = "provision";

/// About the size of a job in a report, without its outputs.
const JOB_BYTES: usize = 256;

/// About the most bytes of jobs in one report: a quarter of what a server takes.
const REPORTED_JOB_BYTES: usize = 256 << 10;

/// Most runs whose jobs are in one report: each is a record, and a transaction has at most 128.
const REPORTED_RUNS: usize = 64;

/// Jobs by run.
pub(crate) type ToldJobs = BTreeMap<EntityName, Vec<Job>>;

/// Everything the agent reports. Equal boards lead to equal reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ReportBoard {
    /// The ledger's id; `None` only in tests.
    pub(crate) ledger: Option<LedgerId>,
    /// Whether this node runs the tasks of workflows.
    pub(crate) allows_tasks: bool,
    /// Whether this node's agent offers to host logical nodes.
    pub(crate) hosts_logical: bool,
    /// Whether this node runs members of ensembles.
    pub(crate) runs_members: bool,
    /// Generation of the order in force.
    pub(crate) generation: Generation,
    /// Runs that failed here, and that are no state of the node any more.
    pub(crate) dismissed: BTreeSet<EntityName>,
    /// Why the last order was refused, if it was; that order may be newer than `generation`.
    pub(crate) refused_order: Option<String>,
    /// Whether another agent reports as this node.
    pub(crate) is_doubled: bool,
    /// Why entities cannot begin a step: their entries in the ledger cannot be written.
    pub(crate) unrecorded: BTreeMap<EntityName, String>,
    /// Whether this node is set up; `None` before the first check.
    pub(crate) provision: Option<StateReason>,
    /// One account per entity.
    pub(crate) entities: BTreeMap<EntityName, EntityAccount>,
    /// Entities of which the ledger has an entry and whose task has not reported since the agent started; their accounts
    /// are made from the ledger.
    pub(crate) awaited: BTreeSet<EntityName>,
    /// Statuses set by programs on this node, in their own categories.
    pub(crate) statuses: LocalStatuses,
    /// The files of the catalogue.
    pub(crate) files: FileStates,
}

impl ReportBoard {
    /// The board with an account of every entity whose task will run, as the agent before left it: until that task
    /// reports, this is its state.
    pub(crate) fn resumed(
        mut self,
        config: &Config,
        order: Option<&Order>,
        entries: &BTreeMap<EntityName, EntityEntry>,
        check_store: &CheckStore,
    ) -> Self {
        self.dismissed = order.map(|order| order.content.dismissed_runs()).unwrap_or_default();
        for (name, entry) in entries {
            let has_recipe = config.entities.contains_key(name);
            if has_recipe || order.is_some_and(|order| order.content.entities.contains_key(name)) {
                self.awaited.insert(name.clone());
            }
            if has_recipe {
                let stored = check_store.get(&CheckOwner::Entity(name.clone()));
                let restored =
                    |check: &StoredCheck| CheckHistory::restored(check.history.clone(), Timestamp::EPOCH);
                let checks = stored.checks.iter().map(|(name, check)| (name.clone(), restored(check)));
                let summary = vital(&checks.collect());
                let account =
                    EntityAccount::of(&entry.memory, &AgentActivity::Idle, &summary, stored.healthy_since);
                let found = account.answering;
                let failure = stored.soak_failure.as_ref().filter(|(number, _)| *number == found);
                let account = account.having_soaked(None, failure.map(|(_, reason)| reason.as_str()));
                self.entities.insert(name.clone(), account.with_restart_since(found));
            }
        }
        self
    }

    /// Takes up an order. A run that failed here, was dismissed, and that the order does not have any more, is dismissed until its task
    /// has forgotten it.
    pub(crate) fn follow(&mut self, order: &Order) {
        self.generation = order.generation;
        let is_leaving =
            |run: &EntityName| self.entities.contains_key(run) && !order.content.entities.contains_key(run);
        let leaving = self.dismissed.iter().filter(|run| is_leaving(run)).cloned();
        self.dismissed = order.content.dismissed_runs().into_iter().chain(leaving).collect();
    }

    /// The jobs of the runs that differ from what was told, as many as one report may have; at least one run, if any differs.
    pub(crate) fn untold(&self, told: &ToldJobs) -> ToldJobs {
        let (mut untold, mut bytes) = (ToldJobs::new(), 0_usize);
        for (name, account) in &self.entities {
            let Some(jobs) = account.jobs.as_ref().filter(|jobs| told.get(name) != Some(*jobs)) else {
                continue;
            };
            bytes += NodeJobs::output_bytes(jobs) + jobs.len() * JOB_BYTES;
            if !untold.is_empty() && (bytes > REPORTED_JOB_BYTES || untold.len() >= REPORTED_RUNS) {
                break;
            }
            untold.insert(name.clone(), jobs.clone());
        }
        untold
    }

    /// The report, with ages as of `now` by the agent's clock, and with these jobs.
    pub(crate) fn report(&self, node: &NodeName, now: Timestamp, untold: &ToldJobs) -> v1::report::Report {
        let entities = self.entities.iter().map(|(name, account)| {
            let shape = v1::report::EntityReport {
                answered_at_ms: 0,
                soaked_ms: account.soaked.map(Span::as_millis),
                soak_failure: account.soak_failure.clone(),
                agent_restarted: account.agent_restarted,
                running: account.running.as_ref().map(ToString::to_string),
                answering: account.answering.get(),
                activity: (&account.activity).into(),
                health: (&account.health).into(),
                healthy_for_ms: account.healthy_since.map(|since| now.since(since).as_millis()),
                healthy_since_ms: None,
                waits_for: account.waits_for.iter().map(ToString::to_string).collect(),
                step: account.step.as_ref().map(|step| v1::report::RunningStep {
                    part: step.part.clone(),
                    command: step.command.clone(),
                    for_ms: Some(now.since(step.since).as_millis()),
                    since_ms: None,
                    limit_ms: step.limit.as_millis(),
                }),
                jobs: untold.get(name).map(|jobs| shown(jobs)),
            };
            (name.to_string(), shape)
        });
        let is_offered = |feature: &&Feature| match feature {
            Feature::Workflows => self.allows_tasks,
            Feature::LogicalNodes => self.hosts_logical,
            Feature::Versions
            | Feature::Files
            | Feature::Actions
            | Feature::Facts
            | Feature::Soak
            | Feature::Jobs
            | Feature::JobLogs
            | Feature::TaskLists
            | Feature::Outputs
            | Feature::Conditions
            | Feature::Undo => true,
            Feature::Ensembles | Feature::IndependentMembers | Feature::Restores | Feature::Adoptions => {
                self.runs_members
            }
        };
        let features = Feature::ALL.iter().filter(is_offered);
        v1::report::Report {
            node: node.to_string(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            generation: self.generation.get(),
            ledger: self.ledger.as_ref().map(ToString::to_string),
            ledger_since: 0,
            sequence: 0,
            entities: entities.collect(),
            statuses: self.statuses(now),
            features: Some(features.map(ToString::to_string).collect()),
            deleted: BTreeMap::new(),
            received_at_ms: 0,
        }
    }

    /// The jobs of all runs that are known.
    pub(crate) fn jobs(&self) -> ToldJobs {
        let known = self.entities.iter();
        known.filter_map(|(name, account)| Some((name.clone(), account.jobs.clone()?))).collect()
    }

    /// Without what only the local status shows: boards that are equal then lead to the same report.
    pub(crate) fn reported(mut self) -> Self {
        self.awaited.clear();
        for account in self.entities.values_mut() {
            account.line.clear();
        }
        for file in self.files.values_mut() {
            file.changed_ms = None;
        }
        self
    }

    fn statuses(&self, now: Timestamp) -> BTreeMap<String, v1::status::Status> {
        type Pick = fn(&EntityAccount) -> Option<&StateReason>;
        let picks: [(&str, Pick); 2] = [
            (CONFIGURE, |account| account.configure.as_ref()),
            (VALIDATE, |account| account.validate.as_ref()),
        ];
        let mut all: BTreeMap<_, _> =
            self.statuses.iter().map(|(category, update)| (category.to_string(), own(update, now))).collect();
        for (category, pick) in picks {
            let counted = self.entities.iter().filter(|(name, _)| !self.dismissed.contains(*name));
            let each = counted.filter_map(|(name, account)| Some((name, pick(account)?)));
            if let Some((entity, standing)) = account::node(each) {
                all.insert(category.to_owned(), shape(&standing, Some(entity)));
            }
        }
        all.extend(self.provision.as_ref().map(|standing| (PROVISION.to_owned(), shape(standing, None))));
        all.extend(self.file().map(|status| (FILES.to_owned(), status)));
        all.extend(self.orders().map(|status| (ORDERS.to_owned(), status)));
        all
    }

    /// That orders are not accepted, or not followed, because of this machine; `None` if they are.
    fn orders(&self) -> Option<v1::status::Status> {
        let unrecorded = || {
            let (entity, reason) = self.unrecorded.first_key_value()?;
            Some(format!("{reason}; no step of {entity} begins"))
        };
        let doubled = || self.is_doubled.then(|| OTHERS_REPORT.to_owned());
        let reason = self.refused_order.clone().or_else(unrecorded).or_else(doubled)?;
        let failed = v1::status::StatusState::from(StatusState::Failed).into();
        Some(v1::status::Status { reason: cut(&reason), ..failed })
    }

    /// One status for all files of the catalogue: that of the worst file, which the reason names.
    fn file(&self) -> Option<v1::status::Status> {
        let rank = |state: StatusState| match state {
            StatusState::Failed => 3,
            StatusState::Running => 2,
            StatusState::Pending => 1,
            StatusState::Success => 0,
        };
        let (path, worst) = self.files.iter().rev().max_by_key(|(_, file)| rank(file.state))?;
        let reason = match worst.state {
            StatusState::Success => String::new(),
            StatusState::Failed | StatusState::Running | StatusState::Pending => {
                format!("{}: {}", path.display(), worst.reason)
            }
        };
        Some(v1::status::Status {
            reason: cut(&reason),
            attempt: worst.failed.into(),
            ..v1::status::StatusState::from(worst.state).into()
        })
    }

    /// Notes the first complaint of a check about an entity that is being applied; later ones lead to no report. Returns whether
    /// that changed.
    pub(crate) fn waits_for_check(&mut self, entity: &EntityName, complaint: Option<String>) -> bool {
        let activity = self.entities.get_mut(entity).map(|account| &mut account.activity);
        match (activity, complaint) {
            (Some(TargetActivity::Applying { waiting_for: waiting_for @ None, .. }), Some(complaint)) => {
                *waiting_for = Some(complaint.into());
                true
            }
            (Some(_) | None, _) => false,
        }
    }

    /// The unwritten file for which an entity's dynamic part waits, with its reason.
    pub(crate) fn waits_for(&self, entity: &EntityName) -> Option<String> {
        let mut unwritten = self.files.iter().filter(|(_, file)| file.state != StatusState::Success);
        let (path, file) = unwritten.find(|(_, file)| file.before.contains(entity))?;
        Some(format!("file {}: {}", path.display(), file.reason))
    }
}

fn shown(jobs: &[Job]) -> Vec<v1::job::ReportedJob> {
    jobs.iter().map(Into::into).collect()
}

/// A state in its wire form, with a reference to the log of the entity's failed run.
fn shape(standing: &StateReason, entity: Option<&EntityName>) -> v1::status::Status {
    let log = entity.zip(standing.run.clone());
    v1::status::Status {
        reason: cut(&standing.reason),
        attempt: standing.attempt.into(),
        log: log.map(|(entity, run)| v1::status::LogRef { entity: entity.to_string(), run }),
        ..v1::status::StatusState::from(standing.state).into()
    }
}

/// A status set by a program, with its age.
fn own(update: &StatusUpdate, now: Timestamp) -> v1::status::Status {
    v1::status::Status {
        reason: update.reason.clone(),
        lifetime_ms: update.lifetime.map(Span::as_millis),
        age_ms: Some(now.since(update.at).as_millis()),
        update: update.update,
        ..v1::status::StatusState::from(update.state).into()
    }
}

/// A reason cut to the length that the API allows.
fn cut(reason: &str) -> String {
    let most = bellwether_core::records::status::MAX_REASON_BYTES.min(reason.len());
    let end = (0..=most).rev().find(|index| reason.is_char_boundary(*index)).unwrap_or_default();
    reason.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use bellwether_core::local::health_tracker::CheckSummary;
    use bellwether_core::local::memory::EntityMemory;
    use bellwether_core::records::order::OrderContent;
    use bellwether_core::words::counter::{Epoch, Term};

    use super::*;

    #[test]
    fn the_jobs_of_many_runs_are_told_in_several_reports() {
        let outputs = format!("{{\"text\":\"{}\"}}", "x".repeat(16_000));
        let jobs: Vec<Job> = (0..4)
            .map(|index| Job {
                outputs: Some(outputs.as_str().into()),
                ..Job::created(index, "probe".parse().unwrap())
            })
            .collect();
        let mut board = ReportBoard::default();
        for run in 0..40 {
            let memory = EntityMemory::default();
            let account = EntityAccount::of(&memory, &AgentActivity::Idle, &CheckSummary::NoChecks, None);
            let account = account.with_jobs(Some(jobs.clone()));
            board.entities.insert(format!("work-{run}").parse().unwrap(), account);
        }
        let (mut told, mut reports) = (ToldJobs::new(), 0);
        while told != board.jobs() {
            let untold = board.untold(&told);
            let report = board.report(&"web-1".parse().unwrap(), Timestamp::EPOCH, &untold);
            assert!(serde_json::to_string(&report).unwrap().len() < 512 << 10, "within what a server takes");
            told.extend(untold);
            reports += 1;
        }
        assert_eq!(reports, 10, "four runs in each");
        assert!(board.untold(&told).is_empty());
    }

    #[test]
    fn a_run_that_was_dismissed_is_no_failure_also_while_it_is_forgotten() {
        let run: EntityName = "greet-1".parse().unwrap();
        let mut board = ReportBoard::default();
        let mut account =
            EntityAccount::of(&EntityMemory::default(), &AgentActivity::Idle, &CheckSummary::NoChecks, None);
        let reason = "exit code 2".to_owned();
        account.configure = Some(StateReason { state: StatusState::Failed, reason, attempt: 1, run: None });
        board.entities.insert(run.clone(), account);
        let is_failed = |board: &ReportBoard| board.statuses(Timestamp::EPOCH).contains_key(CONFIGURE);
        let order = |failed_runs: &[&EntityName]| Order {
            generation: Generation::ZERO,
            term: Term::ZERO,
            epoch: Epoch::default(),
            content: OrderContent {
                failed_runs: failed_runs.iter().copied().cloned().collect(),
                ..OrderContent::default()
            },
        };
        board.follow(&order(&[]));
        assert!(is_failed(&board));
        board.follow(&order(&[&run]));
        assert!(!is_failed(&board));
        // It was deleted: no order has it any more.
        board.follow(&order(&[]));
        assert!(!is_failed(&board));
        board.entities.clear();
        board.follow(&order(&[]));
        assert!(board.dismissed.is_empty());
    }

    #[test]
    fn a_reason_is_cut_at_a_character() {
        assert_eq!(cut(&"é".repeat(300)).len(), 512);
        assert_eq!(cut(&format!("a{}", "é".repeat(300))).len(), 511);
    }
}
