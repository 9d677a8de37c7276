//! Members of ensembles on this node: one task for each, which brings it step by step to what the order says. What the next step is, is
//! decided in `core/local`; here it is made, and what became of it is reported.

mod admin_socket;
mod append_only;
mod ceph;
mod ceph_files;
mod certificates;
mod context;
mod defragmentation;
mod delegate;
mod devices;
mod directory;
mod etcd;
mod etcd_calls;
mod etcd_wal;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod independent;
mod instance;
mod member;
mod osd;
mod osd_board;
mod osd_calls;
mod osd_files;
mod osds;
mod outside;
mod program;
mod redis;
mod redis_access;
mod redis_info;
mod snapshot_file;
mod snapshot_stream;
mod snapshots;
mod software;
mod store_osds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::records::member::{MemberOrder, MemberReport};
use bellwether_core::records::order::Order;
use bellwether_core::records::osd::{DeviceReport, OsdReport};
use bellwether_core::records::unrecorded::UnrecordedMember;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{DeviceSerial, EnsembleName};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use tokio::sync::watch;

use self::context::MemberContext;
use self::member::MemberTask;
use self::osds::Osds;
use crate::apply::former::ProcessOwner;
use crate::config::Config;
use crate::ledger::{MemberEntry, MemberStore};
use crate::link::source::CertificateSource;
use crate::service::LocalAddresses;
use crate::service::published::PublishedInstances;

/// What this node reports of its members, its OSDs and its devices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodeTold {
    /// By ensemble: its member.
    pub(crate) members: BTreeMap<EnsembleName, MemberReport>,
    /// By ensemble and number: its OSDs.
    pub(crate) osds: BTreeMap<EnsembleName, BTreeMap<MemberNumber, OsdReport>>,
    /// By ensemble: the members of it that no order names.
    pub(crate) unrecorded: BTreeMap<EnsembleName, UnrecordedMember>,
    /// The devices that it offers.
    pub(crate) devices: BTreeMap<DeviceSerial, DeviceReport>,
}

impl NodeTold {
    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What this node reports; absent until all that was ordered was looked at.
pub(crate) type KnownMembers = watch::Receiver<Option<NodeTold>>;

/// What members are made with.
pub(crate) struct EnsembleParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) logs: PathBuf,
    pub(crate) ledger: MemberStore,
    pub(crate) owner: ProcessOwner,
    pub(crate) addresses: LocalAddresses,
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    /// What is reported of the members.
    pub(crate) reports: watch::Sender<BTreeMap<EnsembleName, MemberReport>>,
    /// Where members are published as instances of services.
    pub(crate) published: PublishedInstances,
    /// The control plane, which signs certificates.
    pub(crate) control_plane: CertificateSource,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
}

/// Starts the members that this node has, and those that it is ordered to have.
pub(crate) fn start(
    parts: EnsembleParts<'_>,
    entries: BTreeMap<EnsembleName, MemberEntry>,
    tasks: &Tasks,
) -> KnownMembers {
    let EnsembleParts {
        config,
        logs,
        ledger,
        owner,
        addresses,
        orders,
        published,
        reports,
        control_plane,
        clock,
        seed,
    } = parts;
    let order = orders.borrow().clone();
    let awaited = entries.iter().filter_map(|(name, entry)| {
        let order = order.as_ref()?.content.members.get(name)?;
        instance::awaited(name, order, entry)
    });
    published.send_modify(|all| all.extend(awaited.map(|instance| (instance.service.key(), instance))));
    let settings = config.ensembles.clone();
    let dir =
        settings.as_ref().map_or_else(|| config.data_dir.join("ensembles"), |settings| settings.dir.clone());
    let context = MemberContext {
        settings,
        dir,
        logs,
        node: config.name.to_string(),
        stops_on_exit: config.services_on_exit == crate::config::OnExit::Stop,
        ledger,
        owner,
        addresses,
        reports,
        unrecorded: watch::Sender::default(),
        published,
        control_plane,
        clock,
        seed,
        tasks: tasks.clone(),
    };
    let (known, told) = watch::channel(None);
    // A node that runs none, and never had one, says nothing of members.
    let has_osds = order.is_some_and(|order| !order.content.osds.is_empty());
    if context.settings.is_some() || !entries.is_empty() || has_osds {
        let osds = Osds::start(&context);
        let members = Members { context, orders, entries, running: BTreeMap::new(), osds, known };
        tasks.spawn("ensembles", members.run());
    }
    told
}

