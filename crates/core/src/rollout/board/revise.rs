//! Bulk changes of the board. Owns the faster way only; the result is the same as that of folding one change
//! after the other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Board, BoardTarget};
use crate::records::target::TargetState;
use crate::rollout::board::rank::OwnedOrderKey;
use crate::rollout::observation::Observation;
use crate::words::name::TargetName;

/// A change of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetUpdate {
    /// A new observation.
    Observation(Observation),
    /// A changed assignment.
    State(TargetState),
}

impl Board {
    /// Applies changes of many targets, which must come in name order and change no labels. Names that are
    /// not on the board are ignored.
    pub(crate) fn revise<T>(
        &mut self,
        changes: impl Iterator<Item = (TargetName, T)>,
        mut revision: impl FnMut(T, BoardTarget<'_>) -> Option<TargetUpdate>,
    ) {
        let ranks = &self.ranks;
        let mut placed = changes.map(|(name, with)| ((ranks.get(&name).cloned(), name), with));
        let in_line: Box<dyn Iterator<Item = (OwnedOrderKey, T)> + '_> = if ranks.is_empty() {
            Box::new(placed.by_ref())
        } else {
            let mut placed: Vec<(OwnedOrderKey, T)> = placed.collect();
            placed.sort_by(|(a, _), (b, _)| a.cmp(b));
            Box::new(placed.into_iter())
        };
        let frame = &self.frame;
        self.tree.change_some(in_line, |member, with| {
            match revision(with, BoardTarget::from(&*member)) {
                Some(TargetUpdate::Observation(observation)) => member.observation = Some(observation),
                Some(TargetUpdate::State(state)) => member.state = Some(state),
                None => return,
            }
            member.replace(frame);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::node::PresenceState;
    use crate::records::policy::Policy;
    use crate::trial::simulation::fleet::SimulatedFleet;
    use crate::words::label::Labels;
    use crate::words::random::RandomStream;
    use crate::words::time::Timestamp;

    fn board(targets: u32) -> Board {
        let (entity, by) = ("web".parse().unwrap(), "test".parse().unwrap());
        let (good, wanted) = ("v1".parse().unwrap(), "v2".parse().unwrap());
        let fleet = SimulatedFleet { entity, by, good, wanted, at: Timestamp::EPOCH };
        let name = |n| (alloc::format!("node-{n:06}").parse().unwrap(), PresenceState::Up, Labels::default());
        fleet.board(&Policy::default(), (0..targets).map(name))
    }

    #[test]
    fn many_at_once_bring_what_one_after_the_other_would() {
        for seed in 0..60 {
            let mut chance = RandomStream::of(seed);
            let (targets, every) = (1 + chance.below(3_000), 1 + chance.below(40));
            let whole = board(u32::try_from(targets).unwrap());
            let mut changes: Vec<(TargetName, bool)> = Vec::new();
            for target in whole.targets() {
                let (chosen, lost) = (chance.below(every) == 0, chance.below(2) == 0);
                changes.extend(chosen.then(|| (target.name.clone(), lost)));
            }
            // Names that are not there, before, between and after the others.
            changes.extend(["a", "node-000001x", "z"].map(|name| (name.parse().unwrap(), true)));
            changes.sort();
            let change = |lost: bool, target: BoardTarget<'_>| {
                let state = TargetState { assigned_at: Timestamp::from_millis(7), ..target.state?.clone() };
                let observation =
                    Observation { contact: PresenceState::Unreachable, ..target.observation?.clone() };
                Some(if lost { TargetUpdate::Observation(observation) } else { TargetUpdate::State(state) })
            };
            let (mut one, mut many) = (whole.clone(), whole.clone());
            many.revise(changes.clone().into_iter(), change);
            for (name, lost) in &changes {
                match one.target(name).and_then(|target| change(*lost, target)) {
                    Some(TargetUpdate::Observation(observation)) => {
                        one.fold_observation(name, Some(observation))
                    }
                    Some(TargetUpdate::State(state)) => one.fold_state(name, Some(state)),
                    None => {}
                }
            }
            assert!(one.targets().eq(many.targets()), "seed {seed}");
            assert_eq!(one.tree().tally(), many.tree().tally(), "seed {seed}");
        }
    }
}
