//! Who may use a Redis that is a member: that is asked for before its first start and whenever other passwords are ordered, and is given to it while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::v1::ensemble::passwords::MemberPasswordsRequest;
use bellwether_core::local::member::MemberKey;
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::member::MemberOrder;
use bellwether_rt::observed;
use tokio::time::Instant;

use super::{MemberTask, RETRY};
use crate::ensemble::redis::Redis;
use crate::ensemble::redis_access::{AccessFiles, ClientPassword, RedisAccess, is_held};

/// What a member lacks without the latest passwords.
const LACK: &str = "does not have the passwords of its clients that it is to have";

/// Longest time for one answer of the control plane: its Redis is not looked at meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

impl MemberTask {
    /// Obtains what a Redis needs before a start. With what it was given before it starts also while the control plane is not reached.
    pub(super) async fn accessed(&mut self, order: &MemberOrder) -> Result<(), String> {
        let EnsembleService::Redis(_) = &order.service else { return Ok(()) };
        let key = MemberKey::of(order);
        self.read_access(&key).await?;
        let asked = self.ask_access(order).await;
        match (asked, self.access.of(&key)) {
            (Err(error), None) => Err(error),
            (Ok(()) | Err(_), _) => Ok(()),
        }
    }

    /// Writes the settings that a Redis is started with.
    pub(super) async fn write_access(&self, order: &MemberOrder) -> Result<(), String> {
        let access = self.access.of(&MemberKey::of(order)).map(|access| access.ordered(order));
        let access = access.ok_or_else(|| "start it: it does not know its members yet".to_owned())?;
        let files = AccessFiles::within(&self.directory.path);
        self.on_disk("write its users", move || files.write_settings(&access)).await
    }

    /// Obtains what a Redis that runs is to know, if that is something else than it was given last: without it, it cannot be asked either.
    pub(super) async fn follow_access(&mut self, order: &MemberOrder) {
        let known = match self.read_access(&MemberKey::of(order)).await {
            Ok(()) => self.ask_access(order).await,
            failed => failed,
        };
        self.access.lack = known.err().map(|error| format!("{LACK}: cannot {error}"));
    }

    /// Gives a Redis that runs the users that it is to have, if it has others. Nothing else waits for that.
    pub(super) async fn keep_access(&mut self, order: &MemberOrder, redis: &Redis) {
        let key = MemberKey::of(order);
        if let Some(access) = self.access.of(&key).map(|access| access.ordered(order))
            && self.access.taken.as_ref() != Some(&access)
        {
            match redis.take_access(&access).await {
                Ok(()) => self.access.taken = Some(access),
                Err(error) => self.access.lack = Some(format!("{LACK}: cannot {error}")),
            }
        }
    }

    async fn read_access(&mut self, key: &MemberKey) -> Result<(), String> {
        if self.access.of(key).is_some() {
            return Ok(());
        }
        let files = AccessFiles::within(&self.directory.path);
        let found = self.on_disk("read its users", move || files.read()).await?;
        self.access.known = found.map(|access| (key.clone(), access));
        Ok(())
    }

    /// Asks the control plane, if it has others than are ordered. The error is that of the last time.
    async fn ask_access(&mut self, order: &MemberOrder) -> Result<(), String> {
        let key = MemberKey::of(order);
        if self.access.of(&key).is_some_and(|access| access.suffices(order)) {
            self.access.due = None;
            return Ok(());
        }
        if self.access.due.is_some_and(|due| Instant::now() < due)
            && let Some(lack) = &self.access.asked
        {
            return Err(lack.clone());
        }
        let asked = self.request_access(order).await;
        self.access.due = Some(Instant::now() + RETRY);
        self.access.asked = asked.as_ref().err().cloned();
        asked
    }

    async fn request_access(&mut self, order: &MemberOrder) -> Result<(), String> {
        let key = MemberKey::of(order);
        let versions: BTreeMap<String, String> =
            order.passwords.iter().map(|(name, version)| (name.to_string(), version.clone())).collect();
        let request = MemberPasswordsRequest {
            number: order.number.get(),
            identity: order.identity.clone(),
            passwords: versions.clone(),
            peers: order.peers.iter().map(|number| number.get()).collect(),
        };
        let asked = self.context.control_plane.passwords(&self.ensemble, &request);
        let late = |_| Err(format!("no answer within {}s", PATIENCE.as_secs()));
        let asked = observed::timeout(PATIENCE, asked).await.unwrap_or_else(late);
        let given = asked.map_err(|error| format!("ask for its passwords: {error}"))?;
        let clients = versions.into_iter().map(|(name, version)| {
            let sha256 = given.clients.get(&name).cloned();
            let sha256 = sha256.ok_or_else(|| format!("use the answer: it lacks secret {name}"))?;
            Ok::<_, String>((name, ClientPassword { version, sha256 }))
        });
        let (mut peers, mut clients) = (given.peers, clients.collect::<Result<BTreeMap<_, _>, _>>()?);
        if let Some(known) = self.access.of(&key).filter(|_| is_held(order)) {
            peers.extend(known.peers.clone());
            clients = known.clients.clone();
        }
        let access = RedisAccess { number: order.number.get(), own: given.own, peers, clients };
        let (files, kept) = (AccessFiles::within(&self.directory.path), access.clone());
        // On disk before its program has it: a start between the two has the later one.
        self.on_disk("keep its passwords", move || files.keep(&kept)).await?;
        self.access.known = Some((key, access));
        Ok(())
    }
}
