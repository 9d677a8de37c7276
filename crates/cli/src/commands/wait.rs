//! `wait`: until a service has enough instances, by long polls of the server, or by asking this machine's agent. Each change of
//! the reason is printed once.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use bellwether_agent::local::client;
use bellwether_agent::status::AgentStatus;
use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::service::ServiceView;
use bellwether_core::catalogue::need::{Need, RequiredState};
use bellwether_core::words::name::ServiceName;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use super::own_agent;
use crate::args::{Global, WaitFor};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, bare};
use crate::show::Show;

/// Longest wait of one long poll: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// Pause before another attempt to reach a server, and between two questions to the agent.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(global: &Global, wait: &WaitFor) -> CommandResult {
    match own_agent::status(global, &wait.agent.data_dir).await? {
        Some(own) => ask_agent(Waiting::new(wait, Show::new(global)), own).await,
        None => {
            let context = Context::new(global)?;
            ask_server(Waiting::new(wait, context.show.clone()), &context).await
        }
    }
}

/// A wait in progress.
struct Waiting<'a> {
    wait: &'a WaitFor,
    show: Show,
    /// When it has lasted long enough; `None` for never.
    until: Option<Instant>,
    /// What it waits for, as it was printed last.
    said: String,
}

impl<'a> Waiting<'a> {
    fn new(wait: &'a WaitFor, show: Show) -> Self {
        let until = wait.timeout.map(|timeout| Instant::now() + timeout.to_duration());
        Self { wait, show, until, said: String::new() }
    }

    /// The time left, at most `most`.
    fn left(&self, most: Duration) -> Duration {
        self.until.map_or(most, |until| until.saturating_duration_since(Instant::now()).min(most))
    }

    /// Prints what it waits for, if that changed.
    ///
    /// # Errors
    /// The time is over.
    fn goes_on(&mut self, there: String, hint: &str) -> Result<(), Failure> {
        if there != self.said {
            self.show.note(&format!("waiting: {there}"));
            self.said = there;
        }
        if self.until.is_none_or(|until| Instant::now() < until) {
            return Ok(());
        }
        let timeout = self.wait.timeout.unwrap_or(Span::ZERO).brief();
        let message = format!("waited {timeout} for service {}: {}", self.wait.service, self.said);
        Err(Failure::stated(Exit::Timeout, message).hint(hint))
    }
}

/// Waits by this machine's copy of the catalogue.
async fn ask_agent(mut waiting: Waiting<'_>, mut own: AgentStatus) -> CommandResult {
    let data_dir = &waiting.wait.agent.data_dir;
    let need = need(waiting.wait)?;
    let mut was_connected = true;
    loop {
        let connected = own.connected_since_ms.is_some();
        if was_connected && !connected {
            own_agent::note_age(&waiting.show, &own);
        }
        was_connected = connected;
        let there = match client::catalogue(data_dir).await {
            Ok(catalogue) => match need.unmet(&catalogue) {
                Some(unmet) => unmet.to_string(),
                None => return then(waiting.wait),
            },
            Err(error) => format!("cannot {error}; trying again"),
        };
        waiting.goes_on(there, "bellwether cache-services")?;
        tokio::time::sleep(waiting.left(AGAIN)).await;
        // An agent that cannot be asked does not answer about the catalogue either, which is reported.
        own = client::status(data_dir).await.unwrap_or(own);
    }
}

/// The need that the flags ask for.
fn need(wait: &WaitFor) -> Result<Need, Failure> {
    let service = ServiceName::parse(&wait.service)
        .map_err(|error| Failure::usage(format!("wait for service {:?}: {error}", wait.service)))?;
    let (count, at) = match (wait.functional, wait.addressable) {
        (_, Some(count)) => (count, RequiredState::Addressable),
        (count, None) => (count.unwrap_or(1), RequiredState::Functional),
    };
    Ok(Need { at, ..Need::of(service, count) })
}

/// Waits by the server's catalogue.
async fn ask_server(mut waiting: Waiting<'_>, context: &Context) -> CommandResult {
    let wait = waiting.wait;
    let hint = format!("bellwether service get {}", wait.service);
    let mut index = 0;
    loop {
        let hang = waiting.left(HANG);
        let asked = context.client.service(&context.namespace, &wait.service, Some(index), hang).await;
        let there = match asked {
            Ok(view) => {
                index = view.revision;
                match shortfall(wait, &view) {
                    Some(there) => there,
                    None => return then(wait),
                }
            }
            // A service that was never registered may be registered later: the wait goes on.
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                index = match context.client.services(&context.namespace).await {
                    Ok(page) => page.revision,
                    // There is no such namespace, and so no services in it.
                    Err(error @ CallError::Problem(_)) => return Err(error.into()),
                    // The next request reports that the server cannot be reached.
                    Err(_) => 0,
                };
                let hint = problem.hint.filter(|hint| hint.starts_with("did you mean"));
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                format!("service {} was never registered{hint}", wait.service)
            }
            Err(error @ CallError::Problem(_)) => return Err(error.into()),
            Err(error) => {
                tokio::time::sleep(waiting.left(AGAIN)).await;
                format!("cannot {}; trying again", bare(&error.to_string()))
            }
        };
        waiting.goes_on(there, &hint)?;
    }
}

/// What is missing of a service; `None` if there is enough of it.
fn shortfall(wait: &WaitFor, view: &ServiceView) -> Option<String> {
    let (there, wanted, word) = counted(wait, view.functional, view.addressable);
    if there >= wanted as usize {
        return None;
    }
    let first = view.instances.iter().find(|one| one.status != "passing" && one.status != "warning");
    let why = first.map(|one| {
        let reason = if one.reason.is_empty() { String::new() } else { format!(": {}", one.reason) };
        format!("; {} on {} is {}{reason}", one.name, one.node, one.status)
    });
    let why = why.unwrap_or_default();
    Some(match view.addressable {
        0 => format!("no instance of {} is registered now", wait.service),
        all => format!("{there} of {all} registered instances {word}, {wanted} needed{why}"),
    })
}

/// The number of instances that count, the number needed, and the words for them.
fn counted(wait: &WaitFor, functional: usize, addressable: usize) -> (usize, u32, &'static str) {
    match (wait.functional, wait.addressable) {
        (_, Some(wanted)) => (addressable, wanted, "exist"),
        (Some(wanted), None) => (functional, wanted, "are functional"),
        (None, None) => (functional, 1, "are functional"),
    }
}

/// Replaces this process by the command, if one was given.
fn then(wait: &WaitFor) -> CommandResult {
    let Some((program, arguments)) = wait.command.split_first() else { return Ok(Exit::Yes) };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(Failure::new(Exit::No, format!("run {}: {error}", program.display())))
}
