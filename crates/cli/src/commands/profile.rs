//! `profile`: versioned parameter sets.

use super::lists;
use super::values::{document, parameter_value};
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::Profile;
use std::collections::BTreeSet;
use std::path::Path;

use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::client::{CallError, Client, ListOptions};
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::{Params, ParamsPatch, ParamsSpec, ProfileLive, ProfileRevision};
use bellwether_api::v1::rollout::NewRollout;
use serde::Serialize;
use serde_json::Value;

use crate::args::{Change, Expected, ListFlags, ProfileVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::near::nearest;
use crate::show::table;
use crate::show::time::date;

/// What to write as a JSON Patch.
pub(super) const PATCH_EXAMPLE: &str =
    "write a list of operations, like [{\"op\": \"add\", \"path\": \"/workers\", \"value\": 4}]";

/// What to write as a JSON Merge Patch.
pub(super) const MERGE_EXAMPLE: &str = "write one JSON object, like {\"workers\": 4, \"name\": null}";

pub(super) async fn run(context: &Context, verb: ProfileVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        ProfileVerb::List(flags) => return list(context, &flags).await,
        ProfileVerb::Get { of, revision, key } => get(context, &of.name, revision, key).await?,
        ProfileVerb::Set { of, params, expected, if_absent, change } => {
            let set = pairs(&params)?;
            let if_absent = if if_absent { set.keys().cloned().collect() } else { Vec::new() };
            let if_equal = expected_of(set.keys(), expected)?;
            let patch = ParamsPatch { set, if_equal, if_absent, ..ParamsPatch::default() };
            written(context, &of.name, patch, &change).await?;
        }
        ProfileVerb::Add { of, params, change } => {
            let set = pairs(&params)?;
            let if_absent = set.keys().cloned().collect();
            let patch = ParamsPatch { set, if_absent, ..ParamsPatch::default() };
            written(context, &of.name, patch, &change).await?;
        }
        ProfileVerb::Remove { of, keys, expected, change } => {
            let if_equal = expected_of(keys.iter(), expected)?;
            let patch = ParamsPatch { remove: keys, if_equal, ..ParamsPatch::default() };
            written(context, &of.name, patch, &change).await?;
        }
        ProfileVerb::Patch { of, file, merge, change } => {
            let document = document(&file, if merge { MERGE_EXAMPLE } else { PATCH_EXAMPLE })?;
            let json = if merge { JsonChange::Merge(document) } else { JsonChange::Patch(document) };
            let before = latest(context, &of.name).await?;
            let client = change.client(context);
            let revision = client.change_profile(namespace, &of.name, &json, &change.reason).await?;
            report(context, before, &revision);
            changed(context, &revision, &change).await?;
        }
        ProfileVerb::Replace { of, file, if_file, change } => {
            let if_equal = if_file.as_deref().map(from_file).transpose()?;
            let spec = ParamsSpec { params: from_file(&file)?, if_equal, reason: change.reason.clone() };
            let before = latest(context, &of.name).await?;
            let revision = change.client(context).set_profile(namespace, &of.name, &spec).await?;
            report(context, before, &revision);
            changed(context, &revision, &change).await?;
        }
        ProfileVerb::Live { of, off, reason } => live(context, &of.name, !off, reason).await?,
        ProfileVerb::History { of } => history(context, &of.name).await?,
        ProfileVerb::Diff { of, from, to } => diff(context, &of.name, from, to).await?,
        ProfileVerb::Delete { of, consent } => {
            let name = of.name;
            confirm(&format!("delete profile {name} and its revisions?"), consent)?;
            client.delete_profile(namespace, &name).await?;
            context.show.changed(&format!("profile {name}: deleted"));
        }
    }
    Ok(Exit::Yes)
}

async fn list(context: &Context, flags: &ListFlags) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.profiles(namespace).await;
    lists::show(context, flags, &fill(paths::PROFILES, &[namespace]), read, async |page| {
        shown(context, &page).await
    })
    .await
}

async fn shown(context: &Context, page: &Page<Profile>) -> Result<(), Failure> {
    if super::documents::yaml(context, "profile", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|profile| profile.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|profile| {
            let (by, why) = (profile.by.clone(), profile.reason.clone());
            let live = if profile.live { "yes" } else { "" }.to_owned();
            vec![profile.name.clone(), profile.revision.to_string(), live, date(profile.at_ms), by, why]
        });
        table(&["name", "revision", "live", "changed", "by", "reason"], rows)
    })
}

