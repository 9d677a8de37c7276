//! The services of this node: those of the configuration for as long as the agent runs, and those that programs registered
//! until they are deregistered, across restarts. One task changes them, on disk before they are published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::local::ttl::TtlCheck;
use bellwether_core::records::registrations::MAX_INSTANCES;
use bellwether_core::words::name::{CheckName, InstanceName};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use super::instance::InstanceTask;
use super::process_phase::ProcessPhases;
use super::published::{InstanceKey, PublishedInstances};
use super::request::{CheckUpdate, RegistryRefusal, RegistryRequest, RegistryRequests};
use crate::apply::process_stat::exists;
use crate::catalogue::CatalogueSnapshot;
use crate::check_store::{CheckOwner, CheckStore};
use crate::config::service::Service;
use crate::config::services::DefinedService;
use crate::ledger::{Ledger, MetNeeds, RegisteredService};

/// Requests that may queue for the disk; further ones wait, up to [`PATIENCE`].
const QUEUE: usize = 64;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefinitionSource {
    /// This file of the agent's configuration.
    Configuration(String),
    /// A registration by a program.
    Registered,
}

impl std::fmt::Display for DefinitionSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Configuration(file) => f.write_str(file),
            Self::Registered => f.write_str("registered"),
        }
    }
}

/// A definition that is in force on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownDefinition {
    pub(crate) definition: ServiceDefinition,
    pub(crate) source: DefinitionSource,
}

/// Takes requests of programs. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    asks: RegistryRequests,
    /// Every definition in force.
    pub(crate) known: watch::Receiver<BTreeMap<InstanceKey, KnownDefinition>>,
}

/// What the registry starts from.
pub(crate) struct RegistryContext {
    pub(crate) configured: Vec<DefinedService>,
    pub(crate) registered: Vec<RegisteredService>,
    pub(crate) met: MetNeeds,
    pub(crate) ledger: Ledger,
    pub(crate) published: PublishedInstances,
    /// The supervised processes of entities.
    pub(crate) processes: watch::Receiver<ProcessPhases>,
    /// The states of checks over a restart.
    pub(crate) check_store: CheckStore,
    /// The services of other nodes, and whether this node needs them.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) wants_catalogue: Arc<watch::Sender<bool>>,
    pub(crate) clock: Clock,
    pub(crate) node: String,
    pub(crate) seed: u64,
    pub(crate) tasks: Tasks,
}

