//! One task per entity: for those with a recipe from the start, for others once an order names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::order::{ApplyMethod, Order};
use bellwether_core::words::name::EntityName;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::entity::{EntityContext, EntityTask};
use crate::ledger::EntityEntry;

/// Tasks that have ended and are not looked at yet; more of them wait.
const ENDED_AT_ONCE: usize = 16;

/// The tasks of all entities of this node.
pub(crate) struct EntityTasks {
    config: Config,
    /// What the ledger has of entities that are not started yet.
    entries: BTreeMap<EntityName, EntityEntry>,
    context: EntityContext,
    running: BTreeMap<EntityName, JoinHandle<Option<()>>>,
    /// Names of tasks that have ended: of runs that are forgotten.
    ended: mpsc::Receiver<EntityName>,
    ends: mpsc::Sender<EntityName>,
}

impl EntityTasks {
    pub(crate) fn new(
        config: Config,
        entries: BTreeMap<EntityName, EntityEntry>,
        context: EntityContext,
    ) -> Self {
        let (ends, ended) = mpsc::channel(ENDED_AT_ONCE);
        Self { config, entries, context, running: BTreeMap::new(), ended, ends }
    }

    /// Runs until the agent stops, and then waits until each entity has left or stopped its process as configured.
    pub(crate) async fn run(mut self) {
        let token = self.context.tasks.token();
        self.recall_runs().await;
        let recipes: Vec<EntityName> = self.config.entities.keys().cloned().collect();
        for name in recipes.into_iter().chain(self.former_runs()) {
            self.start(name);
        }
        let mut orders = self.context.orders.clone();
        loop {
            let order: Option<Arc<Order>> = orders.borrow_and_update().clone();
            let named = order.iter().flat_map(|order| order.content.entities.keys());
            for name in named.cloned().collect::<Vec<_>>() {
                self.start(name);
            }
            // All arms only wait. When the agent stops, every task ends: none of them is started again.
            tokio::select! {
                biased;
                () = token.cancelled() => break,
                changed = orders.changed() => if changed.is_err() {
                    break;
                },
                // A run that is forgotten may be named again.
                Some(name) = self.ended.recv() => self.joins(&name).await,
            }
        }
        self.ended.close();
        for name in self.running.keys().cloned().collect::<Vec<_>>() {
            self.joins(&name).await;
        }
    }

    async fn joins(&mut self, name: &EntityName) {
        let Some(task) = self.running.remove(name) else { return };
        if let Err(error) = task.await {
            tracing::error!(entity = %name, %error, "the task of an entity did not end in order");
        }
    }

    /// The runs that were assigned when the agent ended last: it learns from the order whether they still are.
    fn former_runs(&self) -> Vec<EntityName> {
        let was_assigned = |entry: &EntityEntry| {
            entry.memory.wanted.as_ref().is_some_and(|wanted| wanted.method == ApplyMethod::Workflow)
        };
        let has_order = self.context.orders.borrow().is_some();
        let former = self.entries.iter().filter(|(_, entry)| has_order && was_assigned(entry));
        former.map(|(name, _)| name.clone()).collect()
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
            self.spawn(name, entity);
        }
    }

    fn start(&mut self, name: EntityName) {
        if self.running.contains_key(&name) {
            return;
        }
        let entity = self.take(&name);
        self.spawn(name, entity);
    }

    fn spawn(&mut self, name: EntityName, entity: EntityTask) {
        let (ends, ending) = (self.ends.clone(), name.clone());
        let work = async move {
            entity.run().await;
            // Nobody reads it when the agent stops.
            let _unread = ends.send(ending).await;
        };
        self.running.insert(name, self.context.tasks.spawn("entity", work));
    }

    /// The task of an entity, from what the ledger has of it.
    fn take(&mut self, name: &EntityName) -> EntityTask {
        let recipe = self.config.entities.get(name).cloned();
        let entry = self.entries.remove(name).unwrap_or_default();
        EntityTask::new(name.clone(), recipe, entry, self.context.clone())
    }
}
