//! Metrics of ensembles, as far as their records have them. What takes a look at every node, such as the size of an ensemble that follows its
//! filter, is not among them.

use std::collections::BTreeMap;

use bellwether_core::decide::ensembles::failing::{EnsembleCounts, counts};
use bellwether_core::records::ensemble::{Ensemble, EnsembleSize};
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::impaired_ensembles::{is_impaired, wanted};

/// Names of the phases of a member.
const PHASES: [&str; 8] =
    ["preparing", "bootstrapping", "adding", "joining", "voting", "serving", "leaving", "removed"];

/// Labels of what is known of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EnsembleLabels {
    namespace: String,
    ensemble: String,
}

/// Labels of the gauge of members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MembersIn {
    namespace: String,
    ensemble: String,
    state: &'static str,
}

type OfEnsemble = Family<EnsembleLabels, Gauge>;

#[derive(Debug, Default)]
struct EnsembleGauges {
    wanted: OfEnsemble,
    members: Family<MembersIn, Gauge>,
    serving: OfEnsemble,
    working: OfEnsemble,
    osds: OfEnsemble,
    working_osds: OfEnsemble,
    impaired: OfEnsemble,
}

/// Registers what the world shows of ensembles.
pub(super) fn show(registry: &mut Registry, world: &World) {
    let gauges = EnsembleGauges::default();
    for (namespace, fleet) in world.fleets.iter() {
        for kept in fleet.ensembles.values() {
            gauges.set(namespace.as_str(), fleet, &kept.value);
        }
    }
    gauges.register(registry);
}

impl EnsembleGauges {
    fn set(&self, namespace: &str, fleet: &Fleet, ensemble: &Ensemble) {
        let (namespace, name) = (namespace.to_owned(), ensemble.name.to_string());
        let labels = EnsembleLabels { namespace: namespace.clone(), ensemble: name.clone() };
        let set = |gauge: &OfEnsemble, value: usize| {
            gauge.get_or_create(&labels).set(number(value));
        };
        match ensemble.size {
            EnsembleSize::Number(wanted) => {
                self.wanted.get_or_create(&labels).set(i64::from(wanted));
            }
            EnsembleSize::Quorum => {}
        }
        let members = fleet.ensemble_members.get(&ensemble.name).map(|kept| &*kept.value);
        for (state, count) in by_phase(members) {
            let labels = MembersIn { namespace: namespace.clone(), ensemble: name.clone(), state };
            self.members.get_or_create(&labels).set(number(count));
        }
        let counts = members.map(|members| counts(fleet, members)).unwrap_or_default();
        let EnsembleCounts { members, working, warning: _, osds, working_osds } = counts;
        set(&self.serving, members);
        set(&self.working, working);
        set(&self.osds, osds);
        set(&self.working_osds, working_osds);
        set(&self.impaired, usize::from(is_impaired(wanted(ensemble.size, &counts), &counts)));
    }

    fn register(self, registry: &mut Registry) {
        let help = "Members that an ensemble is to have; only of ensembles whose size is a number";
        registry.register("ensemble_wanted_members", help, self.wanted);
        registry.register("ensemble_members", "Members of an ensemble, by state", self.members);
        let help = "Members of an ensemble that vote, or that are the primary or a replica";
        registry.register("ensemble_serving_members", help, self.serving);
        let help = "Serving members of an ensemble that work, as far as is known; none without a primary";
        registry.register("ensemble_working_members", help, self.working);
        registry.register("ensemble_osds", "OSDs of an ensemble that have data, or may have", self.osds);
        registry.register("ensemble_working_osds", "Those of them that work", self.working_osds);
        let help = "1 while members of an ensemble are missing, or a serving member or an OSD does not work, or is not known to";
        registry.register("ensemble_impaired", help, self.impaired);
    }
}

/// Every state has a value, so that an alert tells none from unknown.
fn by_phase(members: Option<&EnsembleMembers>) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = PHASES.into_iter().map(|phase| (phase, 0)).collect();
    let phases = members.into_iter().flat_map(|members| members.members.values());
    for phase in phases.map(|member| member.phase.as_str()) {
        *counts.entry(phase).or_default() += 1;
    }
    counts
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
