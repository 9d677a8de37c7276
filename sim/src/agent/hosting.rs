//! The logical nodes that a simulated agent hosts: for each a link, a ledger and the runs of its own, for as long as its lease holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::order::Hosting;
use bellwether_core::words::name::NodeName;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::node::AgentNode;
use crate::executions::{ExecutionEnd, HostLease};
use crate::rules::DisabledRule;

/// Starts the tasks of one life of a node's agent.
pub(super) type StartsLife = fn(&AgentNode, &Clock, &Tasks, u64) -> Vec<AbortHandle>;

/// Hosts what the orders of a machine name.
pub(super) async fn host(
    node: AgentNode,
    orders: watch::Sender<u64>,
    (clock, tasks): (Clock, Tasks),
    life: StartsLife,
) {
    let mut running: BTreeMap<NodeName, (Hosting, Hosted)> = BTreeMap::new();
    let mut changes = orders.subscribe();
    let mut lives = 0_u64;
    loop {
        changes.borrow_and_update();
        let wanted = node.disk().order.as_ref().map(|order| order.content.hosts.clone()).unwrap_or_default();
        let is_over = |name: &NodeName, hosting: &Hosting| wanted.get(name) != Some(hosting);
        let lost = |hosted: &Hosted| hosted.is_lost() && node.without != Some(DisabledRule::Lease);
        running.retain(|name, (hosting, hosted)| {
            let ends = is_over(name, hosting) || lost(hosted);
            if ends {
                hosted.end(&node, name);
            }
            !ends
        });
        node.disk()
            .logical
            .retain(|(name, fence), _| wanted.get(name).is_some_and(|of| of.fence.get() == *fence));
        for (name, hosting) in wanted {
            if !running.contains_key(&name) {
                lives += 1;
                node.trace.say(&format!("{} hosts {name} with fence {}", node.name, hosting.fence));
                running.insert(
                    name.clone(),
                    (hosting, Hosted::start((&node, name, hosting), &clock, (&tasks, lives), life)),
                );
            }
        }
        let next = running.values().filter_map(|(_, hosted)| hosted.lease.end()).min();
        let next = next.map(|end| end.max(Instant::now() + std::time::Duration::from_millis(1)));
        // Both arms only wait.
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return },
            () = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                }
            } => {}
        }
    }
}

/// A logical node that is hosted.
struct Hosted {
    lease: HostLease,
    tasks: Vec<AbortHandle>,
}

impl Hosted {
    fn start(
        (host, name, hosting): (&AgentNode, NodeName, Hosting),
        clock: &Clock,
        (tasks, lives): (&Tasks, u64),
        life: StartsLife,
    ) -> Self {
        let lease = HostLease::default();
        let disk = host.disk().logical.entry((name.clone(), hosting.fence.get())).or_default().clone();
        let node = AgentNode {
            name,
            host: host.host.clone(),
            lease: Some(lease.clone()),
            lease_length: hosting.lease,
            fence: Some(hosting.fence.get()),
            disk,
            seed: host.seed ^ hosting.fence.get() << 8 ^ lives,
            losses: Arc::clone(&host.losses),
            hosts_logical: false,
            stores: None,
            ..host.clone()
        };
        Self { lease, tasks: life(&node, clock, tasks, lives) }
    }

    fn is_lost(&self) -> bool {
        self.lease.end().is_some() && !self.lease.is_held()
    }

    fn end(&self, host: &AgentNode, name: &NodeName) {
        host.trace.say(&format!("{} hosts {name} no more", host.name));
        self.tasks.iter().for_each(AbortHandle::abort);
        host.executions.end_all(&host.host, name, ExecutionEnd::Killed);
    }
}
