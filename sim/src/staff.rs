//! Those who run workflows, look after what failed, and upset data stores: which of them a history has.

use std::sync::{Arc, Mutex};

use bellwether_rt::tasks::Tasks;

use crate::caller::Caller;
use crate::cast::Stage;
use crate::chaos::FaultMix;
use crate::law::LawSummary;
use crate::rules::DisabledRule;
use crate::stores::StorePeople;
use crate::works::WorkPeople;

/// Starts them until peace; who looks after what failed does so to the end.
pub(crate) fn start(
    (seed, mix, without): (u64, FaultMix, Option<DisabledRule>),
    stage: &Stage,
    seen: &Arc<Mutex<LawSummary>>,
    (tasks, until_peace): (&Tasks, &Tasks),
) {
    let caller = Caller::new(&stage.network, stage.machines.len());
    let trace = &stage.trace;
    if let Some(stores) = stage.stores.clone() {
        let people = StorePeople { caller: caller.clone(), trace: trace.clone(), stores, seed };
        until_peace.spawn("stores", people.upset());
    }
    if matches!(
        mix,
        FaultMix::Everything | FaultMix::Honest | FaultMix::Work | FaultMix::Hosts | FaultMix::Stores
    ) {
        let forgets = without == Some(DisabledRule::KeptFences);
        let forgetful = forgets.then(|| stage.store.clone());
        let work = WorkPeople { caller, trace: trace.clone(), seed, forgetful };
        until_peace.spawn("works", work.clone().work());
        tasks.spawn("tends", work.tend(seen.clone()));
    }
}
