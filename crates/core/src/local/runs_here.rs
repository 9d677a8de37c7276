//! The runs of workflows on one node, as far as one keeps another from beginning there: a node carries out one run at a time, and none
//! begins beside one that failed. Decides; never acts.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use crate::records::order::{ApplyMethod, OrderContent};
use crate::words::name::EntityName;

/// The runs of a node that keep others from beginning. What is no longer assigned keeps nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunsHere {
    /// Failed here.
    failed: BTreeSet<EntityName>,
    /// Have begun, and neither ended nor failed.
    in_progress: BTreeSet<EntityName>,
    /// Wait to begin.
    waiting: BTreeSet<EntityName>,
    /// Were looked at: those that are assigned and not among these may have begun, or wait.
    known: BTreeSet<EntityName>,
}

impl RunsHere {
    /// A run begins, or begins again. Returns whether that changes anything; so do the others.
    pub fn begins(&mut self, run: &EntityName) -> bool {
        let was_waiting = self.leaves(run);
        self.is_known(run) | self.in_progress.insert(run.clone()) | was_waiting
    }

    /// A run waits to begin, behind those that were started before it; one that has begun does not.
    pub fn waits(&mut self, run: &EntityName) -> bool {
        if self.in_progress.contains(run) {
            return false;
        }
        self.is_known(run) | self.waiting.insert(run.clone())
    }

    /// A run failed here.
    pub fn fails(&mut self, run: &EntityName) -> bool {
        let was_before = self.in_progress.remove(run) | self.waiting.remove(run);
        self.is_known(run) | self.failed.insert(run.clone()) | was_before
    }

    /// A run ended here, or is of no meaning for others.
    pub fn ends(&mut self, run: &EntityName) -> bool {
        let was_waiting = self.leaves(run);
        self.is_known(run) | self.in_progress.remove(run) | was_waiting
    }

    /// A run is forgotten here.
    pub fn forgets(&mut self, run: &EntityName) -> bool {
        let was_waiting = self.leaves(run);
        self.known.remove(run) | self.in_progress.remove(run) | was_waiting
    }

    fn is_known(&mut self, run: &EntityName) -> bool {
        self.known.insert(run.clone())
    }

    fn leaves(&mut self, run: &EntityName) -> bool {
        self.waiting.remove(run) | self.failed.remove(run)
    }

    /// Why this run does not begin, or begin again, on a node with this order; `None` if it may, or is in progress.
    #[must_use]
    pub fn hold(&self, run: &EntityName, order: &OrderContent, has_begun: bool) -> Option<String> {
        let is_assigned = |other: &&EntityName| *other != run && order.entities.contains_key(*other);
        if self.in_progress.contains(run) {
            return None;
        }
        if let Some(other) = self.in_progress.iter().find(is_assigned) {
            return Some(format!("run {other} is in progress on this node, which carries out one at a time"));
        }
        // One that failed, and is retried, goes before what waits for it.
        if has_begun {
            return None;
        }
        if let Some(reason) = &order.not_runnable {
            return (order.undo.as_ref() != Some(run)).then(|| reason.clone());
        }
        if let Some(other) =
            self.failed.iter().filter(is_assigned).find(|run| !order.failed_runs.contains(*run))
        {
            return Some(format!(
                "run {other} failed on this node, and the control plane has not taken that up yet"
            ));
        }
        let is_before = |other: &EntityName| started(other, order) < started(run, order);
        let runs = order.entities.iter().filter(|(_, assigned)| assigned.method == ApplyMethod::Workflow);
        if let Some((other, _)) =
            runs.into_iter().find(|(other, _)| !self.known.contains(*other) && is_before(other))
        {
            return Some(format!("run {other} was started before it, and is looked at first"));
        }
        let waiting = self.waiting.iter().filter(|waits| order.entities.contains_key(*waits));
        let first = waiting.chain([run]).min_by_key(|waits| started(waits, order))?;
        (first != run).then(|| format!("run {first} begins on this node before it"))
    }
}

