//! The steps of a member on disk, and the start of its program.

use std::io;

use bellwether_core::local::member::Standing;
use bellwether_core::local::member::{MemberDirectory, MemberKey, NotedMember, StartWith};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::member::MemberOrder;
use bellwether_rt::fail::{self, FailPoint};

use super::MemberTask;
use crate::apply::process::SupervisedProcess;
use crate::apply::{CommandFacts, leftover};
use crate::disk;
use crate::ensemble::append_only::AppendOnly;
use crate::ensemble::outside;
use crate::ensemble::program::MemberProgram;
use crate::ensemble::software::Software;
use crate::ledger::MemberEntry;

impl MemberTask {
    pub(super) async fn prepare(&mut self, order: &MemberOrder) -> Result<(), String> {
        let key = MemberKey::of(order);
        self.stop_manager().await?;
        let Some(address) = self.context.addresses.now().preferred() else {
            return Err("prepare it: its node has no address that others reach".to_owned());
        };
        let (own, of, all) = (self.directory.clone(), key.clone(), self.context.dir.clone());
        let service = order.service.clone();
        let made = move || {
            disk::private_dir(&all)?;
            match own.look(&service)? {
                MemberDirectory::Absent => own.make(&of, &service),
                MemberDirectory::Unclaimed | MemberDirectory::Claimed(..) => Ok(()),
            }
        };
        self.on_disk("make its directory", made).await?;
        fail::pass(FailPoint::MemberMade);
        let entry = MemberEntry {
            noted: NotedMember { key, has_left: false },
            address,
            is_starting: false,
            process: None,
            manager: None,
            restarted: None,
            has_served: false,
            store_id: None,
            peers: Vec::new(),
        };
        self.context.ledger.keep(&self.ensemble, &entry).await?;
        fail::pass(FailPoint::MemberNoted);
        self.entry = Some(entry);
        (self.removed, self.hindered) = (None, None);
        Ok(())
    }

    /// Notes why it keeps nothing of what it acknowledges, although it runs. If its directory is gone, there is one again, without data, for what
    /// it is called with.
    pub(super) async fn note_lost(
        &mut self,
        order: &MemberOrder,
        lost: Option<String>,
        is_absent: bool,
    ) -> Result<(), String> {
        // What it has before it served the first time is its own affair.
        self.lost = lost.filter(|_| self.has_served());
        if self.lost.is_none() || !is_absent || matches!(order.service, EnsembleService::Independent(_)) {
            return Ok(());
        }
        let (own, key) = (self.directory.clone(), MemberKey::of(order));
        self.on_disk("make its directory again", move || own.make_again(&key)).await
    }

    /// Whether it is ordered to restart, and its program was started for an earlier restart, or for none.
    pub(super) fn is_restart_due(&self, order: &MemberOrder) -> bool {
        order.restart > self.entry.as_ref().and_then(|entry| entry.restarted)
    }

    /// Why it serves although it is to restart: it would not be started again.
    pub(super) fn not_restarted(&self, order: &MemberOrder) -> Option<String> {
        let lack = self.lacking.as_ref().filter(|_| self.is_restart_due(order))?;
        Some(format!("is not restarted: it waits for {lack}"))
    }

    /// Ends its program, after the manager beside it: a restart is for both.
    pub(super) async fn stop(&mut self) -> Result<(), String> {
        self.withdraw();
        self.stop_manager().await?;
        self.stop_program().await?;
        self.end_unknown().await;
        self.note(|entry| entry.process = None).await
    }

    pub(super) async fn set_aside(&mut self) -> Result<(), String> {
        self.stop_manager().await?;
        let own = self.directory.clone();
        let aside = self.on_disk("set its directory aside", move || own.set_aside()).await?;
        match aside {
            Some(aside) => {
                tracing::info!(ensemble = %self.ensemble, aside = %aside.display(), "a directory of a member is set aside");
            }
            None => {
                tracing::info!(ensemble = %self.ensemble, "a directory of a member without data is removed")
            }
        }
        fail::pass(FailPoint::MemberSetAside);
        Ok(())
    }

