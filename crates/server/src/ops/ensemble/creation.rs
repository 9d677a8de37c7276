//! What keeps an ensemble from being created.

use bellwether_core::records::ensemble::{Ensemble, MAX_ENSEMBLES};
use bellwether_core::words::name::EnsembleName;
use bellwether_core::world::fleet::Fleet;

use super::describe::on_nodes;
use crate::ops::OpError;

/// Refuses a new ensemble while members of a former one of its name are left: they have their ports and directories.
pub(super) fn is_possible(fleet: &Fleet, ensemble: &Ensemble) -> Result<(), OpError> {
    let name = &ensemble.name;
    if fleet.ensembles.size() >= MAX_ENSEMBLES {
        let reason = format!("create ensemble {name}: the namespace has {MAX_ENSEMBLES}, which is the most");
        let hint = Some("delete those that nobody needs: bellwether ensemble list".to_owned());
        return Err(OpError::Refused { reason, hint });
    }
    let former = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
    match former.filter(|former| !former.is_empty()) {
        None if ensemble.adopt.is_some() => Ok(()),
        None => is_unknown(fleet, name),
        Some(former) => Err(OpError::Refused {
            reason: format!(
                "create ensemble {name}: its former members are still leaving: {}",
                on_nodes(former)
            ),
            hint: Some(format!(
                "wait until they have left: bellwether why ensemble/{name}; of a node that is gone for good, they have once it is \
                 decommissioned: bellwether node decommission NODE; or choose another name"
            )),
        }),
    }
}

/// Refuses a new ensemble where nodes have members of one of its name that is not recorded: clients would find the new, empty ones in their place.
fn is_unknown(fleet: &Fleet, name: &EnsembleName) -> Result<(), OpError> {
    let nodes: Vec<&str> = fleet.unrecorded_of(name).map(|(node, _)| node.as_str()).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let (noun, have) = if nodes.len() == 1 { ("node", "has a member") } else { ("nodes", "have members") };
    Err(OpError::Refused {
        reason: format!("create ensemble {name}: {noun} {} {have} of an ensemble {name} that is not recorded", nodes.join(", ")),
        hint: Some(
            "choose another name, restore a newer backup, or move their directories away: see the guide on ensembles, \"Members that are not \
             recorded\""
                .to_owned(),
        ),
    })
}
