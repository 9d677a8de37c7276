//! A member of a store that was adopted and that does not serve, yet or any more: it reads the store through another member, and changes it if it is
//! ordered to.

use bellwether_core::local::member::change::{self, ChangeStep};
use bellwether_core::local::member::told;
use bellwether_core::records::member::{MemberOrder, MemberState, MemberTask as OrderedTask};
use bellwether_rt::fail::{self, FailPoint};

use super::{LOOK, MemberTask, RETRY, SOON};
use crate::ensemble::etcd::Etcd;
use crate::ensemble::etcd_calls::hindrance;
use crate::ensemble::outside::{Outside, take_lead};
use crate::ensemble::software::Software;

impl MemberTask {
    /// Nothing is to be done on this node: reports that, with what the store that was adopted says, and waits.
    pub(super) async fn rest(&mut self, order: &MemberOrder, (state, reason): (MemberState, String)) {
        let etcd = match self.software(order) {
            Some(Software::Etcd(etcd)) if order.adoption.is_some() && order.task != OrderedTask::Leave => {
                etcd
            }
            _ => {
                self.told(order, state, reason, None);
                return self.wait(RETRY).await;
            }
        };
        let is_new = state == MemberState::Prepared;
        let read = self.read_outside(order, &etcd).await;
        let occupied = read.as_ref().ok().and_then(|read| read.occupied(&etcd)).filter(|_| is_new);
        match (read, occupied) {
            (Ok(read), None) => self.work_outside(order, (state, reason), &read).await,
            (Ok(_), Some(lack)) | (Err(lack), None) if is_new => {
                let reason = told(&self.ensemble, order.number, &format!("waits for {lack}"));
                self.told(order, MemberState::Refused, reason, None);
                self.wait(RETRY).await;
            }
            (Ok(_), Some(_)) | (Err(_), _) => {
                self.told(order, state, reason, None);
                self.wait(RETRY).await;
            }
        }
    }

    /// The store that was adopted, as another member tells of it.
    pub(super) async fn read_outside(&self, order: &MemberOrder, etcd: &Etcd) -> Result<Outside, String> {
        let Some(adoption) = &order.adoption else { return Err("a store that was adopted".to_owned()) };
        let mut peers = self.entry.as_ref().map(|entry| entry.peers.clone()).unwrap_or_default();
        if let OrderedTask::Run(bellwether_core::records::member::MemberStart::Join(initial)) = &order.task {
            peers.extend(initial.values().cloned());
        }
        let own = etcd.peer_url();
        peers.retain(|url| *url != own);
        Outside::read(etcd, adoption, &peers).await
    }

    /// Reports what was read, and makes the next step of what is ordered.
    pub(super) async fn work_outside(
        &mut self,
        order: &MemberOrder,
        (state, reason): (MemberState, String),
        read: &Outside,
    ) {
        let membership = &read.membership;
        self.outside = Some(membership.clone());
        let step = order.change.as_ref().map_or(ChangeStep::Done, |change| change::next(change, membership));
        self.note_change(&step);
        let hindered = self.hindered.as_ref().map(|hindered| told(&self.ensemble, order.number, hindered));
        // Before anything else it has to run.
        let told = hindered.filter(|_| state != MemberState::Failed || reason.is_empty()).unwrap_or(reason);
        self.told(order, state, told, None);
        if let ChangeStep::Done | ChangeStep::Removed(_) | ChangeStep::Wait(_) = &step {
            return self.wait(LOOK).await;
        }
        let made = read.make(&step).await;
        fail::pass(FailPoint::MemberChanged);
        let is_made = made.is_ok();
        self.hindered = made.err().and_then(|error| hindrance(&error));
        self.wait(if is_made { SOON } else { LOOK }).await;
    }

    /// What is to be told of a change: that it was made, or why it waits.
    pub(super) fn note_change(&mut self, step: &ChangeStep) {
        match step {
            ChangeStep::Done => self.hindered = None,
            ChangeStep::Removed(number) => {
                self.removed = Some(*number);
                self.hindered = None;
            }
            ChangeStep::Wait(reason) => self.hindered = Some(reason.clone()),
            ChangeStep::Add(_)
            | ChangeStep::Promote(_)
            | ChangeStep::Transfer(_)
            | ChangeStep::TakeLead(..)
            | ChangeStep::Remove(_) => {}
        }
    }

    /// Makes one step of a change from within the store.
    pub(super) async fn make(
        &self,
        order: &MemberOrder,
        etcd: &Etcd,
        step: &ChangeStep,
    ) -> Result<(), String> {
        let (ChangeStep::TakeLead(from, to), Some(adoption)) = (step, &order.adoption) else {
            return etcd.make(step).await;
        };
        match take_lead(etcd, adoption, (from, to)).await {
            Ok(()) => Ok(()),
            // Without it the others elect one, within a second or two.
            Err(error) => {
                tracing::warn!(ensemble = %self.ensemble, "the leader is removed without a handover: cannot {error}");
                etcd.make(&ChangeStep::Remove(from.clone())).await
            }
        }
    }
}
