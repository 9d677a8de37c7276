//! A member that is independent of the others: it is asked how it is, that is reported, and one that its agent does not start itself is started
//! again where it is stopped.

use bellwether_core::local::delay;
use bellwether_core::local::member::MemberKey;
use bellwether_core::records::member::{MemberOrder, MemberState};
use bellwether_rt::fail::{self, FailPoint};

use super::{DELEGATED_LOOK, LOOK, MemberTask};
use crate::apply::CommandFacts;
use crate::ensemble::delegate::{DelegateOrder, DelegateStatus};
use crate::ensemble::independent::Independent;
use crate::ensemble::program::MemberProgram;

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
            None => self.start_again(order, &kept, &reason).await,
        }
        self.wait(DELEGATED_LOOK).await;
        Ok(())
    }

    /// Starts one that is stopped, unless it was started too short a time ago.
    async fn start_again(&mut self, order: &MemberOrder, kept: &DelegateOrder, reason: &str) {
        let state = if self.has_served() { MemberState::Failed } else { MemberState::Starting };
        let told = self.hindered.clone().unwrap_or_else(|| reason.to_owned());
        self.report(order, state, &told, None);
        let seed = self.context.seed;
        if !self.program.may_start(|failed| delay::after(failed, seed).to_duration()) {
            return;
        }
        let directory = self.directory.path.clone();
        let started = kept.start(&directory, &self.independent_facts()).await;
        fail::pass(FailPoint::MemberStarted);
        self.hindered = started.err().map(|error| format!("cannot {error}"));
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
        self.program = MemberProgram::delegated(MemberKey::of(order));
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
            let directory = self.directory.path.clone();
            kept.stop(&directory, &self.independent_facts()).await?;
            self.on_disk("note that it is stopped", move || DelegateOrder::forget(&directory)).await?;
        }
        self.program.stop().await;
        Ok(())
    }

    async fn works(&mut self, order: &MemberOrder) -> Result<(), String> {
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
