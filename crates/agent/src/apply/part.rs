//! One part of an apply: its runners one after the other, within one deadline, and its outcome.

mod context;
mod directory;
mod puppet;
mod systemd;

use bellwether_core::local::memory::StepOutcome;

pub(crate) use context::PartContext;
pub(crate) use directory::owned_safely;

use crate::config::recipe::Runner;

/// Runs `runners` in order until one does not succeed. `what` names the part in the evidence.
///
/// Dropping this kills the running command.
pub(crate) async fn run_all(what: &str, runners: &[Runner], job: &mut PartContext<'_>) -> StepOutcome {
    for (number, runner) in (1_usize..).zip(runners) {
        let which = if runners.len() == 1 { what.to_owned() } else { format!("{what}, command {number}") };
        let outcome = match runner {
            Runner::Exec(command) => job.exec(&which, command).await,
            Runner::Puppet(command) => puppet::run(&which, command, job).await,
            Runner::Systemd(unit) => systemd::run(what, unit, job).await,
            Runner::Directory(directory) => directory::run(what, directory, job).await,
        };
        if outcome != StepOutcome::Done {
            return outcome;
        }
    }
    StepOutcome::Done
}
