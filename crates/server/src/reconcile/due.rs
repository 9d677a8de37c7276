//! Runs the deciders that decide on one thing at a time, on what is due.

use bellwether_core::decide::agenda::Agenda;
use bellwether_core::decide::table::{Decider, DeciderContext};
use bellwether_core::records::key::Key;
use bellwether_core::verdict::Verdict;
use bellwether_core::words::name::{ClusterName, EnsembleName};

use super::{PassResult, Pending, Reconciler, as_decider, count};
use crate::records::commit::CommitError;
use crate::transactor::CommitContext;

impl Reconciler {
    /// Decides on the data stores of the clusters that are due.
    pub(super) async fn decide_views(
        &self,
        decider: &Decider,
        decision: &Pending<'_>,
        decide: fn(DeciderContext<'_>, &ClusterName) -> Verdict,
        agenda: &mut Agenda,
    ) -> Result<PassResult, CommitError> {
        let Some(fleet) = decision.world.fleets.get(decision.namespace) else {
            return Ok(PassResult::default());
        };
        let due = agenda.due_views(&decision.context(fleet));
        if due.is_empty() {
            return Ok(PassResult::default());
        }
        let members = due.iter().map(|cluster| count(fleet.membership.size(cluster))).sum();
        let each = move |context: DeciderContext<'_>| {
            due.iter().map(|cluster| (decide(context, cluster), cluster.clone())).collect::<Vec<_>>()
        };
        let (mut pass, mut result) = (PassResult::default(), Ok(()));
        for (verdict, cluster) in decision.compute(members, each).await? {
            // A cluster that is deleted or disabled meanwhile is decided on anew.
            let seen = vec![Key::Cluster(cluster).into()];
            let by = CommitContext { seen, ..as_decider(decision.inputs.term) };
            match self.commit_between(decider, decision, by, verdict).await {
                Ok(done) => pass.wrote |= done.wrote,
                Err(error) if error.is_its_own() => result = result.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        if result.is_ok() {
            agenda.viewed(fleet.loaded, decision.world.revision);
        }
        result.map(|()| pass)
    }

    /// Decides on the ensembles that are due.
    pub(super) async fn decide_ensembles(
        &self,
        decider: &Decider,
        decision: &Pending<'_>,
        decide: fn(DeciderContext<'_>, &EnsembleName) -> Verdict,
        agenda: &mut Agenda,
    ) -> Result<PassResult, CommitError> {
        let Some(fleet) = decision.world.fleets.get(decision.namespace) else {
            return Ok(PassResult::default());
        };
        let context = decision.context(fleet);
        let due = agenda.ensembles.due(&context);
        let (mut pass, mut result) = (PassResult::default(), Ok(()));
        // Each reads all nodes.
        let reads = count(fleet.nodes.size()).saturating_mul(count(due.len()));
        let each = move |context: DeciderContext<'_>| {
            due.into_iter().map(|name| (decide(context, &name), name)).collect::<Vec<_>>()
        };
        for (verdict, name) in decision.compute(reads, each).await? {
            let wake = if verdict.changesets.is_empty() { verdict.wake } else { Some(decision.inputs.now) };
            // One that a person changes or deletes meanwhile is decided on anew.
            let seen = vec![Key::Ensemble(name.clone()).into(), Key::EnsembleMembers(name.clone()).into()];
            let by = CommitContext { seen, ..as_decider(decision.inputs.term) };
            match self.commit_between(decider, decision, by, verdict).await {
                Ok(done) => pass.wrote |= done.wrote,
                Err(error) if error.is_its_own() => result = result.and(Err(error)),
                Err(error) => return Err(error),
            }
            agenda.ensembles.decided(&context, &name, wake);
        }
        result.map(|()| PassResult { wake: agenda.ensembles.wake(&context), ..pass })
    }
}
