//! `dev`: a server and an agent in one process, on loopback, for experiments.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether_agent::join::{JoinRequest, join};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::access::NewJoinToken;
use bellwether_core::words::address_range::AddressRange;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::discovery::settings::DiscoverySettings;
use bellwether_server::run::{Server, init};
use bellwether_server::sinks::addresses::AddressRules;
use bellwether_server::sinks::settings::SinkSettings;

use crate::args::Dev;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::{print, tell};

/// The name of the one node.
const NODE: &str = "dev-1";

/// Its namespace.
const NAMESPACE: &str = "default";

/// Longest time for the agent to stop.
const GRACE: Duration = Duration::from_secs(15);

/// Longest time for the node to report before the greeting is printed all the same.
const GREETED_WITHIN: Duration = Duration::from_secs(10);

/// Pause between two looks at the node.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// The configuration of the node's agent, below its `[agent]` section. Users may edit it and restart `dev`.
const AGENT: &str = r#"
# This machine is all the fleet there is: its services are reached on loopback.
addresses = { lo = ["127.0.0.1"] }

[dns]
listen = ["DNS"]

# What this node can run. `bellwether rollout start app v1` hands a version to it.
[entity.app]
static = ["sh", "-c", "echo now at $BELLWETHER_VERSION, was ${BELLWETHER_PREVIOUS:-nothing}"]
"#;

pub(super) async fn run(args: &Dev) -> CommandResult {
    let (dir, temporary) = match &args.data_dir {
        Some(dir) => (absolute(dir)?, false),
        None => (std::env::temp_dir().join(format!("bellwether-dev-{}", std::process::id())), true),
    };
    if temporary {
        // The directory must be new: an existing one belongs to someone else.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(|error| Failure::local(LocalFault::Output, format!("make {}: {error}", dir.display())))?;
    }
    let ended = live(args, &dir).await;
    if temporary && let Err(error) = std::fs::remove_dir_all(&dir) {
        tell(&format!("cannot remove {}: {error}", dir.display()));
    }
    ended
}

/// The absolute path: the agent reads its configuration from any working directory.
fn absolute(dir: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(dir).map_err(|error| Failure::usage(format!("use {}: {error}", dir.display())))
}

async fn live(args: &Dev, dir: &Path) -> CommandResult {
    let mut stops = super::server::stops()?;
    let mut config = Config::load(None)?.listening_on(args.listen);
    config.data_dir = dir.join("server");
    config.plain_listen = Some(args.plain);
    let here = ["127.0.0.0/8", "::1"].iter().map(|range| range.parse()).collect::<Result<Vec<_>, _>>();
    let here = here.map_err(Failure::ours)?;
    config.sinks = sinks_of(dir, here.clone());
    config.hooks.addresses = Arc::new(AddressRules::of_hooks(here));
    config.discovery = DiscoverySettings::beside(&config.sinks, Some(dir.join("discovery")));
    if !config.data_dir.join("pki/ca.pem").exists() {
        init(&config).await?;
    }
    let server = Server::start(&config, Clock::of_server()).await?;
    let tasks = Tasks::new();
    let taken = dns_taken(args.dns);
    let mut fault = Ok(());
    let started = start_agent(&server, &config, dir, args.dns, &tasks).await;
    if started.is_ok() {
        reported(&server, &config).await?;
        print(&greeting(&server, &config, dir)?)?;
        if let Some(error) = taken {
            tell(&format!("cannot answer DNS on {}: {error}; everything else runs", args.dns));
            tell("  hint: choose another address with --dns");
        }
        fault = super::server::until_stopped(&server, &mut stops).await;
    }
    let stopped = tasks.stop(GRACE).await;
    let served = server.stop().await;
    started?;
    fault?;
    stopped.map_err(|error| Failure::ours(error.to_string()))?;
    served.map_err(|error| Failure::ours(error.to_string()))?;
    Ok(Exit::Yes)
}

/// Everything of `dev` is on this machine, and so are the receivers of its events.
fn sinks_of(dir: &Path, here: Vec<AddressRange>) -> SinkSettings {
    let addresses = Arc::new(AddressRules::of_sinks(here));
    SinkSettings { directory: Some(dir.join("events")), addresses, ca_file: None }
}