/// Makes a profile live, or no longer live.
async fn live(context: &Context, name: &str, live: bool, reason: String) -> Result<(), Failure> {
    let after =
        context.client.set_profile_live(&context.namespace, name, &ProfileLive { live, reason }).await?;
    let is = if after.live { "live" } else { "not live" };
    context.show.changed(&format!("profile {name}: {is}"));
    Ok(())
}

impl Change {
    /// The client for it: with its condition on the revision, if it has one.
    fn client(&self, context: &Context) -> Client {
        self.if_revision.map_or_else(|| context.client.clone(), |revision| context.client.only_at(revision))
    }
}

/// Changes single parameters, and reports the revision.
async fn written(context: &Context, name: &str, patch: ParamsPatch, change: &Change) -> Result<(), Failure> {
    let before = latest(context, name).await?;
    let patch = ParamsPatch { reason: change.reason.clone(), ..patch };
    let revision = change.client(context).patch_profile(&context.namespace, name, &patch).await?;
    report(context, before, &revision);
    changed(context, &revision, change).await
}

/// The parameter and value that `--if` expects.
pub(super) fn expected_of<'a>(
    mut keys: impl Iterator<Item = &'a String>,
    expected: Expected,
) -> Result<Params, Failure> {
    let Some(value) = expected.value else { return Ok(Params::new()) };
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(Params::from([(key.clone(), parameter_value(key, &value)?)])),
        _ => Err(Failure::usage("read --if: it is for one parameter")
            .hint("for several, use a JSON Patch with tests: the verb patch")),
    }
}

async fn profile_revision(
    context: &Context,
    name: &str,
    revision: Option<u64>,
) -> Result<ProfileRevision, Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    Ok(match revision {
        Some(number) => client.profile_revision(namespace, name, number).await?,
        None => client.profile(namespace, name).await?,
    })
}

async fn get(
    context: &Context,
    name: &str,
    revision: Option<u64>,
    key: Option<String>,
) -> Result<(), Failure> {
    let profile_revision = profile_revision(context, name, revision).await?;
    let Some(key) = key else {
        let as_document = revision.is_none();
        if as_document
            && super::documents::yaml(context, "profile", std::slice::from_ref(&profile_revision)).await?
        {
            return Ok(());
        }
        let names = || profile_revision.params.keys().cloned().collect();
        return context.show.data(&profile_revision, names, |_| {
            let ProfileRevision { profile, revision, by, at_ms, .. } = &profile_revision;
            let head = format!("{profile}@{revision}, {} by {by} {}", date(*at_ms), profile_revision.reason);
            let rows =
                profile_revision.params.iter().map(|(key, value)| vec![key.clone(), value.to_string()]);
            format!("{}\n\n{}", head.trim_end(), table(&["key", "value"], rows))
        });
    };
    let version = format!("{name}@{}", profile_revision.revision);
    let near = nearest(&key, profile_revision.params.keys().map(String::as_str));
    let near = near.map(|near| format!("did you mean {near}?"));
    let missing = || {
        Failure::new(Exit::No, format!("find parameter {key} in {version}"))
            .hint(near.unwrap_or_else(|| format!("bellwether profile get {name}")))
    };
    let value = profile_revision.params.get(&key).ok_or_else(missing)?;
    // Text is printed as it is, so that a script needs no JSON parser.
    context.show.data(
        value,
        || vec![key.clone()],
        |_| value.as_str().map_or(value.to_string(), str::to_owned),
    )
}

