//! One call of a hook: sends the question, reads the answer, within the hook's timeout. Every failure becomes one line of
//! text.

use bellwether_api::v1::hook::answer::read_answer;
use bellwether_core::records::policy::hook::MonitorSource;
use bellwether_core::rollout::hook_answer::HookAnswer;
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::TargetName;
use http::Method;

use super::call_spec::HookCallSpec;
use super::exchange::{self, HookRequest};
use super::settings::HookSettings;
use super::{prometheus, shape};
use crate::transactor::Transactor;

/// Calls the hook and returns its answer, or why there is none.
pub(super) async fn answer(
    transactor: &Transactor,
    spec: &HookCallSpec,
    settings: &HookSettings,
) -> HookAnswer {
    let timeout = spec.hook.timeout;
    let answer = match tokio::time::timeout(timeout.to_duration(), ask(spec, settings)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(reason)) => HookAnswer::Silent { reason },
        Err(_) => HookAnswer::Silent { reason: format!("timed out after {timeout}") },
    };
    match (&spec.question, answer) {
        (HookQuestion::Removal { targets }, HookAnswer::Removed(gone)) => {
            removed_targets(transactor, spec, targets, gone)
        }
        (_, answer) => answer,
    }
}

async fn ask(spec: &HookCallSpec, settings: &HookSettings) -> Result<HookAnswer, String> {
    if let Some(reason) = settings.refused_address(&spec.hook.url) {
        return Err(reason);
    }
    let bearer = bearer(spec, settings).await?;
    match &spec.source {
        MonitorSource::Hook => {
            let url = spec.hook.url.clone();
            let request = HookRequest { method: Method::POST, url, body: shape::question(spec)?, bearer };
            let reply = exchange::send(&request, settings).await?;
            if !(200..300).contains(&reply.status) {
                return Err(reply.refusal());
            }
            read_answer(&spec.question, &reply.body)
        }
        MonitorSource::Prometheus { query } => {
            let url = prometheus::url(&spec.hook.url, query);
            let request = HookRequest { method: Method::GET, url, body: String::new(), bearer };
            let reply = exchange::send(&request, settings).await?;
            prometheus::answer(&reply)
        }
    }
}

/// The token to send. It is read for every call, so that it can be replaced.
async fn bearer(spec: &HookCallSpec, settings: &HookSettings) -> Result<Option<String>, String> {
    let Some(name) = &spec.hook.token else { return Ok(None) };
    let unknown = || format!("the server's configuration has no token named {name} (hook_tokens)");
    let token = settings.tokens.get(name).ok_or_else(unknown)?;
    if let Some(reason) = token.refusal(name.as_str(), &spec.hook.url) {
        return Err(reason);
    }
    let text = tokio::fs::read_to_string(&token.file).await;
    let text = text.map_err(|error| format!("cannot read the token {name}: {error}"))?;
    Ok(Some(text.trim().to_owned()))
}

/// The targets that a hook removed and that still exist: an answer does not remove nodes.
fn removed_targets(
    transactor: &Transactor,
    spec: &HookCallSpec,
    targets: &[TargetName],
    gone: Vec<TargetName>,
) -> HookAnswer {
    let world = transactor.world();
    let fleet = world.fleets.get(&spec.key.namespace);
    // External targets are removed by the answer.
    if fleet.is_some_and(|fleet| fleet.staleness(&spec.key.entity).is_some()) {
        return HookAnswer::Removed(gone);
    }
    let still = |name: &&TargetName| targets.contains(name) && is_target(transactor, spec, name);
    match gone.iter().find(still) {
        Some(name) => HookAnswer::Silent {
            reason: format!(
                "{name} is a node; cordon it, or change its labels so that the selector no longer matches"
            ),
        },
        None => HookAnswer::Removed(gone),
    }
}

/// Whether it is still a target of the entity: the hook may have removed it itself.
fn is_target(transactor: &Transactor, spec: &HookCallSpec, name: &TargetName) -> bool {
    let world = transactor.world();
    let fleet = world.fleets.get(&spec.key.namespace);
    let board = fleet.and_then(|fleet| fleet.boards.get(&spec.key.entity));
    let target = board.and_then(|board| board.target(name));
    target.is_some_and(|target| target.observation.is_some())
}
