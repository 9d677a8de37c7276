//! A monitor of Ceph: its keys, its store before the first start, what it says while it runs, and the manager beside it.

use std::path::PathBuf;

use bellwether_api::v1::ensemble::keys::MemberKeysRequest;
use bellwether_core::local::member::change::{self, ChangeStep, MemberAnswer};
use bellwether_core::local::member::mgr::has_manager;
use bellwether_core::local::member::{MemberKey, StartWith};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::member::{MemberOrder, Membership};
use bellwether_rt::fail::{self, FailPoint};

use super::steps::run;
use super::{LOOK, MemberTask, SOON};
use crate::apply::process::SupervisedProcess;
use crate::apply::{CommandFacts, leftover};
use crate::config::ensembles::CephPrograms;
use crate::ensemble::ceph::Ceph;
use crate::ensemble::ceph_files::CephFiles;
use crate::ensemble::program::MemberProgram;

impl MemberTask {
    /// Obtains the keys before a start, unless they are there. That they cannot be had now is no refusal of this node.
    pub(super) async fn keyed(&mut self, order: &MemberOrder) -> Result<(), String> {
        let files = match &order.service {
            EnsembleService::Etcd(_) | EnsembleService::Redis(_) | EnsembleService::Independent(_) => {
                return Ok(());
            }
            EnsembleService::Ceph(_) => CephFiles::within(&self.directory.path),
        };
        let found = files.clone();
        if self.on_disk("read its keys", move || found.fsid()).await?.is_some() {
            return Ok(());
        }
        let request = MemberKeysRequest { number: order.number.get(), identity: order.identity.clone() };
        let asked = self.context.control_plane.keys(&self.ensemble, &request).await;
        let keys = asked.map_err(|error| format!("ask for its keys: {error}"))?;
        let own = self.software(order).map(|software| software.peer_url());
        let own: Vec<String> = own.into_iter().collect();
        self.on_disk("keep its keys", move || files.keep(&keys, &own)).await
    }

    /// Makes the store of a monitor that is started for the first time.
    pub(super) async fn make_monitor(
        &mut self,
        ceph: &Ceph,
        (key, with): (&MemberKey, &StartWith),
    ) -> Result<(), String> {
        if *with == StartWith::Data {
            return Ok(());
        }
        let (programs, facts) = self.calling(key)?;
        let files = ceph.files.clone();
        let fsid =
            self.on_disk("make its store", move || files.make_store().and_then(|()| files.fsid())).await?;
        let fsid = fsid.ok_or_else(|| "make its store: it has no keys".to_owned())?;
        ceph.make((&programs, &facts), &fsid, with).await?;
        // From now on a directory without data is one that has lost them.
        let own = self.directory.clone();
        self.on_disk("note that it has data", move || own.note_used()).await
    }

    /// The programs of Ceph, and what those are told that are run for this member.
    pub(super) fn calling(&self, key: &MemberKey) -> Result<(CephPrograms, CommandFacts), String> {
        let settings = self.context.settings.as_ref();
        let programs = settings.map(|settings| settings.ceph.clone());
        let programs = programs.ok_or_else(|| "call it: its agent has no section [ensembles]".to_owned())?;
        let run = format!("{}/call", run(key));
        Ok((programs, CommandFacts { node: self.context.node.clone(), run, ..CommandFacts::default() }))
    }

    pub(super) async fn serve_ceph(&mut self, order: &MemberOrder, ceph: &Ceph) -> Result<(), String> {
        let answer = ceph.answer().await;
        let (state, reason) = change::state(&answer, self.has_served());
        let MemberAnswer::Serving(membership) = answer else {
            self.store_osds.stop();
            self.report(order, state, &reason, None);
            self.wait(LOOK).await;
            return Ok(());
        };
        self.note_served(&membership).await?;
        self.configure(ceph, &membership).await?;
        let step =
            order.change.as_ref().map_or(ChangeStep::Done, |ordered| change::next(ordered, &membership));
        match &step {
            ChangeStep::Removed(number) => {
                self.removed = Some(*number);
                self.hindered = None;
            }
            ChangeStep::Wait(reason) => self.hindered = Some(reason.clone()),
            ChangeStep::Remove(_) => {}
            ChangeStep::Done
            | ChangeStep::Add(_)
            | ChangeStep::Promote(_)
            | ChangeStep::Transfer(_)
            | ChangeStep::TakeLead(..) => {
                self.hindered = None;
            }
        }
        self.alarm = self.keep_manager(order, ceph, &membership).await.err();
        self.read_osds(order, ceph, &membership)?;
        let told = self.hindered.clone().or_else(|| self.alarm.clone());
        let told = told.or_else(|| self.store_osds.told().hindered);
        self.report(order, state, &told.unwrap_or(reason), Some(membership.clone()));
        if let ChangeStep::Remove(_) = &step {
            let (programs, facts) = self.calling(&MemberKey::of(order))?;
            let made = ceph.change((&programs, &facts), &step, &membership).await;
            fail::pass(FailPoint::MemberChanged);
            let is_made = made.is_ok();
            self.hindered = made.err().map(|error| format!("cannot {error}"));
            self.wait(if is_made { SOON } else { LOOK }).await;
        } else {
            self.wait(LOOK).await;
        }
        Ok(())
    }

