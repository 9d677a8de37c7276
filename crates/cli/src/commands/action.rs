//! `action`: the actions of this machine's agent.

use serde::Serialize;

use crate::args::{ActionVerb, Global};
use crate::exit::{CommandResult, Exit};
use crate::show::{Show, table};

/// An action as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    run: Vec<String>,
    timeout: String,
    idempotent: bool,
}

pub(super) fn run(global: &Global, verb: &ActionVerb) -> CommandResult {
    let ActionVerb::List { config } = verb;
    let config = super::agent::load(config)?;
    let all = config.actions.iter().map(|(name, action)| Listed {
        name: name.to_string(),
        run: action.command.argv.clone(),
        timeout: action.timeout.to_string(),
        idempotent: action.idempotent,
    });
    let all: Vec<Listed> = all.collect();
    let names = || all.iter().map(|action| action.name.clone()).collect();
    Show::new(global).data(&all, names, |_| {
        let rows = all.iter().map(|action| {
            let again = if action.idempotent { "yes" } else { "no" };
            vec![action.name.clone(), action.run.join(" "), action.timeout.clone(), again.to_owned()]
        });
        table(&["name", "runs", "timeout", "idempotent"], rows)
    })?;
    Ok(Exit::Yes)
}
