//! `secret`: values that params name, encrypted where they are stored.

use std::collections::BTreeMap;

use bellwether_api::number::inexact;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::ParamsPatch;
use bellwether_api::v1::secret::{Secret, SecretKeys, SecretMark, SecretSpec};
use bellwether_core::words::plural::plural;
use serde_json::Value;

use super::lists;
use super::values::text_of;
use crate::args::{Output, SecretVerb, SetSecret};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::time::date;
use crate::show::{print_data, table};

pub(super) async fn run(context: &Context, verb: SecretVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        SecretVerb::Set(set) => return self::set(context, set).await,
        SecretVerb::List(flags) => {
            let read = async |context: &Context| context.client.secrets(namespace).await;
            let path = fill(paths::SECRETS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page)).await;
        }
        SecretVerb::Get { name } => {
            let secret = client.secret(namespace, &name).await?;
            context.show.data(&secret, || vec![secret.name.clone()], |_| sheet(&secret))?;
        }
        SecretVerb::Reveal { name, profile, node } => {
            let revealed = match (&profile, &node) {
                (Some(profile), _) => client.reveal_of_profile(namespace, profile, &name).await?,
                (None, Some(node)) => client.reveal_of_node(namespace, node, &name).await?,
                (None, None) => client.reveal_secret(namespace, &name).await?,
            };
            let text = || match &revealed.value {
                Value::String(text) => text.clone(),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => other.to_string(),
            };
            if matches!(context.show.output, Output::Json | Output::Yaml) || context.show.terminal {
                context.show.data(&revealed, || vec![text()], |_| text())?;
            } else {
                // A file or a program gets every character of it.
                print_data(&text())?;
            }
        }
        SecretVerb::Propagate { name, reason } => {
            let secret = client.secret(namespace, &name).await?;
            propagate(context, &secret, &reason).await?;
        }
        SecretVerb::Delete { name, consent } => {
            let secret = client.secret(namespace, &name).await?;
            let uses = secret.uses.len() + usize::try_from(secret.hidden_uses).unwrap_or(usize::MAX);
            let kept = if uses == 0 {
                String::new()
            } else {
                format!(" {} that have its value keep it.", plural(uses, "param"))
            };
            confirm(&format!("delete secret {name}?{kept}"), consent)?;
            client.delete_secret(namespace, &name).await?;
            context.show.changed(&format!("secret {name}: deleted"));
        }
        SecretVerb::Keys => {
            let keys = client.secret_keys().await?;
            let names = || keys.keys.iter().map(|key| key.id.clone()).collect();
            context.show.data(&keys, names, |_| shown(&keys))?;
        }
    }
    Ok(Exit::Yes)
}

async fn set(context: &Context, set: SetSecret) -> CommandResult {
    let SetSecret {
        name,
        file,
        json,
        provider,
        reference,
        readers,
        description,
        if_revision,
        propagate,
        reason,
    } = set;
    let value = match file {
        None => None,
        Some(file) => {
            let text = text_of(&file)?;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            if text.is_empty() {
                return Err(Failure::usage(format!(
                    "cannot read the value of secret {name}: {} is empty",
                    file.display()
                )));
            }
            Some(if json { parsed(&name, text)? } else { Value::String(text.to_owned()) })
        }
    };
    let readers = Some(readers).filter(|readers| !readers.is_empty());
    if value.is_none() && provider.is_none() && readers.is_none() && description.is_none() {
        let failure = Failure::usage(format!("cannot change secret {name}: nothing to set is given"));
        return Err(failure.hint(format!("printf %s VALUE | bellwether secret set {name} --file -")));
    }
    let spec = SecretSpec { value, provider, reference, readers, description, reason: reason.clone() };
    let client =
        if_revision.map_or_else(|| context.client.clone(), |revision| context.client.only_at(revision));
    let secret = client.set_secret(&context.namespace, &name, &spec).await?;
    context.show.changed(&format!("secret {name}: revision {}", secret.revision));
    if propagate {
        self::propagate(context, &secret, &reason).await?;
        return Ok(Exit::Yes);
    }
    let behind = secret.uses.values().filter(|revision| **revision < secret.revision).count();
    if behind > 0 {
        context.show.note(&format!(
            "{} still {} the value before; give {} this one: bellwether secret propagate {name}",
            plural(behind, "param"),
            if behind == 1 { "has" } else { "have" },
            if behind == 1 { "it" } else { "them" }
        ));
    }
    Ok(Exit::Yes)
}

