//! `entity`: things that change on many targets.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::{Entity, EntitySpec};
use bellwether_api::v1::external::ExternalSettings;
use bellwether_api::v1::policy::{Hooks, Policy};

use super::confirm;
use crate::args::{EntityVerb, PolicyFlags};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;

pub(super) async fn run(context: &Context, verb: EntityVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        EntityVerb::List => {
            let page = client.entities(namespace).await?;
            let names = || page.items.iter().map(|entity| entity.name.clone()).collect();
            context.show.data(&page.items, names, |_| {
                let rows = page.items.iter().map(|entity| {
                    let wanted = entity.requested.as_ref().map_or("-", |wanted| &wanted.version);
                    vec![entity.name.clone(), targets(entity), of(entity), wanted.to_owned()]
                });
                table(&["name", "targets", "of", "version"], rows)
            })?;
        }
        EntityVerb::Get { name } => {
            let entity = client.entity(namespace, &name).await?;
            context.show.data(&entity, || vec![entity.name.clone()], |_| sheet(&entity))?;
        }
        EntityVerb::Set { name, selector, external, silent_after, let_go_after, profile, action, policy } => {
            let external = (external || silent_after.is_some() || let_go_after.is_some())
                .then_some(ExternalSettings { unreachable_after: silent_after, remove_after: let_go_after });
            let spec = Asked { selector, external, profile, action, policy: (*policy).into() };
            set(context, &name, spec).await?;
        }
        EntityVerb::Delete { name, yes } => {
            confirm(&format!("delete entity {name} and its history?"), yes)?;
            client.delete_entity(namespace, &name).await?;
        }
    }
    Ok(Exit::Yes)
}

/// What was said of an entity to be set.
struct Asked {
    selector: Option<String>,
    external: Option<ExternalSettings>,
    profile: Option<String>,
    action: Option<String>,
    policy: Policy,
}

async fn set(context: &Context, name: &str, asked: Asked) -> Result<(), Failure> {
    let Asked { selector, external, profile, action, policy: over } = asked;
    let new = selector.is_none() && external.is_none();
    let spec = match context.client.entity(&context.namespace, name).await {
        Ok(entity) => {
            let policy = entity.policy.overlaid(over);
            let (selector, external) = match (selector, external, entity.external) {
                (Some(selector), _, _) => (selector, None),
                // What is not said stays as it is.
                (None, Some(said), Some(old)) => {
                    let silent_after = said.unreachable_after.or(old.unreachable_after);
                    let let_go_after = said.remove_after.or(old.remove_after);
                    (
                        String::new(),
                        Some(ExternalSettings {
                            unreachable_after: silent_after,
                            remove_after: let_go_after,
                        }),
                    )
                }
                (None, Some(said), None) => (String::new(), Some(said)),
                (None, None, old) => (entity.selector, old),
            };
            EntitySpec { selector, external, profile, action, policy }
        }
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound && new => {
            return Err(Failure::usage(format!("make entity {name} without knowing its targets"))
                .hint(format!("bellwether entity set {name} --selector role=web   (or: --selector all)")));
        }
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
            let selector = selector.unwrap_or_default();
            EntitySpec { selector, external, profile, action, policy: over }
        }
        Err(error) => return Err(error.into()),
    };
    Ok(context.client.set_entity(&context.namespace, name, &spec).await?)
}

/// Where its targets come from.
fn targets(entity: &Entity) -> String {
    if entity.external.is_some() { "external".to_owned() } else { entity.selector.clone() }
}

/// What changes.
fn of(entity: &Entity) -> String {
    match (&entity.profile, &entity.action) {
        (Some(profile), _) => format!("profile {profile}"),
        (None, Some(action)) => format!("action {action}"),
        (None, None) => "versions".to_owned(),
    }
}

fn sheet(entity: &Entity) -> String {
    let policy = &entity.policy;
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let mut lines = vec![
        format!("name         {}", entity.name),
        format!("targets      {}", targets(entity)),
        format!("of           {}", of(entity)),
    ];
    if let Some(ExternalSettings { unreachable_after, remove_after }) = &entity.external {
        lines.push(format!(
            "silent       after {}, let go after {}",
            text(unreachable_after),
            text(remove_after)
        ));
    }
    if let Some(wanted) = &entity.requested {
        lines.push(format!(
            "version      {} ({} by {}) {}",
            wanted.version, wanted.kind, wanted.by, wanted.why
        ));
    }
    let fail_fast = policy.fail_fast.map(|on| on.to_string());
    let retries = policy.retries.map(|count| count.to_string());
    let on_failure = policy.on_failure.map(|word| word.to_string());
    let supersede = policy.supersede.map(|word| word.to_string());
    let deadline = policy.deadline.clone().or_else(|| Some("2m + soak".to_owned()));
    let listed = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.join(", "));
    let (stages, windows, needs) = (listed(&policy.stages), listed(&policy.windows), listed(&policy.needs));
    let monitor = policy.monitor.as_ref().map(|monitor| monitor.url.clone());
    let hooks = policy.hooks.as_ref().map(hooked);
    let fields = [
        ("batch", &policy.batch),
        ("success", &policy.success),
        ("failures", &policy.failures),
        ("unreachable", &policy.unreachable),
        ("soak", &policy.soak),
        ("deadline", &deadline),
        ("fail-fast", &fail_fast),
        ("retries", &retries),
        ("on-failure", &on_failure),
        ("rollback", &policy.rollback),
        ("supersede", &supersede),
    ];
    lines.extend(fields.map(|(name, value)| format!("{name:<12} {}", text(value))));
    let further = [
        ("stages", &stages),
        ("unavailable", &policy.max_unavailable),
        ("progress", &policy.progress),
        ("domain", &policy.domain),
        ("order", &policy.order),
        ("windows", &windows),
        ("needs", &needs),
        ("monitor", &monitor),
        ("hooks", &hooks),
        ("settle", &policy.settle),
    ];
    let said = further.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    lines.extend(said.map(|(name, value)| format!("{name:<12} {value}")));
    lines.join("\n")
}

/// Which hooks are asked, and where.
fn hooked(hooks: &Hooks) -> String {
    let named = [
        ("selection", &hooks.selection),
        ("approval", &hooks.approval),
        ("monitoring", &hooks.monitoring),
        ("removal", &hooks.removal),
    ];
    let asked = named.into_iter().filter_map(|(name, hook)| Some(format!("{name} {}", hook.as_ref()?.url)));
    asked.collect::<Vec<_>>().join(", ")
}

impl From<PolicyFlags> for Policy {
    fn from(from: PolicyFlags) -> Self {
        Self {
            batch: from.batch,
            stages: from.stages,
            max_unavailable: from.max_unavailable,
            success: from.success,
            failures: from.failures,
            unreachable: from.unreachable,
            soak: from.soak,
            deadline: from.deadline,
            fail_fast: from.fail_fast,
            progress: from.progress,
            retries: from.retries,
            domain: from.domain,
            order: from.order,
            windows: from.windows,
            needs: from.needs,
            monitor: None,
            hooks: None,
            on_failure: from.on_failure,
            rollback: from.rollback,
            supersede: from.supersede,
            settle: from.settle,
        }
    }
}