    pub(super) async fn note_left(&mut self, order: &MemberOrder) -> Result<(), String> {
        // A directory that is gone was not set aside.
        self.stop_manager().await?;
        let address = self.entry.as_ref().map(|entry| entry.address);
        let address = address.or_else(|| self.context.addresses.now().preferred());
        let entry = MemberEntry {
            noted: NotedMember { key: MemberKey::of(order), has_left: true },
            address: address.unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)),
            is_starting: false,
            process: None,
            manager: None,
            restarted: None,
            has_served: false,
            store_id: None,
            peers: Vec::new(),
        };
        self.context.ledger.keep(&self.ensemble, &entry).await?;
        fail::pass(FailPoint::MemberLeft);
        self.entry = Some(entry);
        Ok(())
    }

    pub(super) async fn ask(&mut self, order: &MemberOrder) {
        let entry = self.entry.as_ref();
        let peers = entry.map(|entry| entry.peers.clone()).unwrap_or_default();
        let id = entry.and_then(|entry| entry.store_id.clone());
        self.standing = match self.software(order) {
            Some(Software::Etcd(etcd)) => match &order.adoption {
                Some(adoption) => outside::standing(&etcd, adoption, &peers, id.as_ref()).await,
                None => etcd.standing(&peers, id.as_ref()).await,
            },
            Some(Software::Ceph(ceph)) => match self.calling(&MemberKey::of(order)) {
                Ok((programs, facts)) => ceph.standing((&programs, &facts), &peers).await,
                Err(_) => Standing::Unknown,
            },
            // Where members do not vote, none of them counts the others.
            Some(Software::Redis(_) | Software::Independent(_)) | None => Standing::Alone,
        };
    }

    /// Ends a program of which nobody knows more than that it may run: an agent was killed before it could note it, or its ledger is gone.
    /// It would keep the ports of the one that is started.
    pub(super) async fn end_unknown(&mut self) {
        let ordered = self.current().map(|order| MemberKey::of(&order));
        let Some(key) = self.entry.as_ref().map(|entry| entry.noted.key.clone()).or(ordered) else { return };
        let run = run(&key);
        let ended = self.on_disk("look for a program of this member", move || leftover::kill(&run)).await;
        match ended {
            Ok(0) => {}
            Ok(_) => {
                tracing::info!(ensemble = %self.ensemble, "ended a program that an agent before had started")
            }
            Err(error) => tracing::warn!(ensemble = %self.ensemble, "cannot {error}"),
        }
    }

    pub(super) async fn start(&mut self, order: &MemberOrder, with: &StartWith) -> Result<(), String> {
        let Some((mut software, settings)) = self.software(order).zip(self.context.settings.clone()) else {
            return Err("start it: its node has no address, or its agent no section [ensembles]".to_owned());
        };
        if let Software::Independent(independent) = &software
            && independent.is_delegated()
        {
            return self.hand_to_delegate(order, independent).await;
        }
        if let (Software::Etcd(etcd), StartWith::Existing(_), Some(_)) = (&software, with, &order.adoption) {
            let read = self
                .read_outside(order, etcd)
                .await
                .map_err(|lack| format!("start it: it waits for {lack}"))?;
            software = Software::Etcd(etcd.clone().joining(read.initial(etcd)?));
        }
        let key = MemberKey::of(order);
        let run = run(&key);
        let (data, node) = (self.directory.data(), self.context.node.clone());
        let command = software.command((&settings, &node), &data, (&self.ensemble, &key), with);
        let Some(command) = command else {
            return Err("start it: its node does not have its program".to_owned());
        };
        self.note(|entry| entry.is_starting = true).await?;
        fail::pass(FailPoint::MemberStarting);
        // One that an agent started which was killed before it could note it would hold the ports.
        let former = run.clone();
        self.on_disk("look for a program of this member", move || leftover::kill(&former)).await?;
        if let Software::Ceph(ceph) = &software {
            self.make_monitor(ceph, (&key, with)).await?;
        }
        if let Software::Redis(_) = &software {
            self.write_access(order).await?;
        }
        let facts = CommandFacts { node, run, ..CommandFacts::default() };
        let tasks = &self.context.tasks;
        let started = SupervisedProcess::start(&command, &facts, &self.context.owner, &self.log, tasks);
        let program = || command.argv.first().cloned().unwrap_or_default();
        let process = started.map_err(|error| format!("start {}: {error}", program()))?;
        fail::pass(FailPoint::MemberStarted);
        let mark = process.mark().clone();
        self.program = MemberProgram::running(key, process, self.program.failed());
        self.standing = Standing::NotAsked;
        (self.replication, self.applied) = (None, None);
        // What is noted in its directory, which may be another one now, is looked for again.
        self.append_only = AppendOnly::default();
        self.access.is_started();
        self.note(|entry| {
            (entry.is_starting, entry.process) = (false, Some(mark.clone()));
            entry.restarted = entry.restarted.max(order.restart);
        })
        .await
    }

    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let what = what.to_owned();
        let done = move || work().map_err(|error| format!("{what}: {error}"));
        disk::off_runtime(&self.context.tasks, done).await
    }
}

/// The name of the run of a member, which its program has in its environment.
pub(super) fn run(key: &MemberKey) -> String {
    format!("{}/{}", key.identity, key.number)
}
