//! `profile`: bags of params, and their revisions.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use bellwether_api::v1::profile::{Params, ProfilePatch, ProfileRevision, ProfileSpec};
use bellwether_api::v1::rollout::NewRollout;
use serde_json::Value;

use super::confirm;
use crate::args::{Change, ProfileVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::date;
use crate::show::{print, table, tell};

/// Longest file of params: more than any profile may have.
const MAX_FILE_BYTES: u64 = 1 << 20;

pub(super) async fn run(context: &Context, verb: ProfileVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        ProfileVerb::List => {
            let page = client.profiles(namespace).await?;
            if super::documents::yaml(context, "profile", &page.items).await? {
                return Ok(Exit::Yes);
            }
            let names = || page.items.iter().map(|profile| profile.name.clone()).collect();
            context.show.data(&page.items, names, |_| {
                let rows = page.items.iter().map(|profile| {
                    let (by, why) = (profile.by.clone(), profile.reason.clone());
                    vec![profile.name.clone(), profile.revision.to_string(), date(profile.at_ms), by, why]
                });
                table(&["name", "revision", "changed", "by", "why"], rows)
            })?;
        }
        ProfileVerb::Get { name, revision, key } => get(context, &name, (revision, key)).await?,
        ProfileVerb::Set { name, params, change } => {
            let (reference, why) = (change.reference, change.why.clone());
            let patch = ProfilePatch { set: pairs(&params)?, remove: Vec::new(), reference, reason: why };
            let profile_revision = client.patch_profile(namespace, &name, &patch).await?;
            changed(context, &profile_revision, &change).await?;
        }
        ProfileVerb::Remove { name, keys, change } => {
            let (reference, why) = (change.reference, change.why.clone());
            let patch = ProfilePatch { set: Params::new(), remove: keys, reference, reason: why };
            let profile_revision = client.patch_profile(namespace, &name, &patch).await?;
            changed(context, &profile_revision, &change).await?;
        }
        ProfileVerb::Replace { name, file, change } => {
            let (reference, why) = (change.reference, change.why.clone());
            let spec = ProfileSpec { params: from_file(&file)?, reference, reason: why };
            let profile_revision = client.set_profile(namespace, &name, &spec).await?;
            changed(context, &profile_revision, &change).await?;
        }
        ProfileVerb::History { name } => history(context, &name).await?,
        ProfileVerb::Diff { name, from, to } => diff(context, &name, (from, to)).await?,
        ProfileVerb::Delete { name, yes } => {
            confirm(&format!("delete profile {name} and its revisions?"), yes)?;
            client.delete_profile(namespace, &name).await?;
        }
    }
    Ok(Exit::Yes)
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
    (revision, key): (Option<u64>, Option<String>),
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
    let missing = || {
        Failure::new(Exit::No, format!("find param {key:?} in {version}"))
            .hint(format!("see which there are: bellwether profile get {name}"))
    };
    let value = profile_revision.params.get(&key).ok_or_else(missing)?;
    // Text is printed as it is, so that a script needs no JSON.
    context.show.data(
        value,
        || vec![key.clone()],
        |_| value.as_str().map_or(value.to_string(), str::to_owned),
    )
}

/// Says which revision there is now, and rolls it out if that was asked for.
async fn changed(
    context: &Context,
    profile_revision: &ProfileRevision,
    change: &Change,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    let version = format!("{}@{}", profile_revision.profile, profile_revision.revision);
    context.show.data(profile_revision, || vec![version.clone()], |_| version.clone())?;
    let all = client.entities(namespace).await?.items;
    let of = all.iter().filter(|entity| entity.profile.as_ref() == Some(&profile_revision.profile));
    for entity in of.map(|entity| &entity.name) {
        if change.rollout {
            let new = NewRollout {
                version: Some(version.clone()),
                reason: change.why.clone(),
                policy: Default::default(),
                plan: None,
            };
            client.start_rollout(namespace, entity, &new).await?;
            tell(&format!("started {version}; watch it with: bellwether rollout get {entity} -w"));
        } else {
            tell(&format!("roll it out with: bellwether rollout start {entity} {version}"));
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
            let what = before.map_or_else(String::new, |before| summary(before, &profile_revision.params));
            let ProfileRevision { revision, by, at_ms, reason, .. } = profile_revision;
            vec![revision.to_string(), date(*at_ms), by.clone(), what, reason.clone()]
        });
        table(&["revision", "changed", "by", "params", "why"], rows)
    })
}

async fn diff(context: &Context, name: &str, (from, to): (u64, Option<u64>)) -> Result<(), Failure> {
    let (older, newer) =
        (profile_revision(context, name, Some(from)).await?, profile_revision(context, name, to).await?);
    let mut lines = Vec::new();
    for (key, before, after) in differences(&older.params, &newer.params) {
        lines.extend(before.map(|value| format!("- {key}={value}")));
        lines.extend(after.map(|value| format!("+ {key}={value}")));
    }
    print(&lines.join("\n"));
    Ok(())
}

/// What differs: each key with its value before and after.
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

fn pairs(texts: &[String]) -> Result<Params, Failure> {
    let mut params = Params::new();
    for text in texts {
        let wrong = || {
            Failure::usage(format!("read {text:?}: it is not KEY=VALUE"))
                .hint("bellwether profile set web workers=4 name=front")
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        if params.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("set {key:?} twice")));
        }
    }
    Ok(params)
}

fn from_file(path: &Path) -> Result<Params, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("read {}: {error}", path.display()));
    let mut text = String::new();
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| failed(&error))?)
    };
    source.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(|error| failed(&error))?;
    serde_json::from_str(&text)
        .map_err(|error| failed(&error).hint("the file holds one JSON object: {\"workers\": 4}"))
}
