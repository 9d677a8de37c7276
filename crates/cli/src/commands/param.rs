//! `param`, and the verbs of `node` about params.

use bellwether_api::client::Client;
use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::node_params::{ExplainedLevel, ExplainedParam, LevelKind, NodeParams, NodeProfiles};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::param::{Param, ParamSpec};
use bellwether_api::v1::profile::{ParamsPatch, Profile};

use super::lists;
use super::profile::{MERGE_EXAMPLE, PATCH_EXAMPLE, expected_of, pairs};
use super::values::{document, parameter_value};
use crate::args::{NodeParamsVerb, ParamVerb, ParamsChange};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;
use serde_json::json;

pub(super) async fn run(context: &Context, verb: ParamVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        ParamVerb::Declare { key, kind, schema, default, description, secret } => {
            let schema = match (kind, schema) {
                (Some(kind), _) => json!({ "type": kind }),
                (None, Some(file)) => document(&file, SCHEMA_EXAMPLE)?,
                (None, None) => json!({}),
            };
            let serde_json::Value::Object(schema) = schema else {
                return Err(Failure::usage("cannot read the schema: expected a JSON object".to_owned()));
            };
            let default = default.as_deref().map(|text| parameter_value("--default", text)).transpose()?;
            let spec = ParamSpec { schema, default, description, secret };
            context.client.declare_param(namespace, &key, &spec).await?;
            context.show.changed(&format!("param {key}: declared"));
            Ok(Exit::Yes)
        }
        ParamVerb::List(flags) => {
            let read = async |context: &Context| context.client.params(namespace).await;
            let path = fill(paths::PARAMS, &[namespace]);
            lists::show(context, &flags, &path, read, async |page| declared(context, &page)).await
        }
        ParamVerb::Get { key } => {
            let param = context.client.param(namespace, &key).await?;
            context.show.data(&param, || vec![param.key.clone()], |_| sheet(&param))?;
            Ok(Exit::Yes)
        }
        ParamVerb::Delete { key, consent } => {
            confirm(&format!("delete the declaration of param {key}?"), consent)?;
            context.client.undeclare_param(namespace, &key).await?;
            context.show.changed(&format!("param {key}: no longer declared; its values stay"));
            Ok(Exit::Yes)
        }
        ParamVerb::Explain { of, key, entity } => {
            explain(context, &of.name, key.as_deref(), entity.as_deref()).await
        }
    }
}

/// What a schema looks like, for errors.
const SCHEMA_EXAMPLE: &str = r#"{"type": "integer", "minimum": 1}"#;

fn declared(context: &Context, page: &Page<Param>) -> Result<(), Failure> {
    let names = || page.items.iter().map(|param| param.key.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "no declared params; every value of every param is allowed".to_owned();
        }
        let rows = page.items.iter().map(|param| {
            let default = if param.secret { "secret".to_owned() } else { default_of(param) };
            vec![param.key.clone(), param.schema.to_string(), default, param.description.clone()]
        });
        table(&["key", "schema", "default", "description"], rows)
    })
}

fn default_of(param: &Param) -> String {
    param.default.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// A declared param with all its fields, one a line.
fn sheet(param: &Param) -> String {
    let default = default_of(param);
    let secret = if param.secret { "yes" } else { "no" };
    let description = if param.description.is_empty() { "-" } else { &param.description };
    let Param { key, schema, by, at_ms, .. } = param;
    format!(
        "key          {key}\nschema       {schema}\ndefault      {default}\nsecret       {secret}\ndescription  {description}\ndeclared     by {by}, {}",
        date(*at_ms)
    )
}

/// Changes the params of a node, or the profiles that it reads.
pub(super) async fn change(context: &Context, verb: NodeParamsVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        NodeParamsVerb::Set { of, params, expected, if_absent, change } => {
            let set = pairs(&params)?;
            let if_absent = if if_absent { set.keys().cloned().collect() } else { Vec::new() };
            let if_equal = expected_of(set.keys(), expected)?;
            let patch = ParamsPatch { set, if_equal, if_absent, ..ParamsPatch::default() };
            patched(context, &of.name, patch, &change).await?;
        }
        NodeParamsVerb::Unset { of, keys, expected, change } => {
            let if_equal = expected_of(keys.iter(), expected)?;
            let patch = ParamsPatch { remove: keys, if_equal, ..ParamsPatch::default() };
            patched(context, &of.name, patch, &change).await?;
        }
        NodeParamsVerb::Patch { of, file, merge, change } => {
            let document = document(&file, if merge { MERGE_EXAMPLE } else { PATCH_EXAMPLE })?;
            let json = if merge { JsonChange::Merge(document) } else { JsonChange::Patch(document) };
            let before = context.client.node_params(namespace, &of.name).await?;
            let client = change.client(context);
            report(
                context,
                &before,
                &client.change_node_params(namespace, &of.name, &json, &change.reason).await?,
            )?;
        }
        NodeParamsVerb::Profiles { of, choice, change } => {
            let before = context.client.node_params(namespace, &of.name).await?;
            let wanted = NodeProfiles { profiles: choice.profiles, reason: change.reason.clone() };
            let after = change.client(context).set_node_profiles(namespace, &of.name, &wanted).await?;
            report(context, &before, &after)?;
            warn_of_unread(context, &after).await?;
        }
    }
    Ok(Exit::Yes)
}

