//! Which services this machine offers: those of the configuration for as long as the agent runs, and those that programs
//! registered until somebody deregisters them, over restarts. One task changes them, on disk before anybody is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::local::ttl::{TtlCheck, TtlUpdate};
use bellwether_core::records::registrations::MAX_INSTANCES;
use bellwether_core::words::name::{CheckName, InstanceName};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use super::instance::InstanceTask;
use super::published::{InstanceKey, PublishedInstances};
use super::request::{RegistryRefusal, RegistryRequest, RegistryRequests};
use crate::catalogue::CatalogueSnapshot;
use crate::config::service::Service;
use crate::ledger::{Ledger, MetNeeds, RegisteredService};

/// Asks that may wait for the disk; whoever comes when it is full waits, up to [`PATIENCE`].
const QUEUE: usize = 64;

/// How long a program waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes in what programs ask. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    asks: RegistryRequests,
    /// Every definition, with where it was said.
    pub(crate) known: watch::Receiver<BTreeMap<InstanceKey, (ServiceDefinition, String)>>,
}

/// What the registry works with.
pub(crate) struct RegistryContext {
    pub(crate) configured: Vec<(ServiceDefinition, Service, String)>,
    pub(crate) registered: Vec<RegisteredService>,
    pub(crate) met: MetNeeds,
    pub(crate) ledger: Ledger,
    pub(crate) board: PublishedInstances,
    /// What others offer, and whether anybody here wants to know.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) wants_catalogue: Arc<watch::Sender<bool>>,
    pub(crate) clock: Clock,
    pub(crate) node: String,
    pub(crate) seed: u64,
    pub(crate) tasks: Tasks,
}

impl Registry {
    /// Starts everything that is configured or was registered, and the one task that changes it.
    pub(crate) fn start(context: RegistryContext) -> Self {
        let (asks, queue) = mpsc::channel(QUEUE);
        let known = watch::Sender::new(BTreeMap::new());
        let registry = Self { asks: asks.clone(), known: known.subscribe() };
        let tasks = context.tasks.clone();
        let work = RegistryTask { context, running: BTreeMap::new(), registered: Vec::new(), known, asks };
        tasks.spawn("services", work.run(queue));
        registry
    }

    pub(crate) async fn register(
        &self,
        definition: ServiceDefinition,
        pid: Option<i32>,
    ) -> Result<(), RegistryRefusal> {
        self.ask(RegistryRequest::Register(Box::new(definition), pid)).await
    }

    pub(crate) async fn deregister(&self, id: InstanceName) -> Result<(), RegistryRefusal> {
        self.ask(RegistryRequest::Deregister(id)).await
    }

    pub(crate) async fn pulse(
        &self,
        id: InstanceName,
        check: Option<CheckName>,
        (pulse, note): (TtlUpdate, String),
    ) -> Result<(), RegistryRefusal> {
        self.ask(RegistryRequest::Pulse(id, check, pulse, note)).await
    }