/// Number of a profile's newest revision; `None` if there is no such profile.
async fn latest(context: &Context, name: &str) -> Result<Option<u64>, Failure> {
    match context.client.profile(&context.namespace, name).await {
        Ok(profile) => Ok(Some(profile.revision)),
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reports whether a change made a new revision.
fn report(context: &Context, before: Option<u64>, after: &ProfileRevision) {
    let ProfileRevision { profile, revision, .. } = after;
    let what = match before {
        None => format!("created at revision {revision}"),
        Some(before) if before == *revision => format!("unchanged at revision {revision}"),
        Some(before) => format!("revision {before} → {revision}"),
    };
    context.show.changed(&format!("profile {profile}: {what}"));
}

/// Prints the new revision, and rolls it out if that was asked for.
async fn changed(
    context: &Context,
    profile_revision: &ProfileRevision,
    change: &Change,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    let version = format!("{}@{}", profile_revision.profile, profile_revision.revision);
    context.show.data(profile_revision, || vec![version.clone()], |_| version.clone())?;
    let filter = Some(format!("profile = {}", profile_revision.profile));
    let of = client.listing(ListOptions { filter, ..ListOptions::default() }).entities(namespace).await;
    let of = match of {
        // The change is made: who may not read entities is told of none.
        Err(CallError::Problem(problem)) if problem.code == Code::Forbidden && !change.rollout => {
            return Ok(());
        }
        of => of?.items,
    };
    for entity in of.iter().map(|entity| &entity.name) {
        if change.rollout {
            let new = NewRollout {
                version: Some(version.clone()),
                reason: change.reason.clone(),
                ..NewRollout::default()
            };
            client.start_rollout(namespace, entity, &new).await?;
            context.show.changed(&format!("entity {entity}: rollout of {version} started"));
            context.show.note(&format!("watch it with: bellwether rollout get {entity} -w"));
        } else {
            context.show.note(&format!("roll it out with: bellwether rollout start {entity} {version}"));
        }
    }
    Ok(())
}

async fn history(context: &Context, name: &str) -> Result<(), Failure> {
    let page = context.client.profile_revisions(&context.namespace, name).await?;
    let names = || {
        page.items.iter().map(|profile_revision| format!("{name}@{}", profile_revision.revision)).collect()
    };
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().enumerate().map(|(index, profile_revision)| {
            let before = page.items.get(index + 1).map(|before| &before.params);
            // What the first revision has is new; a revision whose predecessor was forgotten is not compared.
            let none = Params::default();
            let before = before.or((profile_revision.revision == 1).then_some(&none));
            let what = before.map_or_else(String::new, |before| summary(before, &profile_revision.params));
            let ProfileRevision { revision, by, at_ms, reason, .. } = profile_revision;
            vec![revision.to_string(), date(*at_ms), by.clone(), what, reason.clone()]
        });
        table(&["revision", "changed", "by", "parameters", "reason"], rows)
    })
}

async fn diff(context: &Context, name: &str, from: u64, to: Option<u64>) -> Result<(), Failure> {
    let (older, newer) =
        (profile_revision(context, name, Some(from)).await?, profile_revision(context, name, to).await?);
    let changed: Vec<ParameterChange<'_>> = differences(&older.params, &newer.params)
        .into_iter()
        .map(|(key, before, after)| ParameterChange { key, before, after })
        .collect();
    let names = || changed.iter().map(|change| change.key.to_owned()).collect();
    context.show.data(&changed, names, |_| {
        let mut lines = Vec::new();
        for ParameterChange { key, before, after } in &changed {
            lines.extend(before.map(|value| format!("- {key}={value}")));
            lines.extend(after.map(|value| format!("+ {key}={value}")));
        }
        lines.join("\n")
    })
}

/// A parameter that differs between two revisions.
#[derive(Debug, Serialize)]
struct ParameterChange<'a> {
    key: &'a str,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
}

/// The parameters that differ: each key with its value before and after.
fn differences<'a>(
    before: &'a Params,
    after: &'a Params,
) -> Vec<(&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let all = keys.into_iter().map(|key| (key.as_str(), before.get(key), after.get(key)));
    all.filter(|(_, before, after)| before != after).collect()
}

fn summary(before: &Params, after: &Params) -> String {
    let words = differences(before, after).into_iter().map(|(key, before, after)| {
        let sign = match (before, after) {
            (None, _) => '+',
            (Some(_), None) => '-',
            (Some(_), Some(_)) => '~',
        };
        format!("{sign}{key}")
    });
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn pairs(texts: &[String]) -> Result<Params, Failure> {
    let mut params = Params::new();
    for text in texts {
        let wrong = || {
            Failure::usage(format!("read {text:?}: write KEY=VALUE"))
                .hint("bellwether profile set web workers=4 name=front")
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        if params.insert(key.to_owned(), parameter_value(key, value)?).is_some() {
            return Err(Failure::usage(format!("set {key} twice")));
        }
    }
    Ok(params)
}

fn from_file(path: &Path) -> Result<Params, Failure> {
    document(path, "write one JSON object, like {\"workers\": 4}")
}
