//! The task of one OSD: looks at its device and its program, makes the next step, and reports.

use std::path::PathBuf;
use std::time::Duration;

use bellwether_api::v1::ensemble::keys::OsdKeysRequest;
use bellwether_core::local::member::{MemberKey, MemberProcess};
use bellwether_core::local::osd::{OsdDevice, OsdSight, OsdStep};
use bellwether_core::records::member::MemberState;
use bellwether_core::records::osd::{OsdOrder, OsdReport, OsdTask as Ordered};
use bellwether_core::records::probes::MAX_REASON_BYTES;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::fail::{self, FailPoint};
use tokio::sync::watch;

use super::context::MemberContext;
use super::devices::Devices;
use super::osd_board::OsdBoard;
use super::osd_calls::OsdCalls;
use super::osd_files::{OsdFiles, OsdNote};
use super::program::{self, MemberProgram};
use crate::apply::output::one_line;
use crate::apply::process::SupervisedProcess;
use crate::apply::{CommandFacts, leftover};
use crate::config::ensembles::EnsembleSettings;
use crate::disk;

/// Time between two looks at an OSD that runs.
const LOOK: Duration = Duration::from_secs(1);

/// Time until something that is missing is looked for again.
const RETRY: Duration = Duration::from_secs(3);

/// What is ordered of one OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OneOsd {
    pub(super) identity: String,
    pub(super) monitors: Vec<String>,
    pub(super) order: OsdOrder,
}

/// The task of one OSD.
pub(super) struct OsdTask {
    pub(super) ensemble: EnsembleName,
    pub(super) number: MemberNumber,
    pub(super) order: watch::Receiver<Option<OneOsd>>,
    pub(super) context: MemberContext,
    pub(super) board: OsdBoard,
    files: OsdFiles,
    note: OsdNote,
    program: MemberProgram,
    log: PathBuf,
}

impl OsdTask {
    pub(super) fn new(
        (ensemble, number): (EnsembleName, MemberNumber),
        identity: &str,
        order: watch::Receiver<Option<OneOsd>>,
        (context, board): (MemberContext, OsdBoard),
    ) -> Self {
        let dir = context.dir.join(format!("{ensemble}.osds")).join(format!("{identity}-{number}"));
        Self {
            log: context.logs.join(format!("ensemble-{ensemble}-osd-{number}.log")),
            files: OsdFiles::within(dir),
            note: OsdNote::default(),
            program: MemberProgram::Stopped,
            ensemble,
            number,
            order,
            context,
            board,
        }
    }

    /// Runs until the agent ends, or the order names the OSD no more. A program that runs goes on.
    pub(super) async fn run(mut self) {
        let token = self.context.tasks.token();
        let work = async {
            while let Err(error) = self.adopt().await {
                self.report(MemberState::Failed, &format!("cannot be looked at: cannot {error}"));
                tokio::time::sleep(RETRY).await;
            }
            while let Some(order) = self.current() {
                if let Err(error) = self.step(&order).await {
                    self.report(MemberState::Failed, &format!("cannot go on: cannot {error}"));
                    self.wait(RETRY).await;
                }
            }
            self.end().await;
        };
        // What is broken off halfway is looked at anew by the next agent.
        tokio::select! {
            () = token.cancelled() => {}
            () = work => return,
        }
        if self.context.stops_on_exit {
            self.program.stop().await;
        }
    }

    fn current(&mut self) -> Option<OneOsd> {
        self.order.borrow_and_update().clone()
    }

    fn key(&self, order: &OneOsd) -> MemberKey {
        MemberKey { identity: order.identity.clone(), number: self.number }
    }

    /// Takes over what an agent before has noted and started.
    async fn adopt(&mut self) -> Result<(), String> {
        let files = self.files.clone();
        self.note = self.on_disk("read what is known of it", move || files.note()).await?;
        let Some(order) = self.current() else { return Ok(()) };
        if let Some(mark) = &self.note.process {
            let adopted = SupervisedProcess::adopt(mark, &self.log, &self.context.tasks);
            let adopted = adopted.map_err(|error| format!("look at process {}: {error}", mark.pid))?;
            if let Some(process) = adopted {
                self.program = MemberProgram::running(self.key(&order), process, 0);
            }
        }
        Ok(())
    }

    /// The order does not name it any more: what is left of it here are its keys.
    async fn end(&mut self) {
        self.board.forget((&self.ensemble, self.number));
        if matches!(self.program.state(), MemberProcess::Running(_)) {
            return;
        }
        let files = self.files.clone();
        if let Err(error) = self.on_disk("remove its files", move || files.remove()).await {
            tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
        }
    }

