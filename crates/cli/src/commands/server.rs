//! `server`: sets up and runs servers of a control plane.

use std::collections::BTreeMap;
use std::path::Path;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::server as v1;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::config_error::ConfigError;
use bellwether_rt::signal::StopSignals;
use bellwether_server::config::Config;
use bellwether_server::recover::admin_token;
use bellwether_server::run::{RunError, Server, ServerFault, StoreSeen, check, init};
use bellwether_server::secrets::keyring::{KEYRING_FILE, Keyring};
use bellwether_server::transfer::location::AllowedAuthority;

use super::authorities;
use super::backup::{self, BackupScope};
use super::overview::store_line;
use super::server_join;
use super::store_check;
use super::transfer;
use crate::args::{Global, ServerConfig, ServerVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::near::improved;
use crate::show::time::date;
use crate::show::{Show, currency, print, table};

/// Difference of a clock that is shown.
const WORTH_SHOWING: Span = Span::from_secs(1);

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(improved(&error.to_string()))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let exit = match &error {
            RunError::Open(_) if error.is_in_use() || error.is_damaged() || error.is_denied() => {
                LocalFault::DataDirectory.exit()
            }
            RunError::NotInitialised { .. }
            | RunError::NoStore { .. }
            | RunError::NoStoreFile { .. }
            | RunError::StoreAlone { .. }
            | RunError::NotAllowed { .. }
            | RunError::NotDirectory { .. }
            | RunError::NoAuthority { .. }
            | RunError::Pki(_)
            | RunError::Authorities(_)
            | RunError::Keyring(_)
            | RunError::NotPrivate(_)
            | RunError::Installation(_) => LocalFault::DataDirectory.exit(),
            RunError::Plain { .. } => Exit::Refused,
            RunError::File { .. } => LocalFault::Output.exit(),
            RunError::Random(_) | RunError::Threads(_) => Exit::Internal,
            RunError::Listen { .. } | RunError::Dns(_) => LocalFault::Listen.exit(),
            RunError::Open(_) | RunError::World(_) | RunError::Commit(_) => LocalFault::Contact.exit(),
        };
        let text = error.to_string();
        if matches!(error, RunError::StoreAlone { .. }) {
            return Self::stated(exit, text);
        }
        let failure = Self::new(exit, text);
        let in_use = |source: &std::io::Error| source.kind() == std::io::ErrorKind::AddrInUse;
        if matches!(&error, RunError::Listen { source, .. } if in_use(source)) {
            return failure.hint("another process listens there: stop it, or pick another address");
        }
        if error.is_denied() {
            return failure.hint("run the command as the user that owns the data directory");
        }
        if error.is_damaged() {
            return failure.hint("all that is wrong with it: bellwether server check");
        }
        failure
    }
}

pub(super) async fn run(global: &Global, verb: ServerVerb) -> CommandResult {
    match verb {
        ServerVerb::Init { config } => make(global, &load(&config)?, config.config.as_deref()).await,
        ServerVerb::List => list(&Context::new(global)?).await,
        ServerVerb::StepDown { reason } => step_down(&Context::new(global)?, &reason).await,
        ServerVerb::Ca(verb) => authorities::run(&Context::new(global)?, verb).await,
        ServerVerb::JoinToken { expires_in } => {
            server_join::create_token(&Context::new(global)?, expires_in).await
        }
        ServerVerb::Join(request) => server_join::join(global, request).await,
        ServerVerb::Migrate { config, to } => transfer::move_over(global, &load(&config)?, &to).await,
        ServerVerb::Backup { config, online, with_keys, file } => {
            let scope = if with_keys { BackupScope::WithKeys } else { BackupScope::Records };
            match online {
                true => backup::online(&Context::new(global)?, &file, scope).await,
                false => backup::offline(global, &load(&config)?, (&file, scope)).await,
            }
        }
        ServerVerb::Inspect { file } => transfer::inspect(global, &file).await,
        ServerVerb::Restore { config, file, accept_clock, any_authority, in_place: _ } => {
            let loaded = load(&config)?.accepting_clock(accept_clock);
            match file {
                Some(file) => {
                    let allowed = if any_authority { AllowedAuthority::Any } else { AllowedAuthority::Own };
                    transfer::restore(global, &loaded, config.config.as_deref(), (&file, allowed)).await
                }
                None => transfer::note_set_back(global, &loaded).await,
            }
        }
        ServerVerb::Check { config } => store_check::run(global, &load(&config)?),
        ServerVerb::Recover { config, admin_token: _ } => recover(global, &load(&config)?).await,
        ServerVerb::SecretKey { config } => add_key(global, &load(&config)?),
        ServerVerb::Run { config, check: true, .. } => {
            let config = load(&config)?;
            let seen = check(&config).await?;
            let show = Show::new(global);
            show.note("the configuration is valid");
            let dir = config.data_dir.display();
            show.note(&match seen {
                StoreSeen::Yes => format!("{dir} has an installation"),
                StoreSeen::InUse => format!("{dir} has a store that a server has open: it was not looked at"),
            });
            Ok(Exit::Yes)
        }
        ServerVerb::Run { config, check: false, accept_clock, die_with_parent } => {
            crate::parent::follow(die_with_parent)?;
            serve(&load(&config)?.accepting_clock(accept_clock)).await
        }
    }
}

