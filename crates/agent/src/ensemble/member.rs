//! The task of one member: looks at what is there, makes the next step, and reports.

mod access;
mod ceph;
mod independent;
mod look;
mod outside;
mod restore;
mod serve;
mod steps;
mod tls;
mod unrecorded;

use std::path::PathBuf;
use std::time::Duration;

use bellwether_core::local::member::{
    MemberDirectory, MemberKey, MemberProcess, MemberSight, MemberStep, Standing, told,
};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::member::{MemberOrder, MemberReport, MemberState, Membership, Replication};
use bellwether_core::records::probes::MAX_REASON_BYTES;
use bellwether_core::records::registrations::instance_of_member;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use tokio::sync::watch;
use tokio::time::Instant;

use super::append_only::AppendOnly;
use super::ceph::Ceph;
use super::context::MemberContext;
use super::defragmentation::Defragmentation;
use super::directory::OwnDirectory;
use super::etcd::Etcd;
use super::independent::Independent;
use super::instance;
use super::program::MemberProgram;
use super::redis::Redis;
use super::redis_access::{MemberAccess, RedisAccess};
use super::snapshot_file::LookedAt;
use super::snapshots::Snapshots;
use super::software::Software;
use super::store_osds::StoreOsds;
use crate::apply::output::one_line;
use crate::apply::process::SupervisedProcess;
use crate::ledger::MemberEntry;
use crate::service::published::InstanceKey;

/// Time between two looks at a member that runs.
const LOOK: Duration = Duration::from_secs(1);

/// The same for one that is asked by starting a program.
const DELEGATED_LOOK: Duration = Duration::from_secs(5);

/// Time after a step of a change until the members are read again.
const SOON: Duration = Duration::from_millis(100);

/// Time until something that is missing is looked for again, or other members are asked again.
const RETRY: Duration = Duration::from_secs(3);

/// The task of one member.
pub(super) struct MemberTask {
    ensemble: EnsembleName,
    order: watch::Receiver<Option<MemberOrder>>,
    context: MemberContext,
    directory: OwnDirectory,
    log: PathBuf,
    entry: Option<MemberEntry>,
    program: MemberProgram,
    /// The manager beside a monitor of Ceph.
    manager: MemberProgram,
    standing: Standing,
    /// The store that was adopted, as it was read through another member because this one does not serve.
    outside: Option<Membership>,
    /// The member whose removal it was ordered last, once the store does not have it.
    removed: Option<MemberNumber>,
    /// Why the change that it is ordered to make is not made yet.
    hindered: Option<String>,
    /// When certificates may be due again; `None` before they were looked at.
    renewal: Option<Instant>,
    /// What is missing for a start.
    lacking: Option<String>,
    /// Why it takes no writes although it serves.
    alarm: Option<String>,
    /// Why it keeps nothing of what it acknowledges, although it runs.
    lost: Option<String>,
    /// What it said last of its replication, where there is a primary; only while its program runs.
    replication: Option<Replication>,
    /// The snapshot that it is restored from, as it was looked at last.
    looked_at: Option<LookedAt>,
    /// The settings that it was given while it runs.
    applied: Option<EnsembleService>,
    /// Who may use a Redis.
    access: MemberAccess,
    /// The append-only file of a Redis.
    append_only: AppendOnly,
    /// The snapshots that this node takes.
    snapshots: Snapshots,
    /// The defragmentation of an etcd.
    defragmentation: Defragmentation,
    /// The OSDs of the store, where a monitor of Ceph reads them.
    store_osds: StoreOsds,
    /// The instance as which it is published; `None` if it is not.
    shown: Option<InstanceKey>,
}

impl MemberTask {
    pub(super) fn new(
        ensemble: EnsembleName,
        order: watch::Receiver<Option<MemberOrder>>,
        entry: Option<MemberEntry>,
        context: MemberContext,
    ) -> Self {
        let former = entry.as_ref().map(|entry| entry.noted.key.number);
        Self {
            shown: former.and_then(|number| instance_of_member(&ensemble, number)),
            directory: OwnDirectory::new(&context.dir, &ensemble),
            snapshots: Snapshots::new(&context.dir, &ensemble, &context.tasks),
            defragmentation: Defragmentation::new(&context.tasks),
            log: context.logs.join(format!("ensemble-{ensemble}.log")),
            ensemble,
            order,
            context,
            entry,
            program: MemberProgram::Stopped,
            manager: MemberProgram::Stopped,
            standing: Standing::NotAsked,
            outside: None,
            removed: None,
            hindered: None,
            renewal: None,
            lacking: None,
            alarm: None,
            lost: None,
            replication: None,
            applied: None,
            access: MemberAccess::default(),
            append_only: AppendOnly::default(),
            store_osds: StoreOsds::default(),
            looked_at: None,
        }
    }

