//! The members of an etcd as this process reaches them. Owns which one is asked, how long, and whether to ask another.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use super::connector::{Connector, EtcdMember};
use super::fault::CallFault;
use super::settings::EtcdSettings;
use super::switches::Switches;
use crate::error::OpenError;

/// Pause before all members are asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a member may take to renew a lease or report its status: of a lease of 5 s that is renewed every 1.5 s, enough
/// is left to ask another.
const PATIENCE: Duration = Duration::from_secs(1);

/// The members, one of them the current.
#[derive(Debug)]
pub(super) struct Endpoints {
    connector: Connector,
    /// URLs of those that the configuration names, which are always used.
    configured: Vec<String>,
    list: RwLock<MemberList>,
    switches: Switches,
    deadline: Duration,
}

/// Those that are used now, at least one.
#[derive(Debug)]
struct MemberList {
    members: Arc<[EtcdMember]>,
    /// Index of the one that is asked.
    current: usize,
    /// How many there have ever been.
    places: usize,
}

impl Endpoints {
    /// The members; connects to none yet.
    pub(super) async fn new(settings: &EtcdSettings) -> Result<Self, OpenError> {
        let connector = Connector::new(settings).await?;
        let all = settings.endpoints.iter().enumerate();
        let members: Arc<[EtcdMember]> =
            all.map(|(place, address)| connector.member(address, place)).collect::<Result<_, _>>()?;
        let places = members.len();
        Ok(Self {
            connector,
            configured: settings.endpoints.clone(),
            list: RwLock::new(MemberList { members, current: 0, places }),
            switches: Switches::default(),
            deadline: settings.deadline,
        })
    }

    /// How long a call may take.
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// All of them.
    pub(super) fn members(&self) -> Arc<[EtcdMember]> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).members.clone()
    }

    /// URLs of all of them.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.members().iter().map(|member| member.address.clone()).collect()
    }

    /// URLs of those that the configuration names.
    pub(super) fn configured(&self) -> &[String] {
        &self.configured
    }

    /// Whether one with this URL is used.
    pub(super) fn has(&self, url: &str) -> bool {
        self.members().iter().any(|member| member.address == url)
    }

    /// Whether one with this URL may be used beside the configured ones: without TLS only if one of them has none.
    pub(super) fn permits(&self, url: &str) -> bool {
        let is_secret = |url: &str| url.starts_with("https://");
        is_secret(url) || self.configured.iter().any(|configured| !is_secret(configured))
    }

    /// A member with this URL that is not used yet; `None` if it is no URL of one.
    pub(super) fn candidate(&self, url: &str) -> Option<EtcdMember> {
        self.connector.member(url, usize::MAX).ok()
    }

    /// Uses those with these URLs, and the configured ones, from now on; answers whether they are others than before.
    pub(super) fn learn(&self, urls: &[String]) -> bool {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |url: &String| urls.contains(url) || self.configured.contains(url);
        let mut members: Vec<EtcdMember> =
            list.members.iter().filter(|member| is_wanted(&member.address)).cloned().collect();
        let mut places = list.places;
        for url in urls {
            if members.iter().all(|member| member.address != *url)
                && let Ok(member) = self.connector.member(url, places)
            {
                places = places.saturating_add(1);
                members.push(member);
            }
        }
        let same =
            members.iter().map(|member| member.place).eq(list.members.iter().map(|member| member.place));
        if same {
            return false;
        }
        let asked = list.members.get(list.current).map(|member| member.place);
        let current = members.iter().position(|member| Some(member.place) == asked);
        // A configured one may be gone for good.
        let learnt = || members.iter().position(|member| urls.contains(&member.address));
        let current = current.or_else(learnt).unwrap_or_default();
        *list = MemberList { members: members.into(), current, places };
        true
    }

    /// The member to ask.
    pub(super) fn current(&self) -> EtcdMember {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        match list.members.get(list.current) {
            Some(member) => member.clone(),
            None => unreachable!("there is at least one endpoint, and the current one is one of them"),
        }
    }

    /// Switches to another member than the one at `place`, unless somebody has done so already.
    pub(super) fn move_on(&self, place: usize) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let next = list.current.saturating_add(1).checked_rem(list.members.len()).unwrap_or_default();
        let (from, to) = (list.members.get(list.current).cloned(), list.members.get(next).cloned());
        if let (Some(from), Some(to)) = (from.filter(|from| from.place == place), to)
            && to.place != place
        {
            list.current = next;
            drop(list);
            self.switches.happened(&from.address, &to.address);
        }
    }

    /// How long one member may take for a small call that another could answer as well.
    pub(super) fn patience(&self) -> Duration {
        PATIENCE.min(self.deadline / 2)
    }

    /// Makes an idempotent call: to one member after the other until the deadline, each
    /// for half of it.
    pub(super) async fn repeat<T, F>(&self, call: impl Fn(Channel) -> F) -> Result<T, CallFault>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.repeat_each(self.deadline / 2, call).await
    }

    /// The same, with `most` for each member.
    pub(super) async fn repeat_each<T, F>(
        &self,
        most: Duration,
        call: impl Fn(Channel) -> F,
    ) -> Result<T, CallFault>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let until = Instant::now() + self.deadline;
        let (mut lost, mut is_there) = (None, false);
        loop {
            let mut last = CallFault::NotBegun("nothing was asked".to_owned());
            for _ in self.members().iter() {
                let member = self.current();
                let left = until.saturating_duration_since(Instant::now());
                let answer = tokio::time::timeout(most.min(left), call(member.calls.clone()));
                last = match answer.await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(status)) => CallFault::from(status).at(&member.address),
                    Err(_) => CallFault::silent(most).at(&member.address),
                };
                if !last.may_pass() {
                    return Err(last);
                }
                self.move_on(member.place);
                is_there |= !matches!(last, CallFault::NotBegun(_));
                if matches!(last, CallFault::Lost(_)) {
                    lost = Some(last.clone());
                }
                if Instant::now() >= until {
                    break;
                }
            }
            // No member answers, or the time is up. What was lost once may have been made.
            if !is_there || Instant::now() >= until {
                return Err(lost.unwrap_or(last));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Makes a call that must not be repeated: to another member only if the one before certainly did not begin it.
    pub(super) async fn once<T, F>(&self, call: impl Fn(Channel) -> F) -> Result<T, CallFault>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let until = Instant::now() + self.deadline;
        loop {
            let (mut last, mut is_there) = (CallFault::NotBegun("nothing was asked".to_owned()), false);
            for _ in self.members().iter() {
                let member = self.current();
                last = match tokio::time::timeout_at(until, call(member.calls.clone())).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(status)) => CallFault::from(status).at(&member.address),
                    Err(_) => CallFault::silent(self.deadline).at(&member.address),
                };
                if last.may_pass() {
                    self.move_on(member.place);
                }
                if !last.is_unbegun() {
                    return Err(last);
                }
                is_there |= last == CallFault::NoLeader;
            }
            // No member answers, or the time is up. Otherwise a new leader is being elected.
            if !is_there || Instant::now() + PAUSE >= until {
                return Err(last);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
