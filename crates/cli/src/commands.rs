//! The commands, one file per noun. Each asks the API and shows the answer; none decides anything about the fleet.

mod action;
mod agent;
mod apply;
mod contexts;
mod demo;
mod describe;
mod dev;
mod documents;
mod entity;
mod events;
mod explain;
mod fleet;
mod freeze;
mod local;
mod lock;
mod manual;
mod node;
mod overview;
mod pause;
mod profile;
mod rollout;
mod server;
mod service;
pub(crate) mod simulate;
mod slot;
mod statuses;
mod token;
mod transfer;
mod wait;

use crate::args::{Args, Command, Global};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};

/// Does what the command line says.
pub(crate) async fn run(args: Args) -> CommandResult {
    let global = args.global;
    match args.command {
        Command::Demo(demo) => demo::run(&global, &demo).await,
        Command::DemoService(service) => demo::service::run(&service).await,
        Command::Dev(dev) => dev::run(&dev).await,
        Command::Server(verb) => server::run(&global, verb).await,
        Command::Agent(verb) => agent::run(&global, verb).await,
        Command::Context(verb) => contexts::run(&global, verb),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
        Command::Simulate(simulate) => simulate::run(&global, &simulate),
        Command::Fleet(verb) => fleet::run(&global, verb).await,
        Command::Status => overview::status(&context(&global)?).await,
        Command::Why { subject } => overview::why(&context(&global)?, &subject).await,
        Command::Events(events) => events::run(&context(&global)?, &events).await,
        Command::Node(verb) => node::run(&context(&global)?, verb).await,
        Command::Entity(verb) => entity::run(&context(&global)?, verb).await,
        Command::Profile(verb) => profile::run(&context(&global)?, verb).await,
        Command::Action(verb) => action::run(&global, &verb),
        Command::Service(verb) => service::run(&global, verb).await,
        Command::Wait(wait) => wait::run(&context(&global)?, wait).await,
        Command::Rollout(verb) => rollout::run(&context(&global)?, verb).await,
        Command::Freeze(verb) => freeze::run(&context(&global)?, verb).await,
        Command::Lock(verb) => lock::run(&context(&global)?, verb).await,
        Command::LockChild(child) => lock::child::run(&child),
        Command::Pause(verb) => pause::run(&context(&global)?, verb).await,
        Command::Slot(verb) => slot::run(&context(&global)?, verb).await,
        Command::StopEverything(stop) => freeze::stop_everything(&context(&global)?, stop).await,
        Command::Apply(flags) => apply::apply(&context(&global)?, &flags).await,
        Command::Diff { from } => apply::diff(&context(&global)?, &from).await,
        Command::Export => documents::export(&context(&global)?).await,
        Command::Describe { subject } => describe::run(&context(&global)?, &subject).await,
        Command::Explain { field } => explain::run(&global, field.as_deref()),
        Command::Token(verb) => token::run(&context(&global)?, verb).await,
        Command::JoinToken(verb) => token::join(&context(&global)?, verb).await,
    }
}

fn context(global: &Global) -> Result<Context, Failure> {
    Context::new(global)
}

/// Lets this process be asked to stop when the one that started it ends, however it ends.
fn follow_parent(follow: bool) -> Result<(), Failure> {
    if !follow {
        return Ok(());
    }
    let set = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    set.map_err(|error| Failure::ours(format!("follow the parent process: {error}")))
}

/// Asks before something that cannot be undone; refuses where nobody can answer.
fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    use std::io::IsTerminal;
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Refused, "ask whether that is meant: nobody is at the terminal")
            .hint("say --yes if it is"));
    }
    crate::show::tell(&format!("{question} [y/N]"));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) | Err(_) => Err(Failure::new(Exit::Refused, "go on: it was not confirmed")),
    }
}