    /// Runs until the agent ends. While the order does not name the member, a program that runs goes on, and is known when it is named again.
    pub(super) async fn run(mut self) {
        let token = self.context.tasks.token();
        let mut order = self.order.clone();
        let work = async {
            self.adopt().await;
            self.adopt_manager();
            let mut is_first = true;
            while self.turn(&mut is_first).await {}
        };
        // What is broken off halfway is looked at anew by the next agent.
        tokio::select! {
            () = token.cancelled() => {}
            () = work => return,
        }
        order.mark_unchanged();
        // Nobody would start one again that is not ordered.
        if self.context.stops_on_exit && order.borrow().is_some() {
            self.manager.stop().await;
            if let Err(error) = self.stop_program().await {
                tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
            }
        }
    }

    /// Makes the next step for its order, or waits for one; `false` once there will be none.
    async fn turn(&mut self, is_first: &mut bool) -> bool {
        let Some(order) = self.current() else {
            self.end().await;
            return self.rest_unrecorded().await;
        };
        if std::mem::take(is_first) {
            self.begin().await;
        }
        self.step(&order).await;
        true
    }

    fn current(&mut self) -> Option<MemberOrder> {
        self.order.borrow_and_update().clone()
    }

    /// Takes over the program that an agent before has started.
    async fn adopt(&mut self) {
        while let Err(error) = self.adopt_delegated().await {
            // Until that is known, nothing is started beside it, and it is not left running.
            self.cannot_look(&format!(": cannot {error}"));
            tokio::time::sleep(RETRY).await;
        }
        if let MemberProgram::Delegated { .. } = self.program {
            return;
        }
        let Some((key, mark)) =
            self.entry.as_ref().and_then(|entry| Some((entry.noted.key.clone(), entry.process.clone()?)))
        else {
            return;
        };
        loop {
            match SupervisedProcess::adopt(&mark, &self.log, &self.context.tasks) {
                Ok(Some(process)) => {
                    self.program = MemberProgram::running(key, process, 0);
                    return;
                }
                Ok(None) => return,
                Err(error) => {
                    self.cannot_look(&format!(", as process {}: {error}", mark.pid));
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// It is no instance of a service any more.
    pub(super) fn withdraw(&mut self) {
        self.context.published.send_if_modified(|all| instance::show(all, &mut self.shown, None));
    }

    /// Looks, and makes the next step.
    async fn step(&mut self, order: &MemberOrder) {
        if self.program.look(self.context.seed) {
            self.look_for_room().await;
            // What a program left running keeps its ports, and is stopped by nobody.
            self.end_unknown().await;
        }
        let look = match self.look(order).await {
            Ok(look) => look,
            Err(error) => return self.fails(order, &error).await,
        };
        self.lacking.clone_from(&look.lack);
        self.outside = None;
        let place = self.directory.path.display().to_string();
        let sight = MemberSight {
            ensemble: &self.ensemble,
            order,
            noted: self.entry.as_ref().map(|entry| &entry.noted),
            directory: look.directory.clone(),
            process: self.program.state(),
            is_restart_due: self.is_restart_due(order),
            standing: self.standing,
            lack: look.lack,
            place: &place,
        };
        let (plan, lost) = (sight.plan(), sight.runs_without_data());
        if let Err(error) = self.note_lost(order, lost, look.directory == MemberDirectory::Absent).await {
            return self.fails(order, &error).await;
        }
        let done = match plan {
            MemberStep::Rest(state, reason) => {
                self.rest(order, (state, reason)).await;
                self.standing = Standing::NotAsked;
                Ok(())
            }
            MemberStep::Prepare => self.prepare(order).await,
            MemberStep::Stop => self.stop().await,
            MemberStep::SetAside => self.set_aside().await,
            MemberStep::NoteLeft => self.note_left(order).await,
            MemberStep::Ask => {
                self.ask(order).await;
                Ok(())
            }
            MemberStep::Restore => self.restore(order).await,
            MemberStep::Start(with) => self.start(order, &with).await,
            MemberStep::Serve => self.serve(order).await,
        };
        if let Err(error) = done {
            self.fails(order, &error).await;
        }
    }

    async fn fails(&mut self, order: &MemberOrder, error: &str) {
        self.report(order, MemberState::Failed, &format!("cannot go on: cannot {error}"), None);
        self.wait(RETRY).await;
    }

    /// The software of the order, at the address that was noted, or at that of the node.
    fn software(&mut self, order: &MemberOrder) -> Option<Software> {
        let key = MemberKey::of(order);
        let noted = self.entry.as_ref().filter(|entry| entry.noted.key == key).map(|entry| entry.address);
        let address = noted.or_else(|| self.context.addresses.now().preferred())?;
        let directory = &self.directory.path;
        let of = (&self.ensemble, order.number);
        Some(match &order.service {
            EnsembleService::Etcd(settings) => {
                let etcd = Etcd::new(of, *settings, address, directory);
                Software::Etcd(etcd.adopted(order.adoption.is_some()))
            }
            EnsembleService::Redis(settings) => {
                let access = self.access.of(&key).cloned();
                Software::Redis(Redis::new(settings.clone(), address, directory, access))
            }
            EnsembleService::Independent(settings) => {
                Software::Independent(Independent::new(of, settings, address))
            }
            EnsembleService::Ceph(settings) => {
                Software::Ceph(Ceph::new(of, settings.clone(), address, directory))
            }
        })
    }

    /// The later member of the ensemble that this node has had.
    fn later(&self, order: &MemberOrder) -> Option<MemberNumber> {
        let noted = self.entry.as_ref().map(|entry| &entry.noted.key);
        let noted = noted.filter(|noted| noted.identity == order.identity)?;
        (noted.number > order.number).then_some(noted.number)
    }

    /// Changes what the ledger has of it.
    async fn note(&mut self, change: impl FnOnce(&mut MemberEntry)) -> Result<(), String> {
        let Some(mut entry) = self.entry.clone() else { return Ok(()) };
        change(&mut entry);
        self.context.ledger.keep(&self.ensemble, &entry).await?;
        self.entry = Some(entry);
        Ok(())
    }

    /// Waits for another order, for the end of its program, until it may be started again, or for this long.
    async fn wait(&mut self, long: Duration) {
        let until = Instant::now() + long;
        let until =
            self.program.due().filter(|due| *due > Instant::now()).map_or(until, |due| due.min(until));
        // All arms only wait; what ended is seen by the next look.
        tokio::select! {
            changed = self.order.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            () = self.program.ends() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    fn report(
        &mut self,
        order: &MemberOrder,
        state: MemberState,
        reason: &str,
        membership: Option<Membership>,
    ) {
        self.told(order, state, told(&self.ensemble, order.number, reason), membership);
    }

    /// Reports it with a reason that names it.
    fn told(
        &mut self,
        order: &MemberOrder,
        state: MemberState,
        reason: String,
        membership: Option<Membership>,
    ) {
        let software = self.software(order);
        let peer_url = software.as_ref().map(Software::peer_url).unwrap_or_default();
        let works = state == MemberState::Working;
        let reason = match &self.lost {
            Some(lost) if works => told(&self.ensemble, order.number, lost),
            Some(_) | None => reason,
        };
        let replication = self.replication.clone().filter(|_| works);
        let report = MemberReport {
            number: order.number,
            identity: order.identity.clone(),
            state,
            reason: one_line(&reason, MAX_REASON_BYTES),
            peer_url,
            membership,
            outside: self.outside.clone(),
            removed: self.removed,
            has_ended: matches!(self.program.state(), MemberProcess::Ended { .. }),
            replication,
            passwords: self.access.taken().filter(|_| works).map(RedisAccess::versions),
            snapshot: self.snapshots.report(),
            restarted: self.entry.as_ref().and_then(|entry| entry.restarted),
            defragmented: self.defragmentation.made(),
            defragments: self.defragmentation.is_under_way(),
            osds: self.store_osds.told().osds.filter(|_| works),
            later: self.later(order),
        };
        // One that ended by itself without an error was removed from the store: it leaves, and has not failed. Ceph ends so when it is told to.
        let has_left = matches!(self.program.state(), MemberProcess::Ended { code: Some(0), .. })
            && !order.service.admits_by_itself();
        let software = software.filter(|_| !has_left);
        let instance = software.and_then(|software| {
            let alarm = self.lost.as_deref().or(self.alarm.as_deref());
            instance::of((&self.ensemble, order), &report, alarm, software.client())
        });
        self.context.published.send_if_modified(|all| instance::show(all, &mut self.shown, instance));
        self.context.reports.send_if_modified(|reports| {
            let is_news = reports.get(&self.ensemble) != Some(&report);
            if is_news {
                reports.insert(self.ensemble.clone(), report);
            }
            is_news
        });
    }
}