fn load(from: &ServerConfig) -> Result<Config, Failure> {
    let mut config = Config::load(from.config.as_deref())?;
    if let Some(dir) = &from.data_dir {
        config.data_dir.clone_from(dir);
    }
    Ok(match from.listen {
        Some(address) => config.listening_on(address),
        None => config,
    })
}

fn add_key(global: &Global, config: &Config) -> CommandResult {
    let file = config.data_dir.join(KEYRING_FILE);
    let id = Keyring::add_key(&file).map_err(RunError::from)?;
    let show = Show::new(global);
    let data = serde_json::json!({ "key": id.as_str(), "file": &file });
    show.data(&data, || vec![id.to_string()], |_| format!("added key {id} to {}", file.display()))?;
    show.note("copy the file to the other servers, then restart all of them, one after the other");
    show.note("how far the encryption under the new key is: bellwether secret keys");
    Ok(Exit::Yes)
}

/// Creates an admin token without a server.
async fn recover(global: &Global, config: &Config) -> CommandResult {
    let made = admin_token(config).await?;
    let file = made.token_file.display().to_string();
    let data = serde_json::json!({ "token": made.name.as_str(), "token_file": &file });
    let show = Show::new(global);
    show.data(
        &data,
        || vec![file.clone()],
        |_| format!("created token {} with the role admin, in {file}", made.name),
    )?;
    show.note("next: start the server, and delete the tokens that were lost: bellwether token list");
    Ok(Exit::Yes)
}

async fn make(global: &Global, config: &Config, file: Option<&Path>) -> CommandResult {
    let made = init(config).await?;
    let data = serde_json::json!({
        "token_file": made.token_file,
        "ca_file": made.ca_file,
        "ca_fingerprint": made.ca_fingerprint,
    });
    Show::new(global).data(
        &data,
        || vec![made.token_file.display().to_string()],
        |_| {
            let server = config.advertised(config.listen);
            let server = server.unwrap_or_else(|| format!("https://HOST:{}", config.listen.port()));
            let file = file.map_or(String::new(), |file| format!(" --config {}", file.display()));
            format!(
                "initialised a control plane in {dir}\n\n\
             admin token (shown only once; also in {token}, readable by you alone):\n  {secret}\n\n\
             next:\n  bellwether server run{file} --data-dir {dir} --listen {listen}\n  \
             bellwether context set main --server {server} --ca {ca} --token-file {token}\n  \
             bellwether join-token create",
                dir = config.data_dir.display(),
                token = made.token_file.display(),
                secret = made.token.expose(),
                listen = config.listen,
                ca = made.ca_file.display(),
            )
        },
    )?;
    Ok(Exit::Yes)
}

async fn list(context: &Context) -> CommandResult {
    let plane = context.client.control_plane().await?;
    let servers = || plane.servers.iter().chain(&plane.not_registered);
    let names = || servers().map(|server| server.name.clone()).collect();
    context.show.data(&plane, names, |_| {
        let leads = |name: &str| match (&plane.leader, plane.term) {
            (Some(leader), Some(term)) if leader.server == name && currency::is_stale() => {
                format!("led in term {term}")
            }
            (Some(leader), Some(term)) if leader.server == name => {
                format!("since {}, term {term}", date(leader.since_ms))
            }
            (Some(_) | None, _) => "-".to_owned(),
        };
        let registered = plane.servers.iter().map(|server| (server, true));
        let others = plane.not_registered.iter().map(|server| (server, false));
        let rows = registered.chain(others).map(|(server, is_registered)| {
            let sessions = plane.sessions.get(&server.name).copied().unwrap_or_default();
            let here = if server.name == plane.answered_by { "yes" } else { "-" };
            vec![
                server.name.clone(),
                server.address.clone(),
                server.version.clone(),
                if is_registered { date(server.since_ms) } else { "not registered".to_owned() },
                sessions.to_string(),
                leads(&server.name),
                plane.clocks.get(&server.name).map_or_else(|| "-".to_owned(), clock),
                here.to_owned(),
            ]
        });
        let servers =
            table(&["name", "address", "version", "since", "nodes", "leader", "clock", "answered"], rows);
        let at = match plane.store.endpoints.join(", ") {
            at if at.is_empty() => String::new(),
            at => format!(" at {at}"),
        };
        let warnings = plane.store.warnings.iter().chain(&plane.clock_warnings).cloned();
        let warnings = warnings.chain(mixed(&plane.servers));
        let warnings: String = warnings.map(|warning| format!("\nwarning    {warning}")).collect();
        format!("{servers}\n\n{}{at}{warnings}", store_line(&plane.store, context.show.paint))
    })?;
    Ok(Exit::Yes)
}

