//! Logical nodes that this agent hosts: for each, a link to the control plane, a ledger and the runs of workflows of its own, for as long
//! as its lease holds.

mod context;
mod node;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::order::{Hosting, Order};
use bellwether_core::words::name::NodeName;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use self::context::HostContext;
use self::node::LogicalNode;
use crate::apply::leftover;
use crate::disk;
use crate::lease::Lease;

/// Longest time for what runs on a logical node to end once it is not hosted here any more.
const GRACE: Duration = Duration::from_secs(20);

/// Pause before a logical node begins again that could not.
const AGAIN: Duration = Duration::from_secs(5);

/// The logical nodes that this agent hosts.
pub(crate) struct LogicalNodes {
    context: HostContext,
    orders: watch::Receiver<Option<Arc<Order>>>,
    running: BTreeMap<NodeName, Hosted>,
}

/// A logical node that runs.
struct Hosted {
    hosting: Hosting,
    tasks: Tasks,
    run: JoinHandle<Option<()>>,
}

impl LogicalNodes {
    pub(crate) const fn new(context: HostContext, orders: watch::Receiver<Option<Arc<Order>>>) -> Self {
        Self { context, orders, running: BTreeMap::new() }
    }

    /// Hosts what the order names, until the agent stops; then ends what runs on it.
    pub(crate) async fn run(mut self) {
        let token = self.context.tasks.token();
        loop {
            let wanted = self.orders.borrow_and_update().as_ref().map(|order| order.content.hosts.clone());
            let wanted = wanted.unwrap_or_default();
            let is_over = |(name, hosted): (&NodeName, &Hosted)| {
                (wanted.get(name) != Some(&hosted.hosting)).then(|| name.clone())
            };
            for name in self.running.iter().filter_map(is_over).collect::<Vec<_>>() {
                self.end(&name).await;
            }
            self.clean(&wanted).await;
            for (name, hosting) in wanted {
                if !self.running.contains_key(&name) {
                    self.start(name, hosting);
                }
            }
            // Both arms only wait.
            tokio::select! {
                () = token.cancelled() => break,
                changed = self.orders.changed() => if changed.is_err() {
                    break;
                },
            }
        }
        for name in self.running.keys().cloned().collect::<Vec<_>>() {
            self.end(&name).await;
        }
    }

    fn start(&mut self, name: NodeName, hosting: Hosting) {
        tracing::info!(node = %name, fence = hosting.fence.get(), "hosting a logical node");
        let tasks = self.context.tasks.subgroup();
        let run = host(self.context.clone(), name.clone(), hosting, tasks.clone());
        let run = self.context.tasks.spawn("logical node", run);
        self.running.insert(name, Hosted { hosting, tasks, run });
    }

    async fn end(&mut self, name: &NodeName) {
        let Some(Hosted { tasks, run, .. }) = self.running.remove(name) else { return };
        tasks.cancel();
        if let Err(error) = run.await {
            tracing::error!(node = %name, %error, "a logical node did not end in order");
        }
        tracing::info!(node = %name, "no longer hosting a logical node");
    }

    /// Removes the directories of logical nodes that are not hosted here any more, or were elsewhere in between.
    async fn clean(&self, wanted: &BTreeMap<NodeName, Hosting>) {
        let kept: Vec<String> = wanted.iter().map(|(name, hosting)| directory(name, *hosting)).collect();
        let root = self.context.data_dir.join(DIRECTORY);
        let removed = self.context.tasks.spawn_blocking(move || {
            let Ok(found) = std::fs::read_dir(&root) else { return };
            for entry in found.flatten() {
                let name = entry.file_name();
                if !kept.iter().any(|kept| *name == **kept) {
                    remove(&entry.path());
                }
            }
        });
        if let Err(error) = removed.await {
            tracing::error!(%error, "cannot remove what logical nodes left");
        }
    }
}

/// Where logical nodes have their directories, in the host's data directory.
const DIRECTORY: &str = "logical";

/// The directory of a logical node. Another fencing number is another one: what another host did in between is not known here.
fn directory(name: &NodeName, hosting: Hosting) -> String {
    format!("{name}.{}", hosting.fence)
}

/// Kills what jobs of a logical node left running: their guards ended with the agent if both were killed. Reads all of `/proc`; not for
/// the runtime's threads.
fn end_leftovers(dir: &Path) {
    match leftover::kill_jobs_below(dir) {
        Ok(0) => {}
        Ok(count) => {
            tracing::warn!(path = %dir.display(), count, "killed what jobs of a logical node left running")
        }
        Err(error) => {
            tracing::warn!(path = %dir.display(), %error, "cannot kill what jobs of a logical node left running")
        }
    }
}

/// Removes the directory of a logical node, and ends what its jobs left running.
fn remove(dir: &Path) {
    end_leftovers(dir);
    if let Err(error) = std::fs::remove_dir_all(dir) {
        tracing::warn!(path = %dir.display(), %error, "cannot remove what a logical node left");
    }
}

/// Runs one logical node while it is hosted here: whenever its lease ends, what runs on it is ended, and it begins again with the next.
async fn host(context: HostContext, name: NodeName, hosting: Hosting, tasks: Tasks) {
    let dir = context.data_dir.join(DIRECTORY).join(directory(&name, hosting));
    let token = tasks.token();
    let leftovers = dir.clone();
    // Before there is a lease: it may never be held again.
    if let Err(error) = tasks.spawn_blocking(move || end_leftovers(&leftovers)).await {
        tracing::error!(node = %name, %error, "cannot look for what jobs of a logical node left running");
    }
    if let Err(reason) = leftover::guards_end(&dir, &tasks).await {
        tracing::warn!(node = %name, "cannot {reason}");
    }
    while !token.is_cancelled() {
        let life = tasks.subgroup();
        let lease = Lease::new(context.clock.clone(), hosting.lease);
        let made = disk::private_dir(&dir).and_then(|()| disk::private_dir(&dir.join("logs")));
        let node = made.map_err(|error| error.to_string()).and_then(|()| {
            LogicalNode::open(&context, (&name, &dir), (&lease, &life)).map_err(|error| error.to_string())
        });
        let node = match node {
            Ok(node) => node,
            Err(reason) => {
                tracing::error!(node = %name, "cannot host a logical node: cannot {reason}; trying again");
                pause(&tasks).await;
                continue;
            }
        };
        let mut running = std::pin::pin!(node.run());
        // What is dropped halfway only waits; the node itself is polled on to its end.
        let has_ended = tokio::select! {
            () = &mut running => true,
            () = token.cancelled() => false,
            () = lease.lost() => {
                tracing::warn!(node = %name, lease = %hosting.lease, "no server said in time that this logical node is still hosted here: what runs on it ends");
                false
            }
        };
        life.cancel();
        if !has_ended {
            running.await;
        }
        if let Err(error) = life.stop(GRACE).await {
            tracing::error!(node = %name, "a logical node did not end in order: cannot {error}");
        }
        if context.decommissioned.get().is_some() {
            tracing::warn!(node = %name, "this host was decommissioned: what it hosts has ended, and so does its agent");
            return context.tasks.cancel();
        }
        if has_ended {
            pause(&tasks).await;
        }
    }
}

/// Waits before a logical node begins again that could not, or that ended by itself.
async fn pause(tasks: &Tasks) {
    let token = tasks.token();
    // Both arms only wait.
    tokio::select! {
        () = token.cancelled() => {}
        () = tokio::time::sleep(AGAIN) => {}
    }
}