    async fn ask(&self, ask: RegistryRequest) -> Result<(), RegistryRefusal> {
        let (answer, answered) = oneshot::channel();
        let ending = || (Code::Store, "take that in: the agent is ending".to_owned());
        let asked = async {
            self.asks.send((ask, answer)).await.map_err(|_| ending())?;
            answered.await.map_err(|_| ending())?
        };
        let late = |_| (Code::Timeout, format!("take that in within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// An instance at work.
struct RunningInstance {
    service: Arc<Service>,
    level: Tasks,
    heard: watch::Sender<BTreeMap<CheckName, TtlCheck>>,
    configured: bool,
}

struct RegistryTask {
    context: RegistryContext,
    running: BTreeMap<InstanceKey, RunningInstance>,
    registered: Vec<RegisteredService>,
    known: watch::Sender<BTreeMap<InstanceKey, (ServiceDefinition, String)>>,
    asks: RegistryRequests,
}

impl RegistryTask {
    async fn run(
        mut self,
        mut queue: mpsc::Receiver<(RegistryRequest, oneshot::Sender<Result<(), RegistryRefusal>>)>,
    ) {
        for (definition, service, source) in std::mem::take(&mut self.context.configured) {
            self.begin(definition, service, (source, true));
        }
        for registered in std::mem::take(&mut self.context.registered) {
            // What the configuration has come to say meanwhile counts.
            match Service::of(&registered.definition) {
                Ok(service) if !self.running.contains_key(&service.key()) => {
                    self.begin(registered.definition.clone(), service, (REGISTERED.to_owned(), false));
                    self.registered.push(registered);
                }
                Ok(_) => {}
                Err(wrong) => tracing::warn!(field = wrong.field, reason = wrong.reason, "forgot a service"),
            }
        }
        // What is offered no more has nothing to be remembered.
        let (running, met) = (&self.running, &mut self.context.met);
        met.retain(|key, _| running.contains_key(key));
        let token = self.context.tasks.token();
        loop {
            // Both are cancel safe; what was not taken out of the queue is answered by its end.
            let (ask, answer) = tokio::select! {
                () = token.cancelled() => return,
                asked = queue.recv() => match asked {
                    Some(asked) => asked,
                    None => return,
                },
            };
            let done = match ask {
                RegistryRequest::Register(definition, pid) => self.register(*definition, pid).await,
                RegistryRequest::Deregister(id) => self.deregister(&id).await,
                RegistryRequest::Met(service) => self.met(&service).await,
                RegistryRequest::Pulse(id, check, pulse, note) => {
                    self.pulse(&id, check.as_ref(), (pulse, note))
                }
            };
            if answer.send(done).is_err() {
                tracing::debug!("whoever asked about a service did not wait for the answer");
            }
        }
    }

    fn begin(
        &mut self,
        definition: ServiceDefinition,
        service: Service,
        (source, configured): (String, bool),
    ) {
        let (service, level) = (Arc::new(service), self.context.tasks.child());
        if !service.needs.is_empty() {
            self.context.wants_catalogue.send_if_modified(|wants| !std::mem::replace(wants, true));
        }
        let listening = service.listening.iter();
        let listening = listening.map(|(name, lasts)| (name.clone(), TtlCheck::new(*lasts))).collect();
        let (heard, hears) = watch::channel(listening);
        let instance = InstanceTask {
            service: service.clone(),
            heard: hears,
            snapshot: self.context.snapshot.clone(),
            met: self.context.met.get(&service.key()) == Some(&service.needs),
            registry: self.asks.clone(),
            board: self.context.board.clone(),
            clock: self.context.clock.clone(),
            node: self.context.node.clone(),
            seed: self.context.seed,
        };
        level.spawn("service", instance.run(level.clone()));
        let key = service.key();
        self.known.send_modify(|known| drop(known.insert(key.clone(), (definition, source))));
        self.running.insert(key, RunningInstance { service, level, heard, configured });
    }

    async fn register(
        &mut self,
        definition: ServiceDefinition,
        pid: Option<i32>,
    ) -> Result<(), RegistryRefusal> {
        let service = Service::of(&definition).map_err(|wrong| {
            (
                Code::Invalid,
                format!("register service {}: {}: {}", definition.name, wrong.field, wrong.reason),
            )
        })?;
        let what = format!("register {} of service {}", service.id, service.name);
        let key = service.key();
        // An id is one instance's on this machine, whatever its service.
        let same = |other: &&InstanceKey| other.1 == key.1;
        if let Some(other) = self.running.keys().find(same).filter(|other| **other != key) {
            return Err((Code::Refused, format!("{what}: {} of service {} has that id", other.1, other.0)));
        }
        if self.running.get(&key).is_some_and(|running| running.configured) {
            return Err((Code::Refused, format!("{what}: the configuration of this agent defines it")));
        }
        let before = self.registered.iter().find(|kept| kept.is(&key));
        if let Some(owner) =
            before.and_then(|kept| kept.pid).filter(|owner| Some(*owner) != pid && lives(*owner))
        {
            let reason = format!("{what}: process {owner} registered it and is still there");
            return Err((Code::Refused, reason));
        }
        if before.is_some_and(|kept| kept.definition == definition && kept.pid == pid) {
            return Ok(());
        }
        if before.is_none() && self.running.len() >= MAX_INSTANCES {
            return Err((Code::Refused, format!("{what}: there are {MAX_INSTANCES} already")));
        }
        let same_service = before.is_some_and(|kept| kept.definition == definition);
        let mut next = self.registered.clone();
        next.retain(|kept| !kept.is(&key));
        next.push(RegisteredService { definition: definition.clone(), pid });
        self.keep(next).await?;
        if !same_service {
            self.end(&key);
            self.begin(definition, service, (REGISTERED.to_owned(), false));
        }
        Ok(())
    }

    async fn deregister(&mut self, id: &InstanceName) -> Result<(), RegistryRefusal> {
        let found =
            self.running.iter().find(|(key, _)| key.1 == *id).map(|(key, of)| (key.clone(), of.configured));
        let Some((key, configured)) = found else {
            return Err((Code::NotFound, format!("deregister {id}: this machine offers nothing of that id")));
        };
        if configured {
            let reason =
                format!("deregister {id}: the configuration of this agent defines it; remove it there");
            return Err((Code::Refused, reason));
        }
        let mut next = self.registered.clone();
        next.retain(|kept| !kept.is(&key));
        self.keep(next).await?;
        self.end(&key);
        if self.context.met.remove(&key).is_some() {
            self.keep_met().await?;
        }
        Ok(())
    }

    fn pulse(
        &self,
        id: &InstanceName,
        check: Option<&CheckName>,
        (pulse, note): (TtlUpdate, String),
    ) -> Result<(), RegistryRefusal> {
        let running = self.running.values().find(|running| running.service.id == *id);
        let running = running
            .ok_or_else(|| (Code::NotFound, format!("hear {id}: this machine offers nothing of that id")))?;
        let mut listening = running.service.listening.keys();
        let name = match check {
            Some(check) => listening.find(|name| *name == check),
            None => listening.next().filter(|_| running.service.listening.len() == 1),
        };
        let name = name.ok_or_else(|| match check {
            Some(check) => (Code::NotFound, format!("hear {id}: it has no check {check} with a ttl")),
            None => (Code::Refused, format!("hear {id}: it has not exactly one check with a ttl; name one")),
        })?;
        let now = self.context.clock.now();
        running.heard.send_modify(|all| {
            if let Some(listening) = all.get_mut(name) {
                listening.last = Some((now, pulse, note));
            }
        });
        Ok(())
    }

    /// What a service needs is there: it waits no more, also after a restart.
    async fn met(&mut self, service: &Arc<Service>) -> Result<(), RegistryRefusal> {
        // One that was taken back or said anew meanwhile has nothing to be remembered.
        if self.running.get(&service.key()).is_none_or(|running| !Arc::ptr_eq(&running.service, service)) {
            return Ok(());
        }
        self.context.met.insert(service.key(), service.needs.clone());
        self.keep_met().await
    }

    async fn keep_met(&self) -> Result<(), RegistryRefusal> {
        let kept = self.context.ledger.keep_met(&self.context.met).await;
        kept.map_err(|error| (Code::Store, error.to_string()))
    }

    async fn keep(&mut self, next: Vec<RegisteredService>) -> Result<(), RegistryRefusal> {
        let kept = self.context.ledger.keep_services(&next).await;
        kept.map_err(|error| (Code::Store, error.to_string()))?;
        self.registered = next;
        Ok(())
    }

    fn end(&mut self, key: &InstanceKey) {
        if let Some(running) = self.running.remove(key) {
            running.level.cancel();
        }
        self.known.send_modify(|known| drop(known.remove(key)));
        self.context.board.send_modify(|all| drop(all.remove(key)));
    }
}

/// Where what programs registered was said.
const REGISTERED: &str = "registered";

impl RegisteredService {
    fn is(&self, key: &InstanceKey) -> bool {
        let id = self.definition.id.as_deref().unwrap_or(&self.definition.name);
        self.definition.name == key.0.as_str() && id == key.1.as_str()
    }
}

/// Whether a process is still there.
fn lives(pid: i32) -> bool {
    rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}
