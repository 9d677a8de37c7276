//! `entity`: what is rolled out, to which targets, under which policy.

use super::lists;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use std::collections::BTreeMap;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::Entity;
use bellwether_api::v1::entity::patch::EntityPatch;
use bellwether_api::v1::external::settings::ExternalSettings;
use bellwether_api::v1::policy::{Hooks, Policy};
use serde_json::{Value, json};

use super::policy::PolicyChange;
use crate::args::{EntityVerb, SetEntity};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::near::nearest;
use crate::show::change::differences;
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: EntityVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        EntityVerb::List(flags) => {
            let read = async |context: &Context| context.client.entities(namespace).await;
            let show = async |page: Page<Entity>| {
                if super::documents::yaml(context, "entity", &page.items).await? {
                    return Ok(());
                }
                let names = || page.items.iter().map(|entity| entity.name.clone()).collect();
                let desired = if context.show.is_data() { BTreeMap::new() } else { desired(context).await? };
                context.show.data(&page.items, names, |wide| list(&page.items, &desired, wide))
            };
            return lists::show(context, &flags, &fill(paths::ENTITIES, &[namespace]), read, show).await;
        }
        EntityVerb::Get { name } => {
            let entity = client.entity(namespace, &name).await?;
            if super::documents::yaml(context, "entity", std::slice::from_ref(&entity)).await? {
                return Ok(Exit::Yes);
            }
            let desired = if context.show.is_data() { BTreeMap::new() } else { desired(context).await? };
            let desired = desired.get(&name).map(String::as_str);
            context.show.data(&entity, || vec![entity.name.clone()], |_| sheet(&entity, desired))?;
        }
        EntityVerb::Set(set) => change(context, *set).await?,
        EntityVerb::Delete { name, consent } => {
            confirm(&format!("delete entity {name} and its history?"), consent)?;
            client.delete_entity(namespace, &name).await?;
            context.show.changed(&format!("entity {name}: deleted"));
        }
    }
    Ok(Exit::Yes)
}

/// Creates an entity or changes it, and reports what changed. What is not given stays as it is.
async fn change(context: &Context, set: SetEntity) -> Result<(), Failure> {
    let (name, only_at) = (set.name.clone(), set.if_revision);
    let patch = patch(set)?;
    let names_targets = patch.selector.is_some() || patch.external.is_some();
    let (client, namespace) = (&context.client, &context.namespace);
    let patched = match only_at {
        None => client.patch_entity(namespace, &name, &patch).await,
        Some(revision) => client.patch_entity_at(namespace, &name, &patch, revision).await,
    };
    let patched = match patched {
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound && !names_targets => {
            return Err(without_targets(context, &name).await?);
        }
        patched => patched?,
    };
    let what = match &patched.before {
        None => "created".to_owned(),
        Some(before) => {
            let changes = differences(&comparable(before), &comparable(&patched.after));
            changes.unwrap_or_else(|| "unchanged".to_owned())
        }
    };
    context.show.changed(&format!("entity {name}: {what}"));
    if let Some(warning) = &patched.warning {
        context.show.note(warning);
    }
    Ok(())
}

/// The change that flags ask for.
fn patch(set: SetEntity) -> Result<EntityPatch, Failure> {
    let external = external(&set);
    let PolicyChange { set: policy, unset } = PolicyChange::read(set.policy)?;
    let SetEntity { selector, profile, action, owner, description, .. } = set;
    Ok(EntityPatch { selector, external, profile, action, policy, unset, owner, description })
}

/// The failure to create an entity without targets, which is more likely a mistyped name.
async fn without_targets(context: &Context, name: &str) -> Result<Failure, Failure> {
    let failure = Failure::usage(format!("create entity {name}: no selector is given"));
    let known = context.client.entities(&context.namespace).await?.items;
    let near = nearest(name, known.iter().map(|entity| entity.name.as_str()));
    Ok(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint(format!("bellwether entity set {name} --selector role=web")),
    })
}

/// What `entity set` may change.
fn comparable(entity: &Entity) -> Value {
    json!({
        "selector": entity.selector, "external": entity.external, "profile": entity.profile,
        "action": entity.action, "policy": entity.policy, "owner": entity.owner,
        "description": entity.description,
    })
}

/// Settings for external targets, if any of their flags is given.
fn external(set: &SetEntity) -> Option<ExternalSettings> {
    let (unreachable_after, remove_after) = (set.unreachable_after.clone(), set.remove_after.clone());
    let given = set.external || unreachable_after.is_some() || remove_after.is_some();
    given.then_some(ExternalSettings { unreachable_after, remove_after })
}

/// Where its targets come from.
fn targets(entity: &Entity) -> String {
    match (&entity.external, &entity.workflow) {
        (Some(_), _) => "external".to_owned(),
        (None, Some(_)) => "chosen when the run was started".to_owned(),
        (None, None) => entity.selector.clone(),
    }
}

/// What a version of the entity is.
fn kind(entity: &Entity) -> String {
    match (&entity.profile, &entity.action, &entity.workflow) {
        (Some(profile), _, _) => format!("profile {profile}"),
        (None, Some(action), _) => format!("action {action}"),
        (None, None, Some(workflow)) => format!("workflow {workflow}"),
        (None, None, None) => "versions".to_owned(),
    }
}

/// The version that each entity's targets are to run now, by the entity's name.
pub(super) async fn desired(context: &Context) -> Result<BTreeMap<String, String>, Failure> {
    let overview = context.client.overview(&context.namespace).await?;
    Ok(overview.entities.into_iter().filter_map(|entity| Some((entity.name, entity.desired?))).collect())
}