    /// Reads the OSDs of the store and changes them, if that is ordered.
    fn read_osds(&mut self, order: &MemberOrder, ceph: &Ceph, membership: &Membership) -> Result<(), String> {
        let Some(osds) = &order.osds else {
            self.store_osds.stop();
            return Ok(());
        };
        let (programs, facts) = self.calling(&MemberKey::of(order))?;
        let tasks = &self.context.tasks;
        self.store_osds.follow(osds, urls(membership), (ceph, programs, facts), tasks);
        Ok(())
    }

    /// Has clients on this machine use the monitors that there are.
    async fn configure(&self, ceph: &Ceph, membership: &Membership) -> Result<(), String> {
        let (files, urls) = (ceph.files.clone(), urls(membership));
        let write = move || match files.fsid()? {
            Some(fsid) => files.configure(&fsid, &urls),
            None => Ok(()),
        };
        self.on_disk("write ceph.conf", write).await
    }

    /// Starts the manager that belongs beside this monitor, if it does not run. The error is what fits after "member 1 ".
    async fn keep_manager(
        &mut self,
        order: &MemberOrder,
        ceph: &Ceph,
        membership: &Membership,
    ) -> Result<(), String> {
        self.manager.look(self.context.seed);
        match &self.manager {
            _ if !has_manager(&self.ensemble, order.number, membership) => return Ok(()),
            MemberProgram::Running { .. } | MemberProgram::Delegated { .. } => return Ok(()),
            MemberProgram::Ended { due, summary, .. } if *due > tokio::time::Instant::now() => {
                return Err(format!("has a manager that does not run: {summary}"));
            }
            MemberProgram::Stopped | MemberProgram::Ended { .. } => {}
        }
        let started = self.start_manager(&MemberKey::of(order), ceph, &urls(membership)).await;
        started.map_err(|error| format!("has no manager: cannot {error}"))
    }

    async fn start_manager(&mut self, key: &MemberKey, ceph: &Ceph, urls: &[String]) -> Result<(), String> {
        let (programs, facts) = self.calling(key)?;
        let keyring = ceph.files.manager_keyring();
        if !self.on_disk("look for the key of its manager", move || keyring.try_exists()).await? {
            let entity = format!("mgr.{}", ceph.name);
            let rights = ["mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"];
            let words = ["auth", "get-or-create", &entity];
            let words: Vec<&str> = words.into_iter().chain(rights).collect();
            let all: Vec<&String> = urls.iter().collect();
            let made = ceph.administer((&programs, &facts), &all, &words).await;
            let made = made.map_err(|error| format!("have a key made for it: {error}"))?;
            let (files, text) = (ceph.files.clone(), String::from_utf8_lossy(&made).into_owned());
            self.on_disk("keep the key of its manager", move || files.keep_manager(&text)).await?;
        }
        let run = manager_run(key);
        let former = run.clone();
        // One that an agent started which was killed before it could note it would be a second one.
        self.on_disk("look for its manager", move || leftover::kill(&former)).await?;
        let command = ceph.manager_command(&programs.mgr, urls);
        let facts = CommandFacts { node: self.context.node.clone(), run, ..CommandFacts::default() };
        let (owner, tasks) = (&self.context.owner, &self.context.tasks);
        let started = SupervisedProcess::start(&command, &facts, owner, &self.manager_log(), tasks);
        let process = started.map_err(|error| format!("start {}: {error}", programs.mgr))?;
        let mark = process.mark().clone();
        self.manager = MemberProgram::running(key.clone(), process, self.manager.failed());
        self.note(|entry| entry.manager = Some(mark.clone())).await
    }

    /// Takes over the manager that an agent before has started.
    pub(super) fn adopt_manager(&mut self) {
        let Some((key, mark)) =
            self.entry.as_ref().and_then(|entry| Some((entry.noted.key.clone(), entry.manager.clone()?)))
        else {
            return;
        };
        match SupervisedProcess::adopt(&mark, &self.manager_log(), &self.context.tasks) {
            Ok(Some(process)) => self.manager = MemberProgram::running(key, process, 0),
            Ok(None) => {}
            // Before another one is started, whatever has the name of its run is ended.
            Err(error) => {
                tracing::warn!(ensemble = %self.ensemble, "cannot look at process {}: {error}", mark.pid);
            }
        }
    }

    fn manager_log(&self) -> PathBuf {
        self.log.with_extension("mgr.log")
    }

    /// Ends the manager: its key is in the directory of the member.
    pub(super) async fn stop_manager(&mut self) -> Result<(), String> {
        self.manager.stop().await;
        let Some(entry) = self.entry.as_ref().filter(|entry| entry.manager.is_some()) else { return Ok(()) };
        let former = manager_run(&entry.noted.key);
        self.on_disk("look for its manager", move || leftover::kill(&former)).await?;
        self.note(|entry| entry.manager = None).await
    }
}

/// The name of the run of the manager beside a member.
fn manager_run(key: &MemberKey) -> String {
    format!("{}/mgr", run(key))
}

/// The URLs of all monitors.
fn urls(membership: &Membership) -> Vec<String> {
    membership.members.values().filter_map(|member| member.address.clone()).collect()
}
