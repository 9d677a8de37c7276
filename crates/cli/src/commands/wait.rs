//! `wait`: until a service has enough instances. Long polls; each change of the reason is printed once.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use crate::args::WaitFor;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, bare};

/// Longest wait of one long poll: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// Pause before another attempt to reach a server.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &Context, wait: WaitFor) -> CommandResult {
    let timeout = wait.timeout;
    let until = timeout.map(|timeout| Instant::now() + timeout.to_duration());
    let (mut index, mut said) = (0, String::new());
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let hang = left.map_or(HANG, |left| left.min(HANG));
        let asked = context.client.service(&context.namespace, &wait.service, Some(index), hang).await;
        let there = match asked {
            Ok(view) => {
                index = view.revision;
                let (there, wanted, word) = counted(&wait, view.functional, view.addressable);
                if there >= wanted as usize {
                    return then(&wait);
                }
                let first =
                    view.instances.iter().find(|one| one.status != "passing" && one.status != "warning");
                let why = first.map(|one| {
                    let reason =
                        if one.reason.is_empty() { String::new() } else { format!(": {}", one.reason) };
                    format!("; {} on {} is {}{reason}", one.name, one.node, one.status)
                });
                let why = why.unwrap_or_default();
                match view.addressable {
                    0 => format!("no instance of {} is registered now", wait.service),
                    all => format!("{there} of {all} registered instances {word}, {wanted} needed{why}"),
                }
            }
            // A service that was never registered may be registered later: the wait goes on.
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                index = match context.client.services(&context.namespace, None).await {
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
                tokio::time::sleep(left.map_or(AGAIN, |left| left.min(AGAIN))).await;
                format!("cannot {}; trying again", bare(&error.to_string()))
            }
        };
        if there != said {
            context.show.note(&format!("waiting: {there}"));
            said = there;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let timeout = timeout.unwrap_or(Span::ZERO);
            return Err(Failure::stated(
                Exit::Timeout,
                format!("waited {} for service {}: {said}", timeout.brief(), wait.service),
            )
            .hint(format!("bellwether service get {}", wait.service)));
        }
    }
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
