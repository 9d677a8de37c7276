//! A member that no order names: it is left as it is, and told of for as long as anything of it is here.

use std::net::IpAddr;
use std::time::Duration;

use bellwether_core::local::member::{MemberKey, MemberProcess};
use bellwether_core::records::member::MemberState;
use bellwether_core::records::unrecorded::UnrecordedMember;

use super::MemberTask;
use crate::ensemble::program::MemberProgram;

/// Time between two looks at whether anything of it is still here.
const LOOK: Duration = Duration::from_secs(10);

impl MemberTask {
    /// The order does not name the member any more.
    pub(super) async fn end(&mut self) {
        self.withdraw();
        if self.entry.as_ref().is_some_and(|entry| entry.noted.has_left) {
            if let Err(error) = self.context.ledger.forget(&self.ensemble).await {
                tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
            }
            *self = Self::new(self.ensemble.clone(), self.order.clone(), None, self.context.clone());
        }
        self.context.reports.send_if_modified(|reports| reports.remove(&self.ensemble).is_some());
    }

    /// There is an order, the first since the agent was started.
    pub(super) async fn begin(&mut self) {
        self.tell_unrecorded(None);
        if self.program.state() == MemberProcess::Stopped {
            self.end_unknown().await;
        }
    }

    /// Tells of it until there is an order, or something of it may have changed; `false` once there will be none.
    pub(super) async fn rest_unrecorded(&mut self) -> bool {
        self.program.look(self.context.seed);
        let seen = self.unrecorded().await;
        self.tell_unrecorded(seen);
        // All arms only wait.
        let goes_on = tokio::select! {
            changed = self.order.changed() => changed.is_ok(),
            () = self.program.ends() => true,
            () = tokio::time::sleep(LOOK), if self.entry.is_some() => true,
        };
        if self.order.borrow().is_some() {
            self.tell_unrecorded(None);
        }
        goes_on
    }

    /// What is here of it: its program, or its directory, in which its data are.
    async fn unrecorded(&mut self) -> Option<UnrecordedMember> {
        let (key, address) = self.known()?;
        if let MemberProgram::Delegated { .. } = self.program
            && self.delegated().await.is_ok_and(|kept| kept.is_none())
        {
            self.program = MemberProgram::Stopped;
        }
        let runs = matches!(self.program.state(), MemberProcess::Running(_));
        let path = self.directory.path.clone();
        let is_here = match self.on_disk("look for its directory", move || path.try_exists()).await {
            Ok(is_here) => is_here,
            Err(error) => {
                tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
                true
            }
        };
        (runs || is_here).then(|| UnrecordedMember::seen(key.number, key.identity, runs, address))
    }

    /// Which member the ledger has, and where others reach it.
    fn known(&self) -> Option<(MemberKey, IpAddr)> {
        self.entry.as_ref().map(|entry| (entry.noted.key.clone(), entry.address))
    }

    /// Tells of it what is known now; that it was looked at as well.
    pub(super) fn tell_unrecorded(&self, seen: Option<UnrecordedMember>) {
        self.context.unrecorded.send_if_modified(|all| {
            let before = all.insert(self.ensemble.clone(), seen.clone());
            before != Some(seen)
        });
    }

    /// Tells why it cannot be looked at: as it may run, nothing is said of it that is not known.
    pub(super) fn cannot_look(&mut self, why: &str) {
        if let Some(order) = self.current() {
            return self.report(&order, MemberState::Failed, &format!("cannot be looked at{why}"), None);
        }
        let may_run = self.known();
        let may_run =
            may_run.map(|(key, address)| UnrecordedMember::seen(key.number, key.identity, true, address));
        self.tell_unrecorded(may_run);
    }
}
