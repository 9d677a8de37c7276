//! Leadership: which server decides.
//!
//! - **Who leads.** The server that holds the lease-bound key `leader` ([`LeaseKey`]). Every server tries to, all the time.
//! - **The term.** The create revision of the key plus the installation's term base: each leadership has a greater term than
//!   every one before it, also after the records were moved to another store. Deciders' commits compare the key's create
//!   revision, so that a commit decided under an earlier term fails.
//! - **Winning.** [`Leadership::won`] returns the term. The winner decides only once its view of the store contains
//!   everything that was committed before.
//! - **Losing.** The lease was not renewed: the leader stops by its own clock before another server can win. A commit that
//!   fails on the compare ends the term at once ([`Leadership::give_up`]), and so does a key that was deleted: the key is then
//!   acquired anew, by this server or another.
//! - **Handing over.** A server that stops releases the key and waits, briefly, until another server leads.
//! - **Stepping down.** A server that is asked to releases the key, stays a server, and does not try to lead until another
//!   server leads, or none did in time.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::server::Leader;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::ServerName;
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::installation::Installation;
use crate::lease_key::{Abstention, LeaseKey};
use crate::records::key_text;

/// Longest wait of a server that stops until another one leads, which takes the other one a single commit.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(1);

/// Longest wait of a server that steps down until another one leads.
const STEP_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// Why a server did not step down. The message fits after "cannot step down: ".
#[derive(Debug, thiserror::Error)]
pub enum StepDownError {
    /// It does not lead.
    #[error("{}", other_leader(leader.as_ref()))]
    NotLeading {
        /// The server that leads, with its address.
        leader: Option<(ServerName, String)>,
    },
    /// There is no other server.
    #[error("no other server is live")]
    Alone,
    /// No other server leads.
    #[error("no other server took over within {} s; this one tries to lead again", STEP_DOWN_WITHIN.as_secs())]
    NobodyTookOver,
}

fn other_leader(leader: Option<&(ServerName, String)>) -> String {
    match leader {
        Some((name, address)) => format!("this server does not lead; {name} does, at {address}"),
        None => "no server leads".to_owned(),
    }
}

/// Whether this server leads, and in which term. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leadership {
    term: watch::Receiver<Option<Term>>,
    name: ServerName,
    installation: Installation,
    /// The create revision of the key of a term that is over.
    given_up: watch::Sender<Option<Revision>>,
    abstains: watch::Sender<Abstention>,
    /// Cancelled when this server no longer tries to lead.
    candidacy: CancellationToken,
}

impl Leadership {
    /// Starts to try for the leadership.
    #[must_use]
    pub fn start(
        config: &Config,
        store: &Store,
        installation: Installation,
        clock: &Clock,
        tasks: &Tasks,
    ) -> Self {
        let (name, clock) = (config.name.clone(), clock.clone());
        let record = move || GlobalRecord::Leader(Leader { server: name.clone(), since: clock.now() });
        let (give_up, given_up) = watch::channel(None);
        let (abstain, abstains) = watch::channel(Abstention::default());
        let key = LeaseKey {
            store: store.clone(),
            key: key_text::LEADER.into(),
            purpose: "leadership",
            has_own_store: config.etcd.is_none(),
            record: Arc::new(record),
            given_up,
            abstains,
            confirms_key: config.rules.confirms_keys,
        };
        let candidacy = tasks.child().token();
        let (holding, held) = watch::channel(None);
        tasks.spawn("leader", key.run(holding, candidacy.clone()));
        let (terms, term) = watch::channel(None);
        tasks.spawn("term", publish_terms(held, terms, installation.clone()));
        Self {
            term,
            name: config.name.clone(),
            installation,
            given_up: give_up,
            abstains: abstain,
            candidacy,
        }
    }

