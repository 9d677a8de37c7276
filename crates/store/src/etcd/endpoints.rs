//! The members of an etcd as this process reaches them. Owns which one is asked, how long, and whether to ask another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::fault::CallFault;
use super::settings::EtcdSettings;
use super::switches::Switches;
use crate::error::OpenError;

/// Pause before all members are asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Interval of keep-alive pings on a connection in use. etcd closes connections that ping more than every 5 s.
const PING: Duration = Duration::from_secs(10);

/// How long a member may take to renew a lease or report its status: of a lease of 5 s that is renewed every 1.5 s, enough
/// is left to ask another.
const PATIENCE: Duration = Duration::from_secs(1);

/// Flow-control window of a connection, in bytes, so that a watch that nobody reads does not delay others.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Flow-control window of one call or watch, in bytes.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// One member, over two connections: large pages do not delay watches.
#[derive(Debug, Clone)]
pub(super) struct EtcdMember {
    /// Its URL.
    pub(super) address: String,
    pub(super) calls: Channel,
    pub(super) streams: Channel,
}

/// The members, one of them the current.
#[derive(Debug)]
pub(super) struct Endpoints {
    members: Vec<EtcdMember>,
    current: AtomicUsize,
    switches: Switches,
    deadline: Duration,
}

impl Endpoints {
    /// The members; connects to none yet.
    pub(super) async fn new(settings: &EtcdSettings) -> Result<Self, OpenError> {
        let tls = tls(settings).await?;
        let mut members = Vec::new();
        for address in &settings.endpoints {
            let refuse = |reason: String| OpenError::Setting { setting: "endpoints", reason };
            let is_secret = address.starts_with("https://");
            if !is_secret && !address.starts_with("http://") {
                return Err(refuse(format!(
                    "{address:?} is not a URL of etcd; use one like https://host:2379"
                )));
            }
            let mut endpoint = Endpoint::from_shared(address.clone())
                .map_err(|error| {
                    refuse(format!(
                        "{address:?} is not a URL of etcd ({error}); use one like https://host:2379"
                    ))
                })?
                .connect_timeout(settings.deadline / 2)
                .http2_keep_alive_interval(PING)
                .keep_alive_timeout(settings.deadline)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
            if is_secret {
                let refuse = |error| OpenError::Setting {
                    setting: "certificates",
                    reason: format!(
                        "they cannot be used ({error}); check that the files hold PEM, and the key that of the certificate"
                    ),
                };
                endpoint = endpoint.tls_config(tls.clone()).map_err(refuse)?;
            }
            let (calls, streams) = (endpoint.connect_lazy(), endpoint.connect_lazy());
            members.push(EtcdMember { address: address.clone(), calls, streams });
        }
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
            switches: Switches::default(),
            deadline: settings.deadline,
        })
    }

    /// How long a call may take.
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// All of them.
    pub(super) fn members(&self) -> &[EtcdMember] {
        &self.members
    }

    /// The member to ask, and its index.
    pub(super) fn current(&self) -> (usize, &EtcdMember) {
        let place = self.current.load(Ordering::Relaxed);
        match self.members.get(place) {
            Some(member) => (place, member),
            None => unreachable!("there is at least one endpoint, and places are those of endpoints"),
        }
    }

    /// Switches to another member than the one at `place`, unless somebody has done so already.
    pub(super) fn move_on(&self, place: usize) {
        let next = place.saturating_add(1).checked_rem(self.members.len()).unwrap_or_default();
        let moved = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
        if let (Ok(_), Some(from), Some(to)) = (moved, self.members.get(place), self.members.get(next))
            && place != next
        {
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
            for _ in &self.members {
                let (place, member) = self.current();
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
                self.move_on(place);
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
            for _ in &self.members {
                let (place, member) = self.current();
                last = match tokio::time::timeout_at(until, call(member.calls.clone())).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(status)) => CallFault::from(status).at(&member.address),
                    Err(_) => CallFault::silent(self.deadline).at(&member.address),
                };
                if last.may_pass() {
                    self.move_on(place);
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

/// TLS settings. Files are read once: a new certificate needs a new store.
async fn tls(settings: &EtcdSettings) -> Result<ClientTlsConfig, OpenError> {
    let mut tls = ClientTlsConfig::new();
    match &settings.ca_file {
        Some(file) => tls = tls.ca_certificate(Certificate::from_pem(read(file).await?)),
        None => tls = tls.with_native_roots(),
    }
    if let Some(identity) = &settings.identity {
        let (cert, key) = (read(&identity.cert_file).await?, read(&identity.key_file).await?);
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    Ok(tls)
}

async fn read(file: &std::path::Path) -> Result<Vec<u8>, OpenError> {
    let io = |source| OpenError::Io { path: file.to_owned(), source };
    tokio::fs::read(file).await.map_err(io)
}
