//! `wait`: until so many instances of a service serve. Watched, not polled; says what is there instead, once for each change.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use crate::args::WaitFor;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::tell;

/// How long one question hangs at most: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// After a server that cannot be reached was asked, it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &Context, wait: WaitFor) -> CommandResult {
    let timeout = wait.timeout.as_deref().map(str::parse::<Span>).transpose();
    let timeout = timeout.map_err(|error| Failure::usage(format!("read the timeout: {error}")))?;
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
                let why =
                    first.map(|one| format!("; {} on {}: {} {}", one.name, one.node, one.status, one.reason));
                let why = why.map(|why| why.trim_end().to_owned()).unwrap_or_default();
                match view.addressable {
                    0 => format!("nobody offers {} now", wait.service),
                    all => format!("{} {word} of {all} registered, {wanted} wanted{why}", there),
                }
            }
            // A name that nobody ever offered may be offered yet: what changes is heard of.
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                index = match context.client.services(&context.namespace, None).await {
                    Ok(page) => page.revision,
                    // There is no such namespace: nobody will ever offer anything there.
                    Err(error @ CallError::Problem(_)) => return Err(error.into()),
                    // The next question says that nobody answers, and waits.
                    Err(_) => 0,
                };
                let hint = problem.hint.filter(|hint| hint.starts_with("did you mean"));
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                format!("nobody ever offered {}{hint}", wait.service)
            }
            Err(error @ CallError::Problem(_)) => return Err(error.into()),
            Err(error) => {
                tokio::time::sleep(left.map_or(AGAIN, |left| left.min(AGAIN))).await;
                format!("could not {error}; asking again")
            }
        };
        if there != said {
            tell(&format!("waits: {there}"));
            said = there;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let timeout = timeout.unwrap_or(Span::ZERO);
            return Err(Failure::new(Exit::Timeout, format!("wait any longer than {timeout}: {said}"))
                .hint(format!("bellwether service get {}", wait.service)));
        }
    }
}

/// How many there are of those that count, how many are wanted, and the word for them.
fn counted(wait: &WaitFor, functional: usize, addressable: usize) -> (usize, u32, &'static str) {
    match (wait.functional, wait.addressable) {
        (_, Some(wanted)) => (addressable, wanted, "are"),
        (Some(wanted), None) => (functional, wanted, "serve"),
        (None, None) => (functional, 1, "serve"),
    }
}

/// Becomes the command that was to be run, if there is one.
fn then(wait: &WaitFor) -> CommandResult {
    let Some((program, arguments)) = wait.command.split_first() else { return Ok(Exit::Yes) };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(Failure::new(Exit::No, format!("run {}: {error}", program.display())))
}