/// Entities as a table, each with the version that its targets are to run now; a wide one has their owners too.
fn list(entities: &[Entity], desired: &BTreeMap<String, String>, wide: bool) -> String {
    let rows = entities.iter().map(|entity| {
        let version = text(desired.get(&entity.name).map(String::as_str)).to_owned();
        let mut row = vec![entity.name.clone(), targets(entity), kind(entity), version];
        if wide {
            row.push(text(Some(entity.owner.as_str()).filter(|owner| !owner.is_empty())).to_owned());
        }
        row
    });
    let header: &[&str] = if wide {
        &["name", "targets", "kind", "version", "owner"]
    } else {
        &["name", "targets", "kind", "version"]
    };
    table(header, rows)
}

/// An entity with all its fields, one a line, and the version that its targets are to run now.
pub(super) fn sheet(entity: &Entity, desired: Option<&str>) -> String {
    let mut lines = vec![
        format!("name         {}", entity.name),
        format!("targets      {}", targets(entity)),
        format!("kind         {}", kind(entity)),
    ];
    let info = [("owner", &entity.owner), ("description", &entity.description)];
    let written = info.into_iter().filter(|(_, text)| !text.is_empty());
    lines.extend(written.map(|(name, text)| format!("{name:<12} {text}")));
    if !entity.labels.is_empty() {
        let labels = entity.labels.iter().map(|(key, value)| format!("{key}={value}"));
        lines.push(format!("labels       {}", labels.collect::<Vec<_>>().join(",")));
    }
    if let Some(hold) = &entity.hold {
        let reason = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
        lines.push(format!("paused       by {} at {}{reason}", hold.by, date(hold.at_ms)));
    }
    if let Some(ExternalSettings { unreachable_after, remove_after }) = &entity.external {
        lines.push(format!(
            "unreachable  after {} without a report, removed after {}",
            text(unreachable_after.as_deref()),
            text(remove_after.as_deref())
        ));
    }
    lines.extend(desired.map(|version| format!("version      {version}")));
    if let Some(request) = &entity.requested {
        let reason = if request.reason.is_empty() { String::new() } else { format!(": {}", request.reason) };
        let (version, kind, by) = (&request.version, request.kind, &request.by);
        lines.push(format!("requested    {version} ({kind} by {by}{reason})"));
    }
    lines.extend(policy_lines(&entity.policy));
    lines.extend(entity.revision.map(|revision| format!("revision     {revision}")));
    lines.join("\n")
}

/// A text, or a dash in its place.
fn text(value: Option<&str>) -> &str {
    value.unwrap_or("-")
}

/// The fields of a policy: those that every rollout has, and those that are set.
fn policy_lines(policy: &Policy) -> Vec<String> {
    let fail_fast = policy.fail_fast.map(|on| on.to_string());
    let quorum = policy.quorum.map(|on| on.to_string());
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
    let mut lines = fields.map(|(name, value)| format!("{name:<12} {}", text(value.as_deref()))).to_vec();
    let further = [
        ("stages", &stages),
        ("max-unavailable", &policy.max_unavailable),
        ("progress", &policy.progress),
        ("domain", &policy.domain),
        ("order", &policy.order),
        ("store", &policy.store),
        ("quorum", &quorum),
        ("windows", &windows),
        ("needs", &needs),
        ("monitor", &monitor),
        ("hooks", &hooks),
        ("settle", &policy.settle),
    ];
    let said = further.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    lines.extend(said.map(|(name, value)| format!("{name:<12} {value}")));
    lines
}

/// The hooks with their addresses.
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::args::{Args, Command};

    fn entity(owner: &str, description: &str) -> Entity {
        let fields = json!({
            "name": "web", "selector": "all", "kind": "version", "policy": {},
            "owner": owner, "description": description,
        });
        serde_json::from_value(fields).unwrap()
    }

    /// What `entity set web` with these flags makes of an entity, and what it reports.
    fn set(old: &Entity, flags: &[&str]) -> (Entity, Option<String>) {
        let line = ["bellwether", "entity", "set", "web"].iter().chain(flags);
        let matches = crate::args::command().try_get_matches_from(line).unwrap();
        let Command::Entity(EntityVerb::Set(set)) = Args::from_arg_matches(&matches).unwrap().command else {
            panic!("another command")
        };
        let spec = patch(*set).unwrap().applied_to(Some(old)).unwrap().unwrap();
        let new = Entity { owner: spec.owner, description: spec.description, ..old.clone() };
        let report = differences(&comparable(old), &comparable(&new));
        (new, report)
    }

    #[test]
    fn an_owner_and_a_description_are_set_kept_shown_and_unset() {
        let (owned, report) = set(&entity("", ""), &["--owner", "shop team", "--description", "the shop"]);
        assert_eq!(report.unwrap(), "description - → the shop, owner - → shop team");
        assert!(sheet(&owned, None).contains("\nowner        shop team\ndescription  the shop\n"));
        let listed = |wide| list(std::slice::from_ref(&owned), &BTreeMap::new(), wide);
        assert!(listed(true).contains("shop team"));
        assert!(!listed(false).contains("shop team"));

        assert_eq!(set(&owned, &["--selector", "all"]).1, None, "what is not given stays");
        let (unowned, report) = set(&owned, &["--owner", ""]);
        assert_eq!(report.unwrap(), "owner shop team → -");
        let shown = sheet(&unowned, None);
        assert!(!shown.contains("owner") && shown.contains("the shop"), "{shown}");
    }

    #[test]
    fn the_fields_people_write_about_an_entity_are_explained() {
        let fields = crate::fields::all().unwrap();
        for (path, example) in [("entity.owner", "shop team"), ("entity.description", "web servers")] {
            let found = crate::fields::find(&fields, path).unwrap();
            assert!(found.iter().any(|field| format!("{field:?}").contains(example)), "{path}: {found:?}");
        }
    }
}
