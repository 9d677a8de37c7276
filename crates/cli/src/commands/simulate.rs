//! `simulate`: runs policies on a simulated fleet, in virtual time and with the real decider. Works offline.

mod plot;
mod report;
mod trial;

use crate::args::{Global, Simulate};
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::Show;

pub(super) fn run(global: &Global, args: &Simulate) -> CommandResult {
    let policies = crate::simulation::policies::all(&args.policies, &args.policy_files)?;
    if let Some(path) = &args.svg {
        // Fails before the work rather than after it. An existing file is not changed yet.
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
        Show::new(global).note(&format!("plot written to {}", path.display()));
    }
    Ok(Exit::Yes)
}

fn unwritable(path: &std::path::Path, error: &dyn std::error::Error) -> Failure {
    Failure::local(LocalFault::Output, format!("write the plot to --svg {}: {error}", path.display()))
        .hint("name a file in a directory that exists and can be written, like --svg plot.svg")
}