/// The JSON value of a secret. What is wrong with it is said without its text.
fn parsed(name: &str, text: &str) -> Result<Value, Failure> {
    if inexact(text).is_some() {
        let what = format!(
            "cannot read the value of secret {name}: a number in it cannot be kept with all its digits"
        );
        return Err(Failure::usage(what).hint("to keep it as text, quote it"));
    }
    serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Failure::usage(format!("cannot read the value of secret {name}: not JSON at {place}"))
    })
}

/// Writes the params again that have the value of an earlier revision.
async fn propagate(context: &Context, secret: &Secret, reason: &str) -> Result<(), Failure> {
    let mut behind: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for used in secret.uses.iter().filter(|(_, revision)| **revision < secret.revision).map(|(used, _)| used)
    {
        let mut parts = used.splitn(3, '/');
        if let (Some(kind), Some(name), Some(key)) = (parts.next(), parts.next(), parts.next()) {
            behind.entry((kind, name)).or_default().push(key);
        }
    }
    if secret.hidden_uses > 0 {
        let hidden = plural(usize::try_from(secret.hidden_uses).unwrap_or(usize::MAX), "param");
        context.show.note(&format!("{hidden} that this token may not read stay as they are"));
    }
    if behind.is_empty() {
        context.show.note(&format!("every param that names secret {} has its present value", secret.name));
        return Ok(());
    }
    let mark = SecretMark::Named(&secret.name).to_value();
    for ((kind, name), keys) in behind {
        let set = keys.into_iter().map(|key| (key.to_owned(), mark.clone())).collect();
        let patch = ParamsPatch { set, reason: reason.to_owned(), ..ParamsPatch::default() };
        let (client, namespace) = (&context.client, &context.namespace);
        if kind == "profile" {
            let revision = client.patch_profile(namespace, name, &patch).await?.revision;
            context.show.changed(&format!("profile {name}: revision {revision}"));
        } else {
            let revision = client.patch_node_params(namespace, name, &patch).await?.revision;
            context.show.changed(&format!("node {name}: revision {revision} of its params"));
        }
    }
    Ok(())
}

fn list(context: &Context, page: &Page<Secret>) -> Result<(), Failure> {
    let names = || page.items.iter().map(|secret| secret.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "no secrets".to_owned();
        }
        let rows = page.items.iter().map(|secret| {
            let place = secret
                .provider
                .as_ref()
                .map_or_else(|| "stored".to_owned(), |name| format!("provider {name}"));
            let description = secret.description.clone();
            vec![
                secret.name.clone(),
                secret.revision.to_string(),
                place,
                secret.readers.join(" "),
                description,
            ]
        });
        table(&["secret", "revision", "value", "readers", "description"], rows)
    })
}

/// A secret with all its fields, one a line, and what has its value.
fn sheet(secret: &Secret) -> String {
    let value = match (&secret.provider, &secret.reference) {
        (Some(provider), reference) => {
            format!("of provider {provider}, reference {}", reference.as_deref().unwrap_or("-"))
        }
        (None, _) => "***".to_owned(),
    };
    let Secret { name, revision, by, at_ms, .. } = secret;
    let description = if secret.description.is_empty() { "-" } else { &secret.description };
    let mut text = format!(
        "secret       {name}\nrevision     {revision}\nvalue        {value}\nreaders      {}\ndescription  {description}\n\
         changed      by {by}, {}",
        secret.readers.join(" "),
        date(*at_ms)
    );
    for (used, has) in &secret.uses {
        let behind = if has < revision { format!(", revision {has}") } else { String::new() };
        text.push_str(&format!("\nused by      {used}{behind}"));
    }
    if secret.hidden_uses > 0 {
        let hidden = plural(usize::try_from(secret.hidden_uses).unwrap_or(usize::MAX), "param");
        text.push_str(&format!("\nused by      {hidden} that this token may not read"));
    }
    text
}

fn shown(keys: &SecretKeys) -> String {
    let rows = keys.keys.iter().map(|key| {
        let state = if key.active { "active" } else { "-" };
        let servers = if key.servers.is_empty() { "none".to_owned() } else { key.servers.join(" ") };
        vec![key.id.clone(), state.to_owned(), key.secrets.to_string(), servers]
    });
    let mut text = table(&["key", "state", "secrets", "servers"], rows);
    for warning in &keys.warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    text
}