    async fn step(&mut self, order: &OneOsd) -> Result<(), String> {
        let has_ended = self.program.look(self.context.seed);
        if has_ended {
            self.note(|note| note.process = None).await?;
        }
        let Some(settings) = self.context.settings.clone() else {
            return Err("run it: its agent has no section [ensembles]".to_owned());
        };
        let runs = matches!(self.program.state(), MemberProcess::Running(_));
        let facts = self.facts(order, "call");
        let is_looked_at = !runs && order.order.task == Ordered::Run;
        let (device, path) = match is_looked_at {
            true => devices(&settings, &facts).look(&order.order.serial).await,
            false => (OsdDevice::Absent, None),
        };
        if is_looked_at && self.note.fsid.is_none() {
            self.obtain_keys(order).await?;
        }
        let lack = if runs && self.is_restart_due(order) { self.lack(&settings).await? } else { None };
        let noted = self.note.noted.clone();
        let fsid = self.note.fsid.clone().unwrap_or_default();
        let (device, process) = (own(device, &fsid, &order.order, noted.number), self.program.state());
        let is_restart_due = self.is_restart_due(order) && lack.is_none();
        let sight =
            OsdSight { order: &order.order, fsid: &fsid, device, noted: &noted, process, is_restart_due };
        match sight.plan() {
            OsdStep::Rest(state, reason) => {
                self.report(state, &reason);
                self.wait(RETRY).await;
                Ok(())
            }
            OsdStep::Register => self.register(order, &settings).await,
            OsdStep::Make(number) => self.make(order, &settings, number).await,
            OsdStep::NoteMade => {
                self.board.rescan();
                self.note(|note| note.noted.was_made = true).await
            }
            OsdStep::Start(number) => self.start(order, &settings, (number, path)).await,
            OsdStep::Stop => {
                self.program.stop().await;
                fail::pass(FailPoint::OsdStopped);
                self.note(|note| note.process = None).await
            }
            OsdStep::Serve => {
                self.serve(order, &settings, lack).await;
                Ok(())
            }
        }
    }

    /// Obtains the keys once: it is started with them also while nobody answers.
    async fn obtain_keys(&mut self, order: &OneOsd) -> Result<(), String> {
        let request = OsdKeysRequest { osd: self.number.get(), identity: order.identity.clone() };
        let asked = self.context.control_plane.osd_keys(&self.ensemble, &request).await;
        let keys = asked.map_err(|error| format!("ask for its keys: {error}"))?;
        let (files, fsid) = (self.files.clone(), keys.fsid.clone());
        self.on_disk("keep its keys", move || files.keep_bootstrap(&keys)).await?;
        self.note(|note| note.fsid = Some(fsid)).await
    }

    async fn register(&mut self, order: &OneOsd, settings: &EnsembleSettings) -> Result<(), String> {
        self.report(MemberState::Prepared, "is being registered");
        let facts = self.facts(order, "call");
        let number = self.calls(order, settings, &facts).register(order.order.takes).await?;
        fail::pass(FailPoint::OsdRegistered);
        self.note(|note| note.noted.number = Some(number)).await
    }

    /// Writes to its device, which is looked at once more right before.
    async fn make(&mut self, order: &OneOsd, settings: &EnsembleSettings, number: u32) -> Result<(), String> {
        self.report(MemberState::Prepared, "is being made: its device is written to");
        let facts = self.facts(order, "call");
        let (device, path) = devices(settings, &facts).look(&order.order.serial).await;
        let fsid = self.note.fsid.clone().unwrap_or_default();
        let device = own(device, &fsid, &order.order, Some(number));
        let is_free = match &device {
            OsdDevice::Empty => true,
            OsdDevice::Labelled(label) => label.uuid == order.order.uuid && !label.is_whole,
            OsdDevice::Absent | OsdDevice::Several(_) | OsdDevice::Unknown(_) | OsdDevice::Used(_) => false,
        };
        let Some(path) = path.filter(|_| is_free) else { return Ok(()) };
        let files = self.files.clone();
        self.on_disk("name its device", move || files.link(number, &path)).await?;
        fail::pass(FailPoint::OsdUnmade);
        self.calls(order, settings, &facts).make(number, &fsid).await?;
        fail::pass(FailPoint::OsdMade);
        Ok(())
    }

    async fn start(
        &mut self,
        order: &OneOsd,
        settings: &EnsembleSettings,
        (number, path): (u32, Option<PathBuf>),
    ) -> Result<(), String> {
        let Some(path) = path else { return Ok(()) };
        let Some(address) = self.context.addresses.now().preferred() else {
            return Err("start it: its node has no address that others reach".to_owned());
        };
        let run = self.run_name(order, "osd");
        let former = run.clone();
        // One that an agent started which was killed before it could note it has the device.
        self.on_disk("look for a program of this OSD", move || leftover::kill(&former)).await?;
        let facts = self.facts(order, "call");
        let calls = self.calls(order, settings, &facts);
        calls.prime(&path).await?;
        let (files, device) = (self.files.clone(), path.clone());
        self.on_disk("name its device", move || files.link(number, &device)).await?;
        let command = calls.command(number, &self.context.node, address);
        let facts = CommandFacts { node: self.context.node.clone(), run, ..CommandFacts::default() };
        let (owner, tasks) = (&self.context.owner, &self.context.tasks);
        let started = SupervisedProcess::start(&command, &facts, owner, &self.log, tasks);
        let process = started.map_err(|error| format!("start {}: {error}", settings.ceph.osd))?;
        fail::pass(FailPoint::OsdStarted);
        let mark = process.mark().clone();
        self.program = MemberProgram::running(self.key(order), process, self.program.failed());
        self.note(|note| {
            note.process = Some(mark);
            note.restarted = note.restarted.max(order.order.restart);
        })
        .await
    }

