//! A policy as a play writes it: `batch=2 stages="1;25% approve;100%" windows="Sat 02:00-06:00 UTC"`. Lists are divided by
//! semicolons; a value with spaces stands in quotes.

use bellwether_core::records::policy::hook::{Hook, Hooks, Monitor, MonitorSource};
use bellwether_core::records::policy::{OnFailure, Policy, PolicyDraft, Supersede};

/// Reads it.
pub(super) fn policy(text: &str) -> Result<Policy, String> {
    let mut draft = PolicyDraft::default();
    for field in fields(text) {
        let (name, value) = field.split_once('=').ok_or("field=value")?;
        set(&mut draft, name, value)?;
    }
    Policy::new(draft).map_err(|error| error.to_string())
}

/// The fields, quotes taken off.
fn fields(text: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => fields.push(String::new()),
            letter => fields.last_mut().unwrap().push(letter),
        }
    }
    fields.retain(|field| !field.is_empty());
    fields
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(value: &str) -> Result<Option<T>, String> {
    value.parse().map(Some).map_err(|error: T::Err| error.to_string())
}

fn list<T: std::str::FromStr<Err: std::fmt::Display>>(value: &str) -> Result<Option<Vec<T>>, String> {
    let read = value.split(';').map(|part| part.trim().parse().map_err(|error: T::Err| error.to_string()));
    read.collect::<Result<_, _>>().map(Some)
}

fn set(draft: &mut PolicyDraft, name: &str, value: &str) -> Result<(), String> {
    match name {
        "batch" => draft.batch = read(value)?,
        "stages" => draft.stages = list(value)?,
        "max_unavailable" => draft.max_unavailable = read(value)?,
        "success" => draft.success = read(value)?,
        "failures" => draft.failures = read(value)?,
        "unreachable" => draft.unreachable = read(value)?,
        "soak" => draft.soak = read(value)?,
        "deadline" => draft.deadline = read(value)?,
        "progress" => draft.progress = read(value)?,
        "settle" => draft.settle = read(value)?,
        "fail_fast" => draft.fail_fast = Some(value == "on"),
        "retries" => draft.retries = read(value)?,
        "domain" => draft.domain = read(value)?,
        "order" => draft.order = read(value)?,
        "store" => draft.store = read(value)?,
        "quorum" => draft.quorum = Some(value == "on"),
        "windows" => draft.windows = list(value)?,
        "needs" => draft.needs = list(value)?,
        "rollback" => draft.rollback = read(value)?,
        "monitor" => {
            let hook = Hook::at("http://monitor/".into());
            let failures = value.parse().map_err(|_| "failures in a row")?;
            draft.monitor = Some(Monitor { source: MonitorSource::Hook, hook, failures });
        }
        "hooks" => {
            let hook = |name: &str| {
                value.split(',').any(|hook| hook == name).then(|| Hook::at(format!("http://{name}/")))
            };
            let (selection, approval) = (hook("selection"), hook("approval"));
            let (monitoring, removal) = (hook("monitoring"), hook("removal"));
            draft.hooks = Some(Hooks { selection, approval, monitoring, removal });
        }
        "on_failure" => {
            draft.on_failure = Some(match value {
                "rollback" => OnFailure::Rollback,
                "pause" => OnFailure::Pause,
                _ => OnFailure::Continue,
            });
        }
        "supersede" => {
            draft.supersede = Some(match value {
                "replace" => Supersede::Replace,
                "finish" => Supersede::Finish,
                _ => Supersede::Refuse,
            });
        }
        _ => return Err(format!("no policy field {name}")),
    }
    Ok(())
}
