//! Service discovery on this node: what it registers, and its copy of what other nodes register.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::catalogue::{self, CatalogueSnapshot};
use crate::check_store::CheckStore;
use crate::config::Config;
use crate::http;
use crate::ledger::{Ledger, MetNeeds, RegisteredService};
use crate::link::contact::ServerContact;
use crate::metrics::MetricSources;
use crate::names;
use crate::own_health;
use crate::service::process_phase::ProcessPhases;
use crate::service::published::PublishedInstances;
use crate::service::registry::{self, Registry};
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance};

/// What discovery starts from.
#[derive(Debug)]
pub(crate) struct DiscoveryContext {
    /// What programs registered before the agent started.
    pub(crate) registered: Vec<RegisteredService>,
    /// The needs of services that were met before the agent started.
    pub(crate) met: MetNeeds,
    pub(crate) ledger: Ledger,
    pub(crate) check_store: CheckStore,
    /// The supervised processes of entities.
    pub(crate) processes: watch::Receiver<ProcessPhases>,
    pub(crate) wants_catalogue: Arc<watch::Sender<bool>>,
    pub(crate) contact: watch::Receiver<ServerContact>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: Tasks,
}

/// What this node registers, and what it knows of other nodes.
#[derive(Debug)]
pub(crate) struct Discovery {
    pub(crate) registry: Registry,
    /// Where instances are published that are in no registry.
    pub(crate) published: PublishedInstances,
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    pub(crate) addresses: LocalAddresses,
    pub(crate) snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    /// The catalogue as this node answers from it.
    answered: watch::Receiver<Arc<CatalogueSnapshot>>,
}

impl Discovery {
    /// Starts the registry, the copy of the catalogue, and whatever answers from it.
    pub(crate) fn start(config: &Config, context: DiscoveryContext) -> Self {
        let DiscoveryContext { wants_catalogue, contact, clock, seed, tasks, .. } = context;
        // A copy that was not kept up to date is worth nothing: whoever asks for one later gets it whole.
        let is_current = *wants_catalogue.borrow();
        let snapshot =
            if is_current { catalogue::load(&config.data_dir) } else { CatalogueSnapshot::default() };
        let snapshot = watch::Sender::new(Arc::new(snapshot));
        let services = watch::Sender::new(BTreeMap::new());
        let registry = Registry::start(registry::RegistryContext {
            configured: config.services.clone(),
            registered: context.registered,
            met: context.met,
            ledger: context.ledger,
            published: services.clone(),
            processes: context.processes,
            check_store: context.check_store,
            snapshot: snapshot.subscribe(),
            wants_catalogue,
            clock: clock.clone(),
            node: config.name.to_string(),
            seed,
            tasks: tasks.clone(),
        });
        let stored =
            catalogue::keep(snapshot.subscribe(), config.data_dir.clone(), clock.clone(), tasks.clone());
        tasks.spawn("catalogue", stored);
        let answered =
            own_health::follow(config.name.clone(), snapshot.subscribe(), services.subscribe(), &tasks);
        if let Some(names) = config.names.clone() {
            let answered = answered.clone();
            tasks.spawn("names", names::serve(names, answered, contact, tasks.clone()));
        }
        let addresses = LocalAddresses::watch(config.addresses.clone(), &tasks);
        Self { registry, services: services.subscribe(), published: services, addresses, snapshot, answered }
    }

    /// Answers over HTTP, if that is configured.
    pub(crate) fn serve_http(
        &self,
        config: &Config,
        metrics: MetricSources,
        (clock, seed): (Clock, u64),
        tasks: &Tasks,
    ) {
        let Some(http) = config.http.clone() else { return };
        let contact = metrics.status.contact.clone();
        let sources = http::HttpSources { snapshot: self.answered.clone(), contact, metrics, clock, seed };
        tasks.spawn("http", http::serve(http, sources, tasks.clone()));
    }
}

/// Whether anything on this node reads the services of other nodes.
pub(crate) fn wants_catalogue(config: &Config) -> bool {
    let recipes = || config.entities.values();
    let reads_services = recipes().any(|recipe| !recipe.needs.is_empty() || !recipe.follows.is_empty())
        || config.services.iter().any(|defined| !defined.service.needs.is_empty());
    config.names.is_some() || config.http.is_some() || !config.files.is_empty() || reads_services
}
