//! The commands, one file per noun. Each calls the API and shows the answer; none decides anything about the fleet.

mod action;
mod agent;
mod apply;
mod audit;
mod authorities;
mod backup;
mod bundle;
mod cluster;
mod contexts;
mod demo;
mod describe;
mod dev;
mod doctor;
mod documents;
mod drain;
mod ensemble;
mod entity;
mod events;
mod explain;
mod filter;
mod fleet;
mod freeze;
mod hosts;
mod job;
mod lists;
mod local;
mod lock;
mod manual;
mod namespace;
mod node;
mod overview;
mod own_agent;
mod param;
mod past_rollout;
mod pause;
mod policy;
mod process_log;
mod profile;
mod reaction;
mod role;
mod rollout;
mod runs;
mod schedule;
mod secret;
mod selected_nodes;
mod server;
mod server_join;
mod service;
mod simulate;
mod sink;
mod slot;
mod statuses;
mod store_check;
mod subject;
mod targets;
mod token;
mod transfer;
mod values;
mod wait;
mod workflow;

pub(crate) use lock::guard as lock_guard;

use crate::args::{Args, Command};
use crate::context::Context;
use crate::exit::CommandResult;

/// Runs the command.
pub(crate) async fn run(args: Args) -> CommandResult {
    let global = args.global;
    match args.command {
        Command::Demo(demo) => demo::run(&global, &demo).await,
        Command::DemoService(service) => demo::service::run(&service).await,
        Command::Dev(dev) => dev::run(&dev).await,
        Command::Server(verb) => server::run(&global, verb).await,
        Command::Agent(verb) => agent::run(&global, verb).await,
        Command::Context(verb) => contexts::run(&global, verb).await,
        Command::Completions { shell } => manual::completions(&shell),
        Command::Man { directory } => manual::pages(&global, &directory),
        Command::Simulate(simulate) => simulate::run(&global, &simulate),
        Command::Fleet(verb) => fleet::run(&global, verb).await,
        Command::Doctor(doctor) => doctor::run(&global, &doctor).await,
        Command::Debug(verb) => bundle::run(&global, verb).await,
        Command::Status => overview::status(&Context::new(&global)?).await,
        Command::Why { subject } => overview::why(&Context::new(&global)?, &subject).await,
        Command::Events(events) => events::run(&Context::new(&global)?, &events).await,
        Command::Node(verb) => node::run(&Context::new(&global)?, verb).await,
        Command::Namespace(verb) => namespace::run(&Context::new(&global)?, verb).await,
        Command::Entity(verb) => entity::run(&Context::new(&global)?, verb).await,
        Command::Schedule(verb) => schedule::run(&Context::new(&global)?, *verb).await,
        Command::Reaction(verb) => reaction::run(&Context::new(&global)?, *verb).await,
        Command::Sink(verb) => sink::run(&Context::new(&global)?, *verb).await,
        Command::Ensemble(verb) => ensemble::run(&Context::new(&global)?, *verb).await,
        Command::Cluster(verb) => cluster::run(&Context::new(&global)?, *verb).await,
        Command::Filter(verb) => filter::run(&Context::new(&global)?, verb).await,
        Command::Param(verb) => param::run(&Context::new(&global)?, verb).await,
        Command::Secret(verb) => secret::run(&Context::new(&global)?, verb).await,
        Command::Profile(verb) => profile::run(&Context::new(&global)?, verb).await,
        Command::Action(verb) => action::run(&global, &verb),
        Command::Service(verb) => service::run(&global, verb).await,
        Command::Wait(wait) => wait::run(&global, &wait).await,
        Command::Rollout(verb) => rollout::run(&Context::new(&global)?, verb).await,
        Command::Freeze(verb) => freeze::run(&Context::new(&global)?, verb).await,
        Command::Lock(verb) => lock::run(&Context::new(&global)?, verb).await,
        Command::LockChild(child) => lock::child::run(&child),
        Command::Pause(verb) => pause::run(&Context::new(&global)?, verb).await,
        Command::Task(verb) => workflow::task(&Context::new(&global)?, verb).await,
        Command::Stage(verb) => workflow::stage(&Context::new(&global)?, verb).await,
        Command::Run(verb) => runs::runs(&Context::new(&global)?, verb).await,
        Command::Job(verb) => job::run(&Context::new(&global)?, verb).await,
        Command::Workflow(verb) => workflow::workflow(&Context::new(&global)?, verb).await,
        Command::Slot(verb) => slot::run(&Context::new(&global)?, verb).await,
        Command::StopEverything(stop) => freeze::stop_everything(&Context::new(&global)?, stop).await,
        Command::Apply(flags) => apply::apply(&Context::new(&global)?, &flags).await,
        Command::Diff { from } => apply::diff(&Context::new(&global)?, &from).await,
        Command::Export(flags) => documents::export(&Context::new(&global)?, &flags).await,
        Command::Describe { subject } => describe::run(&Context::new(&global)?, &subject).await,
        Command::Explain { field } => explain::run(&global, field.as_deref()),
        Command::Token(verb) => token::run(&Context::new(&global)?, verb).await,
        Command::Role(verb) => role::run(&Context::new(&global)?, verb).await,
        Command::Audit(verb) => audit::run(&Context::new(&global)?, verb).await,
        Command::Auth(verb) => role::auth(&Context::new(&global)?, verb).await,
        Command::JoinToken(verb) => token::join(&Context::new(&global)?, verb).await,
    }
}

#[cfg(test)]
mod tests;