    /// The term, while this server leads.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        *self.term.borrow()
    }

    /// Whether this server leads in this term.
    #[must_use]
    pub fn is_in(&self, term: Term) -> bool {
        self.term() == Some(term)
    }

    /// Waits until this server leads, and returns the term. None on `stop`.
    pub async fn won(&mut self, stop: &CancellationToken) -> Option<Term> {
        // Both arms only wait; the value is tested by wait_for.
        tokio::select! {
            () = stop.cancelled() => None,
            term = self.term.wait_for(Option::is_some) => term.ok().and_then(|term| *term),
        }
    }

    /// Ends `term`, which a commit has shown to be over, and no other: this server then tries to lead in another one.
    pub fn give_up(&self, term: Term) {
        self.given_up.send_replace(Some(self.installation.acquired_at(term)));
    }

    /// Waits until `term` is over, or for `stop`: a commit may show the loss before the key does.
    pub async fn lost(&mut self, term: Term, stop: &CancellationToken) {
        // Both arms only wait.
        tokio::select! {
            () = stop.cancelled() => {}
            over = self.term.wait_for(|present| *present != Some(term)) => drop(over),
        }
    }

    /// Waits until the leadership is won or lost. Cancel safe.
    pub async fn changed(&mut self) {
        // Without a sender the server is stopping: there is nothing more to wait for.
        if self.term.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Releases the leadership and leaves it to another server, whose name it returns. This server tries to lead again once
    /// another one does, or none did in time, also if the future is dropped.
    ///
    /// # Errors
    /// [`StepDownError`].
    pub async fn step_down(
        &self,
        mut worlds: watch::Receiver<Arc<World>>,
    ) -> Result<ServerName, StepDownError> {
        let Some(term) = self.term() else {
            return Err(StepDownError::NotLeading { leader: self.other_leader(&worlds.borrow()) });
        };
        if !worlds.borrow().servers.keys().any(|server| *server != self.name) {
            return Err(StepDownError::Alone);
        }
        let _candidate_again = CandidateAgain(&self.abstains);
        self.abstains.send_modify(|abstains| abstains.asked = true);
        // A world may still show the leader before this one.
        let acquired = self.installation.acquired_at(term);
        let successor = |world: &World| {
            let leader = world.leader.as_ref().filter(|leader| leader.revision > acquired)?;
            (leader.value.server != self.name).then(|| leader.value.server.clone())
        };
        let succeeded = worlds.wait_for(|world| successor(world).is_some());
        let world = match tokio::time::timeout(STEP_DOWN_WITHIN, succeeded).await {
            Ok(Ok(world)) => world.clone(),
            Ok(Err(_)) | Err(_) => return Err(StepDownError::NobodyTookOver),
        };
        successor(&world).ok_or(StepDownError::NobodyTookOver)
    }

    /// Has this server lead only while its time is right.
    pub(crate) fn take_part(&self, takes_part: bool) {
        self.abstains
            .send_if_modified(|abstains| std::mem::replace(&mut abstains.clock, !takes_part) == takes_part);
    }

    /// The server that leads as the world shows it, if it is another one.
    fn other_leader(&self, world: &World) -> Option<(ServerName, String)> {
        let name = &world.leader.as_ref()?.value.server;
        let address = world.servers.get(name).map(|kept| kept.value.address.clone())?;
        (*name != self.name).then(|| (name.clone(), address))
    }

    /// Releases the leadership, if this server has it, and waits until another server leads: that one then decides before
    /// the agents of this server connect to it.
    pub async fn hand_over(&self, mut worlds: watch::Receiver<Arc<World>>) {
        let was_leading = self.term().is_some();
        self.candidacy.cancel();
        let has_others = worlds.borrow().servers.keys().any(|server| *server != self.name);
        if !was_leading || !has_others {
            return;
        }
        let another_leads =
            |world: &Arc<World>| world.leader.as_ref().is_some_and(|leader| leader.value.server != self.name);
        match tokio::time::timeout(HAND_OVER_WITHIN, worlds.wait_for(another_leads)).await {
            Ok(Ok(_)) => tracing::info!("another server leads"),
            Ok(Err(_)) | Err(_) => tracing::info!("stopping before another server leads"),
        }
    }
}

/// Ends the abstention of a server that stepped down.
struct CandidateAgain<'a>(&'a watch::Sender<Abstention>);

impl Drop for CandidateAgain<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|abstains| abstains.asked = false);
    }
}

/// Publishes the term of each leadership, until the key is no longer tried for.
async fn publish_terms(
    mut held: watch::Receiver<Option<Revision>>,
    terms: watch::Sender<Option<Term>>,
    installation: Installation,
) {
    while held.changed().await.is_ok() {
        let revision = *held.borrow_and_update();
        terms.send_replace(revision.map(|revision| installation.term(revision)));
    }
}