impl ParamsChange {
    /// The client for it: with its condition on the revision, if it has one.
    fn client(&self, context: &Context) -> Client {
        self.if_revision.map_or_else(|| context.client.clone(), |revision| context.client.only_at(revision))
    }
}

async fn patched(
    context: &Context,
    node: &str,
    patch: ParamsPatch,
    change: &ParamsChange,
) -> Result<(), Failure> {
    let before = context.client.node_params(&context.namespace, node).await?;
    let patch = ParamsPatch { reason: change.reason.clone(), ..patch };
    let after = change.client(context).patch_node_params(&context.namespace, node, &patch).await?;
    report(context, &before, &after)
}

/// Reports what a change made of the params of a node.
fn report(context: &Context, before: &NodeParams, after: &NodeParams) -> Result<(), Failure> {
    let NodeParams { node, revision, .. } = after;
    let what = match before.revision {
        same if same == *revision => format!("unchanged at revision {revision}"),
        before => format!("params at revision {before} → {revision}"),
    };
    context.show.changed(&format!("node {node}: {what}"));
    context.show.data(after, || vec![revision.to_string()], |_| revision.to_string())
}

/// Warns of profiles in the list that the node does not read, because they are not live.
async fn warn_of_unread(context: &Context, node: &NodeParams) -> Result<(), Failure> {
    if node.profiles.is_empty() {
        return Ok(());
    }
    let all = context.client.profiles(&context.namespace).await?.items;
    let unread = all.iter().filter(|profile| !profile.live && node.profiles.contains(&profile.name));
    for Profile { name, .. } in unread {
        let node = &node.node;
        context.show.note(&format!(
            "warning: profile {name} is not live, so that node {node} does not read it: bellwether profile live {name}"
        ));
    }
    Ok(())
}

async fn explain(context: &Context, node: &str, key: Option<&str>, entity: Option<&str>) -> CommandResult {
    let page = context.client.explain_params(&context.namespace, node, key, entity).await?;
    let names = || page.items.iter().map(|param| param.key.clone()).collect();
    match key {
        None => context.show.data(&page.items, names, |_| {
            let rows = page.items.iter().map(|param| {
                let from = param.levels.iter().find(|level| level.decides).map(level_name);
                vec![param.key.clone(), shown(param.value.as_ref()), from.unwrap_or_default()]
            });
            table(&["key", "value", "from"], rows)
        })?,
        Some(_) => context
            .show
            .data(&page.items, names, |_| page.items.iter().map(levels).collect::<Vec<_>>().join("\n\n"))?,
    }
    let found = key.is_none() || page.items.iter().any(|param| param.value.is_some());
    Ok(if found { Exit::Yes } else { Exit::No })
}

/// The levels of one param, the one that takes precedence first.
fn levels(param: &ExplainedParam) -> String {
    let rows = param.levels.iter().map(|level| {
        let note = match (level.decides, level.read) {
            (true, _) => "decides",
            (false, true) => "",
            (false, false) if level.revision == 0 => "",
            (false, false) => "not live: not read",
        };
        vec![level_name(level), shown(level.value.as_ref()), note.to_owned()]
    });
    format!("{}\n\n{}", param.key, table(&["level", "value", ""], rows))
}

fn level_name(level: &ExplainedLevel) -> String {
    let ExplainedLevel { profile, revision, .. } = level;
    match (level.level, profile) {
        (LevelKind::Profile, Some(profile)) if *revision == 0 => {
            format!("profile {profile} (does not exist)")
        }
        (LevelKind::Profile, Some(profile)) => format!("profile {profile}@{revision}"),
        (LevelKind::Cluster, _) => "cluster".to_owned(),
        (LevelKind::Node | LevelKind::Profile, _) => "node".to_owned(),
    }
}

fn shown(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}
