//! A member that is independent of the others: it is asked how it is, that is reported, and one that its agent does not start itself is started
//! again where it is stopped.

use std::time::Duration;

use bellwether_core::local::delay;
use bellwether_core::local::member::MemberKey;
use bellwether_core::records::member::{MemberOrder, MemberState, MemberTask as OrderedTask};
use bellwether_core::words::counter::MemberNumber;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;
use tokio::sync::watch;

use super::{DELEGATED_LOOK, LOOK, MemberTask};
use crate::apply::CommandFacts;
use crate::apply::process::SupervisedProcess;
use crate::config::recipe::Command;
use crate::ensemble::delegate::{DelegateOrder, DelegateStatus, usable};
use crate::ensemble::independent::Independent;
use crate::ensemble::program::MemberProgram;

/// Longest time for a start or a stop.
const CHANGE: Duration = Duration::from_secs(300);

/// Time that a command has to end after SIGTERM.
const STOP: Duration = Duration::from_secs(10);

/// That a command is run, before it has ended.
fn is_to(what: &str) -> String {
    format!("is to {what}, and it is waited for {}s until that has ended", CHANGE.as_secs())
}

/// Waits until the member is to leave. Cancel safe.
async fn leaves(orders: &mut watch::Receiver<Option<MemberOrder>>) {
    let is_over =
        |order: &Option<MemberOrder>| order.as_ref().is_none_or(|order| order.task == OrderedTask::Leave);
    if orders.wait_for(is_over).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl MemberTask {
    pub(super) async fn serve_independent(
        &mut self,
        order: &MemberOrder,
        independent: &Independent,
    ) -> Result<(), String> {
        if independent.is_delegated() {
            return self.serve_delegated(order, independent).await;
        }
        let settings = self.context.settings.clone();
        let facts = self.independent_facts();
        let asked = match &settings {
            Some(settings) => independent.ask(settings, &facts).await,
            None => independent.connect(&facts).await,
        };
        match asked {
            Ok(()) => self.works(order).await?,
            Err(reason) => self.does_not_serve(order, &reason),
        }
        self.wait(LOOK).await;
        Ok(())
    }

    async fn serve_delegated(
        &mut self,
        order: &MemberOrder,
        independent: &Independent,
    ) -> Result<(), String> {
        let Some(kept) = self.delegated().await? else {
            self.program = MemberProgram::Stopped;
            return Ok(());
        };
        if self.program.is_first() {
            // What answers already was started by somebody else.
            if !self.start_again(order, &kept).await? {
                self.wait(DELEGATED_LOOK).await;
            }
            if let Some(hindered) = self.hindered.clone() {
                self.report(order, self.stopped(), &hindered, None);
            }
            return Ok(());
        }
        let facts = self.independent_facts();
        let directory = self.directory.path.clone();
        let DelegateStatus { state, reason } = kept.status(&directory, &facts).await;
        match state {
            Some(MemberState::Working) => {
                self.program.note_works();
                match independent.connect(&facts).await {
                    Ok(()) => self.works(order).await?,
                    Err(reason) => self.does_not_serve(order, &reason),
                }
            }
            Some(state) => self.report(order, state, &reason, None),
            None => {
                let told = self.hindered.clone().unwrap_or(reason);
                self.report(order, self.stopped(), &told, None);
                if self.start_again(order, &kept).await? {
                    return Ok(());
                }
            }
        }
        self.wait(DELEGATED_LOOK).await;
        Ok(())
    }

    /// The state of one that does not run.
    fn stopped(&self) -> MemberState {
        if self.has_served() { MemberState::Failed } else { MemberState::Starting }
    }

    /// Starts one that is stopped, unless it was started too short a time ago; answers whether it did.
    async fn start_again(&mut self, order: &MemberOrder, kept: &DelegateOrder) -> Result<bool, String> {
        let seed = self.context.seed;
        if !self.program.may_start(|failed| delay::after(failed, seed).to_duration()) {
            return Ok(false);
        }
        self.hindered = None;
        for (what, command) in kept.start(&self.directory.path) {
            self.report(order, self.stopped(), &is_to(&what), None);
            if let Err(error) = self.execute(&what, &command, true).await? {
                self.hindered = Some(format!("cannot {error}"));
                break;
            }
        }
        if self.hindered.is_none() {
            self.program.note_started();
        }
        fail::pass(FailPoint::MemberStarted);
        Ok(true)
    }

    /// Runs a command to its end, or until it is late, or, if that may be, until the member is to leave. The ledger has it meanwhile, so that the
    /// next agent ends it before anything else. The inner error fits after "cannot ".
    async fn execute(
        &mut self,
        what: &str,
        command: &Command,
        may_break_off: bool,
    ) -> Result<Result<(), String>, String> {
        if let Err(refused) = usable(command).await {
            return Ok(Err(format!("{what}: cannot {refused}")));
        }
        let (facts, tasks) = (self.independent_facts(), &self.context.tasks);
        let started =
            SupervisedProcess::start_leaving(command, &facts, &self.context.owner, &self.log, tasks);
        let mut process = match started {
            Ok(process) => process,
            Err(error) => return Ok(Err(format!("{what}: {error}"))),
        };
        let mark = process.mark().clone();
        self.note(|entry| entry.process = Some(mark)).await?;
        let mut orders = self.order.clone();
        // All arms only wait.
        let ended = tokio::select! {
            ended = process.wait() => Ok(ended),
            () = observed::sleep(CHANGE) => Err(format!("{what}: it had not ended after {}s", CHANGE.as_secs())),
            () = leaves(&mut orders), if may_break_off => Err(format!("{what}: the member is to leave")),
        };
        if ended.is_err() {
            process.stop(STOP).await;
        }
        self.note(|entry| entry.process = None).await?;
        Ok(ended.and_then(|ended| match ended.exit_code {
            Some(0) => Ok(()),
            Some(_) | None => {
                let last = ended.tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let separator = if last.is_empty() { "" } else { ": " };
                let how = ended.exit_code.map_or(ended.summary, |code| format!("exit code {code}"));
                Err(format!("{what}: {how}{separator}{last}"))
            }
        }))
    }

    /// Takes over what systemd, or executables of this node, were told to start by an agent before, if anything was.
    pub(super) async fn adopt_delegated(&mut self) -> Result<(), String> {
        // Also where the ledger is lost: it would be left running.
        let Some(kept) = self.delegated().await? else { return Ok(()) };
        let key = MemberKey { identity: kept.identity, number: MemberNumber::new(kept.member) };
        self.end_executed().await?;
        self.program = MemberProgram::delegated(key, false);
        Ok(())
    }

    /// Ends what the agent before had begun to execute.
    async fn end_executed(&mut self) -> Result<(), String> {
        let Some(mark) = self.entry.as_ref().and_then(|entry| entry.process.clone()) else { return Ok(()) };
        let adopted = SupervisedProcess::adopt(&mark, &self.log, &self.context.tasks);
        let adopted = adopted.map_err(|error| format!("look at process {}: {error}", mark.pid))?;
        if let Some(mut process) = adopted {
            process.stop(STOP).await;
        }
        self.note(|entry| entry.process = None).await
    }

    /// Keeps what is to be started; it is started at the next look, which finds it stopped.
    pub(super) async fn hand_to_delegate(
        &mut self,
        order: &MemberOrder,
        independent: &Independent,
    ) -> Result<(), String> {
        let Some(settings) = self.context.settings.clone() else {
            return Err("start it: its agent has no section [ensembles]".to_owned());
        };
        let (data, directory) = (self.directory.data(), self.directory.path.clone());
        let kept = independent.order(&settings, &order.identity, &data);
        self.on_disk("note what is started", move || kept.keep(&directory)).await?;
        fail::pass(FailPoint::MemberStarting);
        self.program = MemberProgram::delegated(MemberKey::of(order), true);
        self.note(|entry| entry.restarted = entry.restarted.max(order.restart)).await
    }

    /// What systemd, or executables of this node, were told to start; `None` if nothing.
    pub(super) async fn delegated(&self) -> Result<Option<DelegateOrder>, String> {
        let directory = self.directory.path.clone();
        self.on_disk("read what was started", move || DelegateOrder::read(&directory)).await
    }

    /// Stops its program, whoever runs it.
    pub(super) async fn stop_program(&mut self) -> Result<(), String> {
        let kept = match &self.program {
            MemberProgram::Delegated { .. } => self.delegated().await?,
            MemberProgram::Stopped | MemberProgram::Running { .. } | MemberProgram::Ended { .. } => None,
        };
        if let Some(kept) = kept {
            self.end_executed().await?;
            let (what, command) = kept.stop(&self.directory.path);
            if let Some(order) = self.current().filter(|_| !self.program.is_first()) {
                self.report(&order, MemberState::Failed, &is_to(&what), None);
            }
            self.execute(&what, &command, false).await??;
            let directory = self.directory.path.clone();
            self.on_disk("note that it is stopped", move || DelegateOrder::forget(&directory)).await?;
        }
        self.program.stop().await;
        Ok(())
    }

    async fn works(&mut self, order: &MemberOrder) -> Result<(), String> {
        if let Some(times) = self.program.keeps_ending() {
            let reason = format!(
                "keeps ending, {times} times in a row: it counts as working again once it has run for longer"
            );
            self.report(order, self.stopped(), &reason, None);
            return Ok(());
        }
        if !self.has_served() {
            self.note(|entry| entry.has_served = true).await?;
        }
        self.hindered = None;
        let reason = self.not_restarted(order).unwrap_or_default();
        self.report(order, MemberState::Working, &reason, None);
        Ok(())
    }

    fn does_not_serve(&mut self, order: &MemberOrder, reason: &str) {
        let (state, words) = match self.has_served() {
            true => (MemberState::Failed, "does not serve any more"),
            false => (MemberState::Starting, "does not serve yet"),
        };
        self.report(order, state, &format!("{words}: {reason}"), None);
    }

    fn independent_facts(&self) -> CommandFacts {
        CommandFacts { node: self.context.node.clone(), ..CommandFacts::default() }
    }
}
