//! `simulate`: policies tried on a made-up fleet, in virtual time and with the real decider. Asks no server.

pub(crate) mod faults;
mod plot;
pub(crate) mod policies;
mod report;
pub(crate) mod spread;
mod trial;

use crate::args::{Global, Simulate};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::{Show, tell};

pub(super) fn run(global: &Global, args: &Simulate) -> CommandResult {
    let policies = policies::all(&args.policies, &args.policy_files)?;
    if let Some(path) = &args.svg {
        // Found out before the work, not after it. What is there already is not touched yet.
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|error| unwritable(path, &error))?;
    }
    let mut stage = trial::TrialSetup::new(args)?;
    let trials: Vec<_> = policies.iter().map(|named| stage.play(named)).collect();
    let report = report::Report::of(args, &trials);
    Show::new(global).data(&report, || report.names(), |_| report.human())?;
    if let Some(path) = &args.svg {
        let plot = plot::draw(args, &trials).map_err(|error| unwritable(path, &error))?;
        std::fs::write(path, plot).map_err(|error| unwritable(path, &error))?;
        tell(&format!("the plot is in {}", path.display()));
    }
    Ok(Exit::Yes)
}

fn unwritable(path: &std::path::Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::No, format!("write the plot to --svg {}: {error}", path.display()))
        .hint("name a file in a directory that is there and can be written, like: --svg plot.svg")
}
