//! What keeps a requested drain waiting: a service, or an entity, that would have too few left.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::fleet::Fleet;
use crate::records::node::{Cordon, DrainBudget};
use crate::words::name::{EntityName, NodeName, ServiceName, TargetName};

/// Instances and targets that drains of the same decision take away; the world does not show them yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Withdrawn {
    services: BTreeMap<ServiceName, u64>,
    entities: BTreeMap<EntityName, u64>,
}

/// What keeps a drain waiting. It is stated with the counts that it was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainObstacle {
    /// Too many instances of a service would be unavailable.
    Service {
        /// The service.
        name: ServiceName,
        /// Number of its functional instances on the node.
        here: u64,
        /// Number of its instances that are unavailable already.
        unavailable: u64,
        /// Number of its instances.
        total: u64,
        /// The most that may be unavailable.
        most: u64,
    },
    /// The entity's own limit would be exceeded.
    Entity {
        /// The entity.
        name: EntityName,
        /// Number of its targets that are unavailable already.
        unavailable: u64,
        /// The most that may be unavailable, by its policy.
        most: u64,
    },
}

impl DrainObstacle {
    /// The obstacle in one line, for people.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Service { name, here, unavailable: 0, most, .. } => {
                format!(
                    "{here} instances of service {name} are on this node, and at most {most} may be unavailable"
                )
            }
            Self::Service { name, unavailable, total, most, .. } => {
                format!(
                    "{unavailable} of {total} instances of service {name} {} unavailable, at most {most} may be",
                    if *unavailable == 1 { "is" } else { "are" }
                )
            }
            Self::Entity { name, unavailable, most } => format!(
                "{unavailable} target{} of entity {name} {} unavailable, and its policy allows {most}",
                if *unavailable == 1 { "" } else { "s" },
                if *unavailable == 1 { "is" } else { "are" }
            ),
        }
    }
}

impl Fleet {
    /// Why the requested drain of a node waits; `None` if none is requested, or the budget allows it.
    #[must_use]
    pub fn why_drain_waits(&self, node: &NodeName) -> Option<String> {
        let cordon = self.active_node(node)?.value.cordon.clone()?;
        let budget = cordon.waiting_drain()?;
        Some(self.drain_obstacle(node, budget, &Withdrawn::default())?.line())
    }

    /// The budget of a node's requested drain.
    #[must_use]
    pub fn drain_budget(&self, node: &NodeName) -> Option<DrainBudget> {
        self.active_node(node)?.value.cordon.as_ref().and_then(Cordon::waiting_drain)
    }

    /// The first obstacle to the drain of a node, services before entities, each by name.
    #[must_use]
    pub fn drain_obstacle(
        &self,
        node: &NodeName,
        budget: DrainBudget,
        withdrawn: &Withdrawn,
    ) -> Option<DrainObstacle> {
        let service = self.served_by(node).into_iter().find_map(|(name, here)| {
            let service = self.catalogue.service(name)?;
            let total = count(service.addressable());
            let unavailable = total - count(service.functional());
            let unavailable = unavailable + withdrawn.services.get(name).copied().unwrap_or_default();
            let most = budget.max_unavailable.of_at_least_one(total);
            let name = name.clone();
            (unavailable + here > most).then_some(DrainObstacle::Service {
                name,
                here,
                unavailable,
                total,
                most,
            })
        });
        service.or_else(|| {
            self.available_targets(node).find_map(|name| {
                let board = self.boards.get(name)?;
                let most = board.thresholds().max_unavailable?;
                let unavailable =
                    board.unavailable() + withdrawn.entities.get(name).copied().unwrap_or_default();
                (unavailable >= most).then(|| DrainObstacle::Entity { name: name.clone(), unavailable, most })
            })
        })
    }

    /// Adds what the drain of a node takes away.
    pub fn withdraw(&self, node: &NodeName, withdrawn: &mut Withdrawn) {
        for (name, here) in self.served_by(node) {
            *withdrawn.services.entry(name.clone()).or_default() += here;
        }
        for name in self.available_targets(node) {
            *withdrawn.entities.entry(name.clone()).or_default() += 1;
        }
    }

    /// The services with functional instances on a node, and how many each has there.
    fn served_by(&self, node: &NodeName) -> BTreeMap<&ServiceName, u64> {
        let registrations = self.registrations.get(node).into_iter();
        let keys = registrations.flat_map(|kept| kept.value.instances.keys());
        let serves = |(service, instance): &&(ServiceName, _)| {
            let service = self.catalogue.service(service);
            service.and_then(|service| service.instance(node, instance)).is_some_and(|is| is.level.serves())
        };
        let mut services = BTreeMap::new();
        for (service, _) in keys.filter(serves) {
            *services.entry(service).or_default() += 1;
        }
        services
    }

    /// The entities of which the node is a target that is available now.
    fn available_targets<'a>(&'a self, node: &NodeName) -> impl Iterator<Item = &'a EntityName> {
        let target = TargetName::from(node);
        let content = self.contents.get(node).into_iter();
        let names = content.flat_map(|content| content.entities.keys());
        names.filter(move |name| self.boards.get(name).is_some_and(|board| board.is_available(&target)))
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