/// The members of this node.
struct Members {
    context: MemberContext,
    orders: watch::Receiver<Option<Arc<Order>>>,
    /// The members of an agent before, until they are ordered.
    entries: BTreeMap<EnsembleName, MemberEntry>,
    /// By ensemble that this node has had a member of since the agent was started: where its order is put, if it has one now.
    running: BTreeMap<EnsembleName, watch::Sender<Option<MemberOrder>>>,
    osds: Osds,
    known: watch::Sender<Option<NodeTold>>,
}

impl Members {
    async fn run(mut self) {
        let token = self.context.tasks.token();
        let mut reports = self.context.reports.subscribe();
        let mut unrecorded = self.context.unrecorded.subscribe();
        let (mut osds, mut devices) = (self.osds.reports.clone(), self.osds.devices.clone());
        loop {
            self.follow();
            self.publish();
            // All arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                () = changed_or_never(&mut self.orders) => {}
                () = changed_or_never(&mut reports) => {}
                () = changed_or_never(&mut unrecorded) => {}
                () = changed_or_never(&mut osds) => {}
                () = changed_or_never(&mut devices) => {}
            }
        }
    }

    /// Gives each member its order. One that is not named any more is left as it is.
    fn follow(&mut self) {
        let order = self.orders.borrow_and_update().clone();
        // A node that has members, and no order, has joined anew: nothing that it is not told to have is known there.
        let members = order.as_ref().map(|order| order.content.members.clone()).unwrap_or_default();
        if let Some(order) = order {
            self.osds.follow(&order.content.osds);
        }
        for (name, sender) in &self.running {
            let wanted = members.get(name);
            sender.send_if_modified(|current| {
                let is_other = current.as_ref() != wanted;
                *current = wanted.cloned();
                is_other
            });
        }
        let new: BTreeSet<EnsembleName> = members.keys().chain(self.entries.keys()).cloned().collect();
        for name in new {
            let entry = self.entries.remove(&name);
            if self.running.contains_key(&name) {
                continue;
            }
            let (sender, order) = watch::channel(members.get(&name).cloned());
            let task = MemberTask::new(name.clone(), order, entry, self.context.clone());
            self.context.tasks.spawn("member", task.run());
            self.running.insert(name, sender);
        }
    }

    /// Reports the members, once each that is ordered was looked at: one that is missing in a report looks as if it were gone.
    fn publish(&self) {
        let reports = self.context.reports.borrow();
        let running = self.running.iter().filter(|(_, order)| order.borrow().is_some());
        let ordered: BTreeSet<&EnsembleName> = running.map(|(name, _)| name).collect();
        let unrecorded = self.context.unrecorded.borrow().clone();
        let is_known = |name: &EnsembleName| {
            reports.contains_key(name) || !ordered.contains(name) && unrecorded.contains_key(name)
        };
        let is_whole = self.running.keys().all(is_known);
        let Some((osds, devices)) = self.osds.told() else { return };
        // Before the first order, all that there is to tell of are devices that others may want, and members that nobody ordered.
        let is_before = self.orders.borrow().is_none() && devices.is_empty() && unrecorded.is_empty();
        if !is_whole || is_before {
            return;
        }
        let members: BTreeMap<_, _> = reports
            .iter()
            .filter(|(name, _)| ordered.contains(name))
            .map(|(name, report)| (name.clone(), report.clone()))
            .collect();
        drop(reports);
        let unrecorded = unrecorded.into_iter().filter_map(|(name, of)| Some((name, of?))).collect();
        let told = NodeTold { members, osds, unrecorded, devices };
        self.known.send_if_modified(|known| {
            let is_news = known.as_ref() != Some(&told);
            *known = Some(told);
            is_news
        });
    }
}
