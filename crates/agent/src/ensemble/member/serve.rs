//! A member that runs is asked what it is, that is reported, and it makes the next step of what it is ordered.

use bellwether_core::local::member::change::{self, ChangeStep, MemberAnswer};
use bellwether_core::local::member::replication::{self, ReplicationStep};
use bellwether_core::local::member::told;
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::member::{MemberOrder, MemberState, Membership, Replication, ReplicationOrder};
use bellwether_rt::fail::{self, FailPoint};
use tokio::time::Instant;

use super::{LOOK, MemberTask, SOON};
use crate::ensemble::append_only::{self, AppendOnlyInfo, AppendOnlyStep};
use crate::ensemble::etcd::Etcd;
use crate::ensemble::etcd_calls::hindrance;
use crate::ensemble::redis::{Redis, RedisAnswer};
use crate::ensemble::redis_access::is_held;
use crate::ensemble::redis_info::Tells;
use crate::ensemble::software::Software;

/// Why what is read from a replica is old.
const STALE: &str = "is not connected to the member that it follows";

/// Why a Redis that takes writes again does not count as one that can write.
const REWRITES: &str = "writes its append-only file anew, as its disk was full: what it has there may not be readable before that is done";

/// Why nothing is done with a Redis that a Sentinel watches.
const WATCHED: &str = "is left as it is: a Sentinel watches it, and would name primaries, too; have that one forget it with SENTINEL REMOVE, and stop it";

impl MemberTask {
    /// Asks it what it is, reports that, and makes the next step of what is ordered.
    pub(super) async fn serve(&mut self, order: &MemberOrder) -> Result<(), String> {
        if let EnsembleService::Redis(_) = &order.service {
            self.follow_access(order).await;
        }
        match self.software(order) {
            Some(Software::Etcd(etcd)) => self.serve_etcd(order, &etcd).await,
            Some(Software::Redis(redis)) => self.serve_redis(order, &redis).await,
            Some(Software::Independent(independent)) => self.serve_independent(order, &independent).await,
            Some(Software::Ceph(ceph)) => self.serve_ceph(order, &ceph).await,
            None => Err("ask it: its node has no address".to_owned()),
        }
    }

    async fn serve_etcd(&mut self, order: &MemberOrder, etcd: &Etcd) -> Result<(), String> {
        self.defragmentation.follow(order, etcd);
        let answer = etcd.answer().await;
        let (state, reason) = change::state(&answer, self.has_served());
        let reason = self.defragmentation.told().unwrap_or(reason);
        let MemberAnswer::Serving(membership) = answer else {
            if order.adoption.is_some()
                && let Ok(read) = self.read_outside(order, etcd).await
            {
                let reason = told(&self.ensemble, order.number, &reason);
                self.work_outside(order, (state, reason), &read).await;
                return Ok(());
            }
            self.report(order, state, &reason, None);
            self.wait(LOOK).await;
            return Ok(());
        };
        self.note_served(&membership).await?;
        self.renew(order).await;
        self.snapshots.follow(order, etcd);
        // Without an answer it is as it was.
        if let Ok(alarm) = etcd.alarm().await {
            self.alarm = alarm;
        }
        let step =
            order.change.as_ref().map_or(ChangeStep::Done, |ordered| change::next(ordered, &membership));
        self.note_change(&step);
        let told = self.alarm.clone().or_else(|| self.hindered.clone()).or_else(|| self.not_restarted(order));
        let reason = told.unwrap_or(reason);
        self.report(order, state, &reason, Some(membership));
        if let ChangeStep::Add(_)
        | ChangeStep::Promote(_)
        | ChangeStep::Transfer(_)
        | ChangeStep::TakeLead(..)
        | ChangeStep::Remove(_) = &step
        {
            let made = self.make(order, etcd, &step).await;
            fail::pass(FailPoint::MemberChanged);
            let is_made = made.is_ok();
            self.hindered = made.err().and_then(|error| hindrance(&error));
            self.wait(if is_made { SOON } else { LOOK }).await;
        } else {
            self.wait(LOOK).await;
        }
        Ok(())
    }

    /// Notes what the store knows it as, and the members that it can ask later.
    pub(super) async fn note_served(&mut self, membership: &Membership) -> Result<(), String> {
        let peers: Vec<String> =
            membership.members.values().filter_map(|member| member.address.clone()).collect();
        let id = Some(membership.own_id.clone());
        let is_noted = self
            .entry
            .as_ref()
            .is_some_and(|entry| entry.has_served && entry.peers == peers && entry.store_id == id);
        if is_noted {
            return Ok(());
        }
        self.note(|entry| {
            entry.has_served = true;
            entry.peers.clone_from(&peers);
            entry.store_id.clone_from(&id);
        })
        .await
    }

