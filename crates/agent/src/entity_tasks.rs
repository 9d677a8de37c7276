//! One task per entity: for those with a recipe from the start, for others once an order names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::order::Order;
use bellwether_core::words::name::EntityName;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::entity::{EntityContext, EntityTask};
use crate::ledger::EntityEntry;

/// The tasks of all entities of this node.
pub(crate) struct EntityTasks {
    config: Config,
    /// What the ledger has of entities that are not started yet.
    entries: BTreeMap<EntityName, EntityEntry>,
    context: EntityContext,
    running: BTreeMap<EntityName, JoinHandle<Option<()>>>,
}

impl EntityTasks {
    pub(crate) fn new(
        config: Config,
        entries: BTreeMap<EntityName, EntityEntry>,
        context: EntityContext,
    ) -> Self {
        Self { config, entries, context, running: BTreeMap::new() }
    }

    /// Runs until the agent stops, and then waits until each entity has left or stopped its process as configured.
    pub(crate) async fn run(mut self) {
        let token = self.context.tasks.token();
        self.recall_runs().await;
        let recipes: Vec<EntityName> = self.config.entities.keys().cloned().collect();
        for name in recipes {
            self.start(name);
        }
        let mut orders = self.context.orders.clone();
        loop {
            let order: Option<Arc<Order>> = orders.borrow_and_update().clone();
            let named = order.iter().flat_map(|order| order.content.entities.keys());
            for name in named.cloned().collect::<Vec<_>>() {
                self.start(name);
            }
            tokio::select! {
                () = token.cancelled() => break,
                changed = orders.changed() => if changed.is_err() {
                    break;
                },
            }
        }
        for (name, task) in self.running {
            if let Err(error) = task.await {
                tracing::error!(entity = %name, %error, "the task of an entity did not end in order");
            }
        }
    }

    /// Starts the runs before everything else: nothing begins before the end of a boot for which one waits, and no other run begins
    /// beside one that is in progress, or before the control plane knows of one that failed.
    async fn recall_runs(&mut self) {
        let order = self.context.orders.borrow().clone();
        let named = order.iter().flat_map(|order| order.content.entities.keys());
        let is_run = |name: &EntityName| {
            self.config.allows_tasks
                && !self.config.entities.contains_key(name)
                && self.entries.get(name).is_some_and(|entry| entry.memory.ran.is_some())
        };
        let runs: Vec<EntityName> = named.filter(|name| is_run(name)).cloned().collect();
        let mut waiting = Vec::new();
        for name in runs {
            let mut entity = self.take(&name);
            entity.recall_boot().await;
            entity.recall_run().await;
            waiting.push((name, entity));
        }
        for (name, entity) in waiting {
            self.running.insert(name, self.context.tasks.spawn("entity", entity.run()));
        }
    }

    fn start(&mut self, name: EntityName) {
        if self.running.contains_key(&name) {
            return;
        }
        let entity = self.take(&name);
        self.running.insert(name, self.context.tasks.spawn("entity", entity.run()));
    }

    /// The task of an entity, from what the ledger has of it.
    fn take(&mut self, name: &EntityName) -> EntityTask {
        let recipe = self.config.entities.get(name).cloned();
        let entry = self.entries.remove(name).unwrap_or_default();
        EntityTask::new(name.clone(), recipe, entry, self.context.clone())
    }
}