impl Registry {
    /// Starts all configured and registered services, and the task that changes them.
    pub(crate) fn start(context: RegistryContext) -> Self {
        let (asks, queue) = mpsc::channel(QUEUE);
        let known = watch::Sender::new(BTreeMap::new());
        let registry = Self { asks: asks.clone(), known: known.subscribe() };
        let tasks = context.tasks.clone();
        let mut work =
            RegistryTask { context, running: BTreeMap::new(), registered: Vec::new(), known, asks };
        work.load();
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

    pub(crate) async fn update_check(
        &self,
        id: InstanceName,
        check: Option<CheckName>,
        update: CheckUpdate,
    ) -> Result<(), RegistryRefusal> {
        self.ask(RegistryRequest::UpdateCheck(id, check, update)).await
    }

    async fn ask(&self, ask: RegistryRequest) -> Result<(), RegistryRefusal> {
        let (answer, answered) = oneshot::channel();
        let ending = || (Code::Store, "answer: the agent is stopping".to_owned());
        let asked = async {
            self.asks.send((ask, answer)).await.map_err(|_| ending())?;
            answered.await.map_err(|_| ending())?
        };
        let late = |_| (Code::Timeout, format!("answer within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// A running instance.
struct RunningInstance {
    service: Arc<Service>,
    tasks: Tasks,
    ttl_checks: watch::Sender<BTreeMap<CheckName, TtlCheck>>,
    configured: bool,
}

struct RegistryTask {
    context: RegistryContext,
    running: BTreeMap<InstanceKey, RunningInstance>,
    registered: Vec<RegisteredService>,
    known: watch::Sender<BTreeMap<InstanceKey, KnownDefinition>>,
    asks: RegistryRequests,
}

impl RegistryTask {
    /// Starts all configured and registered services.
    fn load(&mut self) {
        for DefinedService { definition, service, source } in std::mem::take(&mut self.context.configured) {
            self.begin(definition, service, DefinitionSource::Configuration(source));
        }
        for registered in std::mem::take(&mut self.context.registered) {
            // A definition in the configuration wins.
            match Service::of(&registered.definition) {
                Ok(service) if !self.running.contains_key(&service.key()) => {
                    self.begin(registered.definition.clone(), service, DefinitionSource::Registered);
                    self.registered.push(registered);
                }
                Ok(_) => {}
                Err(wrong) => tracing::warn!(
                    field = wrong.field,
                    reason = wrong.reason,
                    "dropped a registered service whose definition is not valid"
                ),
            }
        }
        // Needs of services that no longer exist are forgotten.
        let (running, met) = (&self.running, &mut self.context.met);
        met.retain(|key, _| running.contains_key(key));
        self.forget_checks();
    }

    /// Forgets the states of checks of services that no longer exist.
    fn forget_checks(&self) {
        self.context.check_store.retain(|owner| match owner {
            CheckOwner::Service(key) => self.running.contains_key(key),
            CheckOwner::Entity(_) => true,
        });
    }

    async fn run(
        mut self,
        mut queue: mpsc::Receiver<(RegistryRequest, oneshot::Sender<Result<(), RegistryRefusal>>)>,
    ) {
        let token = self.context.tasks.token();
        loop {
            // Both arms are cancel safe; requests that are still queued are answered by the end of the queue.
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
                RegistryRequest::UpdateCheck(id, check, update) => {
                    self.update_check(&id, check.as_ref(), update)
                }
            };
            if answer.send(done).is_err() {
                tracing::debug!("a client did not wait for its answer");
            }
        }
    }

    fn begin(&mut self, definition: ServiceDefinition, service: Service, source: DefinitionSource) {
        let (service, tasks) = (Arc::new(service), self.context.tasks.child());
        if !service.needs.is_empty() {
            self.context.wants_catalogue.send_if_modified(|wants| !std::mem::replace(wants, true));
        }
        let stored = self.context.check_store.get(&CheckOwner::Service(service.key()));
        let ttl_checks = service.ttl_checks.iter().map(|(name, lifetime)| {
            let last = stored.ttl_updates.get(name).cloned();
            (name.clone(), TtlCheck { lifetime: *lifetime, last })
        });
        let ttl_checks = ttl_checks.collect();
        let (ttl_checks, ttl_receiver) = watch::channel(ttl_checks);
        let instance = InstanceTask {
            service: service.clone(),
            ttl_checks: ttl_receiver,
            processes: self.context.processes.clone(),
            process: None,
            snapshot: self.context.snapshot.clone(),
            met: self.context.met.get(&service.key()) == Some(&service.needs),
            registry: self.asks.clone(),
            published: self.context.published.clone(),
            check_store: self.context.check_store.clone(),
            clock: self.context.clock.clone(),
            node: self.context.node.clone(),
            seed: self.context.seed,
        };
        tasks.spawn("service", instance.run(tasks.clone()));
        let key = service.key();
        let configured = matches!(source, DefinitionSource::Configuration(_));
        let known = KnownDefinition { definition, source };
        self.known.send_modify(|all| drop(all.insert(key.clone(), known)));
        self.running.insert(key, RunningInstance { service, tasks, ttl_checks, configured });
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
        // An id names one instance on this node, across services.
        let same = |other: &&InstanceKey| other.1 == key.1;
        if let Some(other) = self.running.keys().find(same).filter(|other| **other != key) {
            return Err((
                Code::Refused,
                format!("{what}: instance {} of service {} has that id", other.1, other.0),
            ));
        }
        if self.running.get(&key).is_some_and(|running| running.configured) {
            return Err((Code::Refused, format!("{what}: it is defined in the configuration of this agent")));
        }
        let before = self.registered.iter().find(|kept| kept.is(&key));
        if let Some(owner) =
            before.and_then(|kept| kept.pid).filter(|owner| Some(*owner) != pid && lives(*owner))
        {
            let reason = format!("{what}: process {owner} registered it and is still running");
            return Err((Code::Refused, reason));
        }
        if before.is_some_and(|kept| kept.definition == definition && kept.pid == pid) {
            return Ok(());
        }
        if before.is_none() && self.running.len() >= MAX_INSTANCES {
            return Err((
                Code::Refused,
                format!("{what}: the limit of {MAX_INSTANCES} instances is reached"),
            ));
        }
        let same_service = before.is_some_and(|kept| kept.definition == definition);
        let mut next = self.registered.clone();
        next.retain(|kept| !kept.is(&key));
        next.push(RegisteredService { definition: definition.clone(), pid });
        self.keep(next).await?;
        if !same_service {
            self.end(&key);
            self.begin(definition, service, DefinitionSource::Registered);
        }
        Ok(())
    }

    async fn deregister(&mut self, id: &InstanceName) -> Result<(), RegistryRefusal> {
        let found =
            self.running.iter().find(|(key, _)| key.1 == *id).map(|(key, of)| (key.clone(), of.configured));
        let Some((key, configured)) = found else {
            return Err((Code::NotFound, format!("deregister {id}: no service on this node has that id")));
        };
        if configured {
            let reason =
                format!("deregister {id}: it is defined in the configuration of this agent; remove it there");
            return Err((Code::Refused, reason));
        }
        let mut next = self.registered.clone();
        next.retain(|kept| !kept.is(&key));
        self.keep(next).await?;
        self.end(&key);
        self.forget_checks();
        if self.context.met.remove(&key).is_some() {
            self.keep_met().await?;
        }
        Ok(())
    }

    fn update_check(
        &self,
        id: &InstanceName,
        check: Option<&CheckName>,
        update: CheckUpdate,
    ) -> Result<(), RegistryRefusal> {
        let running = self.running.values().find(|running| running.service.id == *id);
        let running = running
            .ok_or_else(|| (Code::NotFound, format!("update {id}: no service on this node has that id")))?;
        let mut ttl_checks = running.service.ttl_checks.keys();
        let name = match check {
            Some(check) => ttl_checks.find(|name| *name == check),
            None => ttl_checks.next().filter(|_| running.service.ttl_checks.len() == 1),
        };
        let name = name.ok_or_else(|| match check {
            Some(check) => (Code::NotFound, format!("update {id}: it has no TTL check {check}")),
            None => (
                Code::Refused,
                format!("update {id}: it does not have exactly one TTL check; name the check"),
            ),
        })?;
        let now = self.context.clock.now();
        running.ttl_checks.send_modify(|all| {
            if let Some(check) = all.get_mut(name) {
                check.last = Some((now, update.state, update.note));
            }
        });
        Ok(())
    }

    /// The needs of a service are met: it waits no more, also after a restart.
    async fn met(&mut self, service: &Arc<Service>) -> Result<(), RegistryRefusal> {
        // It may have been deregistered or redefined meanwhile.
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
            running.tasks.cancel();
        }
        self.known.send_modify(|known| drop(known.remove(key)));
        self.context.published.send_modify(|all| drop(all.remove(key)));
    }
}

impl RegisteredService {
    fn is(&self, key: &InstanceKey) -> bool {
        let id = self.definition.id.as_deref().unwrap_or(&self.definition.name);
        self.definition.name == key.0.as_str() && id == key.1.as_str()
    }
}

/// Whether a process exists.
fn lives(pid: i32) -> bool {
    rustix::process::Pid::from_raw(pid).is_some_and(exists)
}