/// The clock of a server, for people: by how much its machine's is wrong, and whether that keeps it from taking part.
fn clock(clock: &v1::ServerClock) -> String {
    let span = Span::from_millis(clock.skew_ms.unsigned_abs());
    let skew = match (span < WORTH_SHOWING, clock.skew_ms > 0) {
        (true, _) => "ok".to_owned(),
        (false, true) => format!("{} ahead", span.brief()),
        (false, false) => format!("{} behind", span.brief()),
    };
    if clock.takes_part { skew } else { format!("{skew}, takes no part") }
}

/// Has the leader step down. Another server may lead by the time it is asked: then that one is, once.
async fn step_down(context: &Context, reason: &str) -> CommandResult {
    let mut tries = 2_u8;
    let done = loop {
        tries = tries.saturating_sub(1);
        let plane = context.client.control_plane().await?;
        let leader = plane.leader.filter(|leader| leader.server != plane.answered_by);
        let elsewhere =
            leader.and_then(|leader| plane.servers.into_iter().find(|server| server.name == leader.server));
        let client = match &elsewhere {
            Some(leader) => context.client.towards(&leader.address)?,
            None => context.client.of_server_in_use(),
        };
        match client.step_down(reason).await {
            Err(CallError::Problem(problem)) if tries > 0 && problem.code == Code::Refused => {}
            Err(error @ (CallError::Unreachable { .. } | CallError::Timeout { .. }))
                if elsewhere.is_some() =>
            {
                let leader = elsewhere.map(|leader| leader.name).unwrap_or_default();
                return Err(Failure::from(error).hint(format!(
                    "it leads as {leader}; if that server is dead, another one leads within 15s without this: bellwether server list"
                )));
            }
            answer => break answer?,
        }
    };
    let said = |_| format!("{} handed the leadership over to {}", done.before, done.leader);
    context.show.data(&done, || vec![done.leader.clone()], said)?;
    Ok(Exit::Yes)
}

/// A warning if servers run different releases: an upgrade was not finished.
fn mixed(servers: &[v1::Server]) -> Option<String> {
    let mut by_release = BTreeMap::<&str, Vec<&str>>::new();
    for server in servers {
        by_release.entry(&server.version).or_default().push(&server.name);
    }
    let releases = by_release.iter().map(|(release, names)| format!("{release} ({})", names.join(", ")));
    let releases: Vec<String> = releases.collect();
    let what = || format!("servers run different releases, {}; upgrade all to one", releases.join(" and "));
    (releases.len() > 1).then(what)
}

async fn serve(config: &Config) -> CommandResult {
    let mut stops = stops()?;
    // Both arms only wait: a start may wait for a clock that is right.
    let server = tokio::select! {
        started = Server::start(config, Clock::of_server()) => started?,
        stop = stops.requested() => {
            tracing::info!(?stop, "stopping before it serves");
            return Ok(Exit::Yes);
        }
    };
    tracing::info!(address = %server.address, "serving");
    print(&format!("serving on https://{}", server.address))?;
    let fault = until_stopped(&server, &mut stops).await;
    let stopped = server.stop().await.map_err(|error| Failure::ours(error.to_string()));
    fault?;
    stopped?;
    Ok(Exit::Yes)
}

/// Listens for stop signals from now on, so that an early one still stops everything in order.
pub(super) fn stops() -> Result<StopSignals, Failure> {
    StopSignals::listen().map_err(|error| Failure::ours(format!("listen for signals: {error}")))
}

/// Waits for a stop signal, or for something of the server to fail, which its command then fails with.
pub(super) async fn until_stopped(server: &Server, stops: &mut StopSignals) -> Result<(), Failure> {
    // Both arms only wait.
    let fault = tokio::select! {
        stop = stops.requested() => {
            tracing::info!(?stop, "stopping");
            return Ok(());
        }
        fault = server.broken() => fault,
    };
    tracing::error!("{fault}; stopping");
    Err(match fault {
        ServerFault::Task => Failure::ours(fault.to_string()),
        ServerFault::Store { .. } | ServerFault::SetBack { .. } => {
            Failure::stated(LocalFault::Contact.exit(), fault.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_run_different_releases_are_named() {
        let server = |name: &str, version: &str| v1::Server {
            name: name.to_owned(),
            address: "https://10.0.0.1:7420".to_owned(),
            version: version.to_owned(),
            secret_keys: Vec::new(),
            since_ms: 0,
        };
        assert_eq!(mixed(&[]), None);
        assert_eq!(mixed(&[server("a", "0.1.0"), server("b", "0.1.0")]), None);
        let mixed = mixed(&[server("a", "0.2.0"), server("b", "0.1.0"), server("c", "0.2.0")]).unwrap();
        let said = "servers run different releases, 0.1.0 (b) and 0.2.0 (a, c); upgrade all to one";
        assert_eq!(mixed, said);
    }
}