    /// Whether it is ordered to restart, and its program was started for an earlier restart, or for none.
    fn is_restart_due(&self, order: &OneOsd) -> bool {
        order.order.restart > self.note.restarted
    }

    /// What is missing for another start: without it, its program is not stopped.
    async fn lack(&self, settings: &EnsembleSettings) -> Result<Option<String>, String> {
        let (osd, tool) = (settings.ceph.osd.clone(), settings.ceph.bluestore_tool.clone());
        let lack = move || Ok(program::lack(&[("ceph.osd", &osd), ("ceph.bluestore_tool", &tool)], &[]));
        self.on_disk("look for its programs", lack).await
    }

    async fn serve(&mut self, order: &OneOsd, settings: &EnsembleSettings, lack: Option<String>) {
        let facts = self.facts(order, "call");
        let serves = self.calls(order, settings, &facts).serves().await;
        match (self.program.keeps_ending(), serves) {
            (Some(ends), _) => {
                let log = self.log.display();
                let reason =
                    format!("keeps ending: it was started {ends} times in a row; see {log} on its node");
                self.report(MemberState::Failed, &reason);
            }
            (None, Ok(())) => {
                let told = lack.map(|lack| format!("is not restarted: it waits for {lack}"));
                self.report(MemberState::Working, &told.unwrap_or_default());
            }
            (None, Err(reason)) => self.report(MemberState::Starting, &reason),
        }
        self.wait(LOOK).await;
    }

    fn calls<'a>(
        &'a self,
        order: &'a OneOsd,
        settings: &'a EnsembleSettings,
        facts: &'a CommandFacts,
    ) -> OsdCalls<'a> {
        let (uuid, monitors) = (&order.order.uuid, &order.monitors);
        OsdCalls { programs: &settings.ceph, facts, files: &self.files, uuid, monitors }
    }

    /// What a command of it is told.
    fn facts(&self, order: &OneOsd, what: &str) -> CommandFacts {
        let run = self.run_name(order, what);
        CommandFacts { node: self.context.node.clone(), run, ..CommandFacts::default() }
    }

    /// The name of a run of it, by which what an agent before has started is found.
    fn run_name(&self, order: &OneOsd, what: &str) -> String {
        format!("{}/osd-{}/{what}", order.identity, self.number)
    }

    /// Changes what is known of it, on disk first.
    async fn note(&mut self, change: impl FnOnce(&mut OsdNote)) -> Result<(), String> {
        let mut note = self.note.clone();
        change(&mut note);
        let (files, kept) = (self.files.clone(), note.clone());
        self.on_disk("keep what is known of it", move || files.keep(&kept)).await?;
        self.note = note;
        Ok(())
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let done = move || work().map_err(|error| format!("{what}: {error}"));
        disk::off_runtime(&self.context.tasks, done).await
    }

    /// Waits for another order, for the end of its program, or for this long.
    async fn wait(&mut self, long: Duration) {
        // All arms only wait; what ended is seen by the next look.
        tokio::select! {
            changed = self.order.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            () = self.program.ends() => {}
            () = tokio::time::sleep(long) => {}
        }
    }

    fn report(&self, state: MemberState, reason: &str) {
        let Some(order) = self.order.borrow().clone() else { return };
        let report = OsdReport {
            identity: order.identity,
            state,
            reason: one_line(reason, MAX_REASON_BYTES),
            store_number: self.note.noted.number,
            restarted: self.note.restarted,
            since: Timestamp::EPOCH,
        };
        self.board.put((&self.ensemble, self.number), report);
    }
}

fn devices<'a>(settings: &'a EnsembleSettings, facts: &'a CommandFacts) -> Devices<'a> {
    Devices { offered: &settings.devices, bluestore_tool: &settings.ceph.bluestore_tool, facts }
}

/// A device, of which a label that is not whole yet has the store and the number that its OSD was to get: it names only its id.
fn own(device: OsdDevice, fsid: &str, order: &OsdOrder, number: Option<u32>) -> OsdDevice {
    match device {
        OsdDevice::Labelled(mut label) if !label.is_whole && label.uuid == order.uuid => {
            if label.fsid.is_empty() {
                fsid.clone_into(&mut label.fsid);
            }
            label.number = number.unwrap_or(label.number);
            OsdDevice::Labelled(label)
        }
        device @ (OsdDevice::Absent
        | OsdDevice::Several(_)
        | OsdDevice::Unknown(_)
        | OsdDevice::Empty
        | OsdDevice::Labelled(_)
        | OsdDevice::Used(_)) => device,
    }
}