    async fn serve_redis(&mut self, order: &MemberOrder, redis: &Redis) -> Result<(), String> {
        let (mut is_watched, mut is_old, mut is_rewriting) = (false, false, false);
        let tells = Tells { position: order.tells_position, keys: is_held(order) };
        let (state, reason) = match redis.answer(tells).await {
            RedisAnswer::Serving { said, is_watched: watched, is_stale, file } => {
                let cannot_store = self.is_file_damaged(redis, &file).await;
                (is_watched, is_old) = (watched, is_stale);
                is_rewriting = cannot_store && file.takes_writes();
                let takes_over = matches!(order.replication, Some(ReplicationOrder::TakeOver { .. }));
                self.replication = Some(Replication { takes_over, cannot_store, ..said });
                (MemberState::Working, String::new())
            }
            RedisAnswer::Loads => (MemberState::Starting, "loads its data".to_owned()),
            RedisAnswer::Silent(reason) if self.has_served() => {
                (MemberState::Failed, format!("does not serve any more: {reason}"))
            }
            RedisAnswer::Silent(reason) => (MemberState::Starting, format!("does not serve yet: {reason}")),
        };
        if state != MemberState::Working {
            self.report(order, state, &reason, None);
            self.wait(LOOK).await;
            return Ok(());
        }
        self.keep_redis(order, redis).await?;
        let step = match (&order.replication, &self.replication) {
            (Some(_), _) if is_watched => ReplicationStep::Wait(WATCHED.to_owned()),
            (Some(ordered), Some(said)) => replication::next(ordered, said),
            (None, _) | (_, None) => ReplicationStep::Done,
        };
        match &step {
            ReplicationStep::Done => self.hindered = None,
            ReplicationStep::Wait(reason) => self.hindered = Some(reason.clone()),
            ReplicationStep::Promote
            | ReplicationStep::Detach
            | ReplicationStep::Follow(_)
            | ReplicationStep::HandOver(_) => {}
        }
        self.alarm = self.alarm_of(order, redis, (is_old, is_rewriting));
        let lag = match (&order.replication, &self.replication) {
            _ if self.alarm.is_some() => self.alarm.clone().unwrap_or_default(),
            (Some(ordered), Some(said)) => replication::lag(ordered, said).to_owned(),
            (None, _) | (_, None) => reason,
        };
        let told = self.hindered.clone().or_else(|| self.not_restarted(order));
        let reason = told.or_else(|| self.access.lack.clone()).unwrap_or(lag);
        self.report(order, state, &reason, None);
        if let ReplicationStep::Done | ReplicationStep::Wait(_) = &step {
            self.wait(LOOK).await;
        } else {
            let made = redis.make(&step).await;
            fail::pass(FailPoint::MemberChanged);
            let is_made = made.is_ok();
            self.hindered = made.err().map(|error| format!("cannot {error}"));
            self.wait(if is_made { SOON } else { LOOK }).await;
        }
        Ok(())
    }

    /// Why it does not do its part although it serves.
    fn alarm_of(
        &self,
        order: &MemberOrder,
        redis: &Redis,
        (is_old, is_rewriting): (bool, bool),
    ) -> Option<String> {
        let alarm = match (&order.replication, &self.replication) {
            (Some(ordered), Some(said)) => replication::alarm(ordered, said, redis.min_replicas()),
            (None, _) | (_, None) => None,
        };
        match alarm {
            Some(_) if is_rewriting => Some(REWRITES.to_owned()),
            alarm => alarm.or_else(|| is_old.then(|| STALE.to_owned())),
        }
    }

    /// Whether a Redis could not read what it has written to its disk; then it is to write that anew.
    async fn is_file_damaged(&mut self, redis: &Redis, said: &AppendOnlyInfo) -> bool {
        let directory = self.directory.path.clone();
        if self.append_only.is_unknown() {
            let of = directory.clone();
            let found = self.on_disk("look for damage", move || append_only::is_noted(&of)).await;
            self.append_only.note_found(found.unwrap_or(true));
        }
        let step = self.append_only.next(said, Instant::now());
        let is_damaged = match step {
            AppendOnlyStep::Sound => return false,
            AppendOnlyStep::Damaged | AppendOnlyStep::Rewrite => true,
            AppendOnlyStep::Mended => false,
        };
        let noted = self.on_disk("note damage", move || append_only::note(&directory, is_damaged)).await;
        let asked = if step == AppendOnlyStep::Rewrite { redis.rewrite().await } else { Ok(()) };
        if let Err(error) = noted.and(asked) {
            tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
        }
        is_damaged
    }

    /// Notes that it has data, and gives it certificates and settings that it does not have yet.
    async fn keep_redis(&mut self, order: &MemberOrder, redis: &Redis) -> Result<(), String> {
        if !self.has_served() {
            // From now on a directory without data is one that has lost them.
            let own = self.directory.clone();
            self.on_disk("note that it has data", move || own.note_used()).await?;
            self.note(|entry| entry.has_served = true).await?;
        }
        if self.renew(order).await
            && let Err(error) = redis.take_certificates().await
        {
            tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
        }
        self.keep_access(order, redis).await;
        let settings = Some(order.service.clone());
        if self.applied != settings {
            let asked = redis.ask_replicas().await;
            self.applied = settings.filter(|_| asked.is_ok());
        }
        Ok(())
    }

    pub(super) fn has_served(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.has_served)
    }
}