/// Where a run stands among those that were started: the number of its version only grows.
fn started(run: &EntityName, order: &OrderContent) -> Option<u64> {
    let (_, number) = order.entities.get(run)?.version.as_numbered()?;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::order::Assignment;
    use crate::words::counter::AssignmentNumber;
    use crate::words::version::Version;

    fn run(name: &str) -> EntityName {
        EntityName::parse(name).unwrap()
    }

    fn order(runs: &[&str]) -> OrderContent {
        let mut order = OrderContent::default();
        for name in runs {
            let assignment = Assignment {
                store: None,
                version: Version::parse(&name.replace('-', "@")).unwrap(),
                number: AssignmentNumber::new(1),
                method: ApplyMethod::Workflow,
                soak: None,
                binding: Default::default(),
                retry: None,
            };
            order.entities.insert(run(name), assignment);
        }
        order
    }

    #[test]
    fn a_failure_that_the_control_plane_does_not_know_holds_every_run_that_has_not_begun() {
        let mut here = RunsHere::default();
        let mut order = order(&["work-8"]);
        assert_eq!(here.hold(&run("work-8"), &order, false), None);
        assert!(here.fails(&run("work-7")) && !here.fails(&run("work-7")));
        assert_eq!(here.hold(&run("work-8"), &order, false), None, "it is not assigned any more");
        order.entities.extend(self::order(&["work-7"]).entities);
        let reason = here.hold(&run("work-8"), &order, false).unwrap();
        assert!(reason.contains("run work-7 failed"), "{reason}");
        assert_eq!(here.hold(&run("work-7"), &order, true), None, "it is retried");
        assert_eq!(here.hold(&run("work-8"), &order, true), None, "it is retried too");
        order.failed_runs = [run("work-7")].into();
        order.not_runnable = Some("not runnable by kim".into());
        assert_eq!(here.hold(&run("work-8"), &order, false).as_deref(), Some("not runnable by kim"));
        order.not_runnable = None;
        assert_eq!(here.hold(&run("work-8"), &order, false), None, "a person let it go on");
    }

    #[test]
    fn a_node_carries_out_one_run_at_a_time_in_the_order_in_which_they_were_started() {
        let mut here = RunsHere::default();
        let order = order(&["a-1", "c-2", "b-3"]);
        let held = |here: &RunsHere, name: &str| here.hold(&run(name), &order, false).unwrap_or_default();
        assert!(here.begins(&run("a-1")) && !here.begins(&run("a-1")));
        assert!(here.waits(&run("c-2")) && here.waits(&run("b-3")) && !here.waits(&run("c-2")));
        assert_eq!(held(&here, "a-1"), "", "it has begun");
        assert!(held(&here, "c-2").contains("run a-1 is in progress"));
        assert!(here.hold(&run("c-2"), &order, true).is_some(), "one that is retried waits too");
        assert!(here.ends(&run("a-1")) && !here.ends(&run("a-1")));
        assert_eq!(held(&here, "c-2"), "");
        assert!(held(&here, "b-3").contains("run c-2 begins on this node before"));
        assert!(here.ends(&run("c-2")) && here.waits(&run("c-2")), "it comes after the other");
        assert_eq!(held(&here, "c-2"), "");
        assert!(held(&here, "b-3").contains("run c-2 begins on this node before"));
        assert!(here.begins(&run("c-2")));
        assert!(held(&here, "b-3").contains("run c-2 is in progress"));
        assert!(here.fails(&run("c-2")));
        assert!(held(&here, "b-3").contains("run c-2 failed"));
        assert!(here.ends(&run("c-2")));
        assert_eq!(held(&here, "b-3"), "");
    }

    #[test]
    fn a_run_waits_until_those_that_were_started_before_it_were_looked_at() {
        let mut here = RunsHere::default();
        let order = order(&["a-1", "b-2"]);
        assert_eq!(here.hold(&run("a-1"), &order, false), None);
        let reason = here.hold(&run("b-2"), &order, false).unwrap();
        assert!(reason.contains("run a-1 was started before it"), "{reason}");
        assert!(here.waits(&run("a-1")));
        let reason = here.hold(&run("b-2"), &order, false).unwrap();
        assert!(reason.contains("run a-1 begins on this node before it"), "{reason}");
        assert!(here.ends(&run("a-1")));
        assert_eq!(here.hold(&run("b-2"), &order, false), None);
        assert!(here.forgets(&run("a-1")) && !here.forgets(&run("a-1")));
        assert!(here.hold(&run("b-2"), &order, false).is_some(), "it is assigned again");
        assert!(here.begins(&run("a-1")) && !here.waits(&run("a-1")) && here.ends(&run("a-1")));
        assert_eq!(here.hold(&run("b-2"), &order, false), None);
    }

    #[test]
    fn what_undoes_the_run_that_failed_begins_before_all_others() {
        let mut here = RunsHere::default();
        let mut order = order(&["a-1", "b-2", "undo-3"]);
        assert!(here.fails(&run("a-1")) && here.waits(&run("b-2")) && here.waits(&run("undo-3")));
        order.failed_runs = [run("a-1")].into();
        order.not_runnable = Some("not runnable".into());
        assert!(here.hold(&run("undo-3"), &order, false).is_some());
        order.undo = Some(run("undo-3"));
        assert_eq!(here.hold(&run("undo-3"), &order, false), None);
        assert!(here.hold(&run("b-2"), &order, false).is_some());
        assert!(here.begins(&run("undo-3")));
        assert!(here.hold(&run("b-2"), &order, false).is_some());
    }

    #[test]
    fn a_run_that_is_not_assigned_any_more_keeps_nothing() {
        let mut here = RunsHere::default();
        assert!(here.begins(&run("a-1")) && here.waits(&run("b-2")));
        assert_eq!(here.hold(&run("c-3"), &order(&["c-3"]), false), None);
        assert!(here.hold(&run("c-3"), &order(&["b-2", "c-3"]), false).is_some());
    }
}