async fn start_agent(
    server: &Server,
    config: &Config,
    dir: &Path,
    dns: SocketAddr,
    tasks: &Tasks,
) -> Result<(), Failure> {
    let data_dir = dir.join("agent");
    let file = dir.join("agent.toml");
    let address = format!("https://{}", server.address);
    if !data_dir.join("node.pem").exists() {
        let token = admin_token(&config.data_dir)?;
        let ca = Some(server.ca_pem.clone());
        let access = Access { server: address.clone(), ca, identity: Identity::Token(token) };
        let request = NewJoinToken {
            node: Some(NODE.to_owned()),
            labels: vec!["role=dev".to_owned()],
            ..NewJoinToken::default()
        };
        let token = Client::new(&access)?.create_join_token(&request).await?;
        let request = JoinRequest {
            servers: vec![address.clone()],
            token: Secret::new(token.secret),
            node: NODE.to_owned(),
            namespace: NAMESPACE.to_owned(),
            labels: BTreeMap::from([("role".to_owned(), "dev".to_owned())]),
            data_dir: data_dir.clone(),
            force: false,
        };
        join(request).await.map_err(super::agent::not_joined)?;
    }
    if !file.exists() {
        let data = data_dir.display().to_string();
        let text = format!(
            "[agent]\ntasks = \"allow\"\nhosts_logical = true\nname = \"{NODE}\"\nserver = \"{address}\"\ndata_dir = {data:?}\n{}",
            agent(dns)
        );
        write(&file, &text)?;
    }
    let config = super::agent::load(&file)?;
    bellwether_agent::renderer::separate();
    let level = tasks.clone();
    tasks.spawn("agent", async move {
        if let Err(error) = bellwether_agent::run::run(config, Clock::system(), &level).await {
            tell(&format!("the agent stopped: {error}"));
        }
    });
    Ok(())
}

/// Waits until the node has reported itself and its facts, so that what is typed next finds it; at most [`GREETED_WITHIN`].
async fn reported(server: &Server, config: &Config) -> Result<(), Failure> {
    let ca = Some(server.ca_pem.clone());
    let identity = Identity::Token(admin_token(&config.data_dir)?);
    let client = Client::new(&Access { server: format!("https://{}", server.address), ca, identity })?;
    let waiting = async {
        while !client.node(NAMESPACE, NODE).await.is_ok_and(|node| node.facts.is_some()) {
            tokio::time::sleep(ASKED_EVERY).await;
        }
    };
    if tokio::time::timeout(GREETED_WITHIN, waiting).await.is_err() {
        tell(&format!("node {NODE} has not reported within {}s", GREETED_WITHIN.as_secs()));
        tell(&format!("  hint: bellwether node get {NODE}"));
    }
    Ok(())
}

/// Why the node cannot answer DNS on this address; nothing if it can.
fn dns_taken(dns: SocketAddr) -> Option<std::io::Error> {
    std::net::TcpListener::bind(dns).err().or_else(|| std::net::UdpSocket::bind(dns).err())
}

fn agent(dns: SocketAddr) -> String {
    AGENT.replace("DNS", &dns.to_string())
}

fn admin_token(data_dir: &Path) -> Result<Secret, Failure> {
    let path = data_dir.join("admin-token");
    let text = std::fs::read_to_string(&path);
    text.map(|text| Secret::new(text.trim())).map_err(|error| {
        Failure::local(LocalFault::DataDirectory, format!("read {}: {error}", path.display()))
    })
}

fn write(path: &PathBuf, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::local(LocalFault::Output, format!("write {}: {error}", path.display())))
}

fn greeting(server: &Server, config: &Config, dir: &Path) -> Result<String, Failure> {
    let plain = server.plain_address.unwrap_or(server.address);
    Ok(format!(
        "a server and one node are running; Ctrl-C ends them\n\n\
         in another terminal:\n  \
         export BELLWETHER_SERVER=http://{plain} BELLWETHER_TOKEN={token}\n  \
         bellwether status\n  \
         bellwether entity set app --selector role=dev --soak 2s\n  \
         bellwether rollout start app v1 -w\n\n\
         what the node can do is in {agent}",
        token = admin_token(&config.data_dir)?.expose(),
        agent = dir.join("agent.toml").display(),
    ))
}
