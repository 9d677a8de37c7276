//! `sink`.

use std::collections::BTreeMap;

use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::sink::state::{SinkState, SinkStatus};
use bellwether_api::v1::sink::{EnableSink, ReplayEvents, Sink, SinkFileSpec, SinkSpec, WebhookSpec};
use bellwether_core::words::plural::Plural;
use bellwether_core::words::time::Span;

use super::{documents, lists};
use crate::args::{SinkFlags, SinkVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: SinkVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        SinkVerb::Set { of, change, if_revision } => set(context, &of.name, *change, if_revision).await?,
        SinkVerb::List(flags) => {
            let read = async |context: &Context| context.client.sinks(namespace).await;
            let path = fill(paths::SINKS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        SinkVerb::Get { of } => {
            let sink = client.sink(namespace, &of.name).await?;
            if !documents::yaml(context, "sink", std::slice::from_ref(&sink)).await? {
                context.show.data(&sink, || vec![sink.name.clone()], |_| sheet(&sink))?;
            }
        }
        SinkVerb::Test { of } => {
            let tested = client.test_sink(namespace, &of.name).await?;
            context.show.data(
                &tested,
                || vec![tested.id.clone()],
                |_| {
                    let what = if tested.delivered { "delivered" } else { "not delivered" };
                    format!("{what} after {} ms: {}", tested.took_ms, tested.answer)
                },
            )?;
            return Ok(if tested.delivered { Exit::Yes } else { Exit::No });
        }
        SinkVerb::Replay { of, from, dead_letters, reason } => {
            let request = ReplayEvents { from, dead_letters, reason };
            client.replay_sink(namespace, &of.name, &request).await?;
            let what =
                from.map_or_else(|| "the dead letters".to_owned(), |from| format!("events from {from} on"));
            context.show.changed(&format!("sink {}: {what} are sent again", of.name));
        }
        SinkVerb::Enable { of, reason } => {
            enable(context, &of.name, EnableSink { enabled: true, reason }).await?
        }
        SinkVerb::Disable { of, reason } => {
            enable(context, &of.name, EnableSink { enabled: false, reason }).await?;
        }
        SinkVerb::Delete { of, consent } => {
            confirm(&format!("delete sink {}? it sends nothing any more", of.name), consent)?;
            client.delete_sink(namespace, &of.name).await?;
            context.show.changed(&format!("sink {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

/// Creates a sink, or changes one unless somebody else changed it since it was read.
async fn set(
    context: &Context,
    name: &str,
    change: SinkFlags,
    if_revision: Option<u64>,
) -> Result<(), Failure> {
    let before = match context.client.sink(&context.namespace, name).await {
        Ok(sink) => Some(sink),
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let revision = before.as_ref().map_or(0, |before| before.revision);
    let spec = changed(before.as_ref().map(Sink::spec).unwrap_or_default(), change)?;
    let client = context.client.only_at(if_revision.unwrap_or(revision));
    let after = client.set_sink(&context.namespace, name, &spec).await;
    let after = after.map_err(|error| Failure::pointing(error, spec.filter.as_deref()))?;
    let what = match &before {
        None => "created",
        Some(before) if before.revision == after.revision => "unchanged",
        Some(_) => "changed",
    };
    report(context, &after, what)
}

async fn enable(context: &Context, name: &str, request: EnableSink) -> Result<(), Failure> {
    let what = if request.enabled { "enabled" } else { "disabled" };
    let after = context.client.enable_sink(&context.namespace, name, &request).await?;
    report(context, &after, what)
}

fn report(context: &Context, sink: &Sink, what: &str) -> Result<(), Failure> {
    let disabled = if sink.disabled && what != "disabled" { ", disabled" } else { "" };
    context.show.changed(&format!("sink {}: {what}, revision {}{disabled}", sink.name, sink.revision));
    if sink.webhook.as_ref().is_some_and(|webhook| webhook.secrets.is_empty()) {
        context.show.note("its requests are not signed: a receiver cannot know who sent them");
    }
    context.show.data(sink, || vec![sink.name.clone()], |_| String::new())
}

/// What a sink is to be after a change. A webhook becomes a file, or the other way, with the defaults of that.
fn changed(spec: SinkSpec, change: SinkFlags) -> Result<SinkSpec, Failure> {
    let SinkSpec { filter, webhook, file, disabled, .. } = spec;
    let (of_webhooks, of_files) = (flags_of_webhooks(&change), flags_of_files(&change));
    let (webhook, file) = match (of_webhooks, of_files) {
        (Some(one), Some(other)) => {
            let reason =
                format!("it has a webhook or a file, not both: {one} is of webhooks, {other} of files");
            return Err(Failure::usage(format!("set a sink: {reason}")));
        }
        (Some(flag), None) if webhook.is_none() && change.webhook.is_none() => {
            return Err(of_another_kind(flag, ("webhooks", "--webhook URL"), file.is_some()));
        }
        (None, Some(flag)) if file.is_none() && change.file.is_none() => {
            return Err(of_another_kind(flag, ("files", "--to-file PATH"), webhook.is_some()));
        }
        (Some(_), None) => (Some(changed_webhook(webhook.unwrap_or_default(), &change)?), None),
        (None, Some(_)) => (None, Some(changed_file(file.unwrap_or_default(), &change))),
        (None, None) => (webhook, file),
    };
    let filter = change.filter.or(filter);
    Ok(SinkSpec { filter, webhook, file, disabled, reason: change.reason })
}

/// The first flag that is one of webhooks.
fn flags_of_webhooks(change: &SinkFlags) -> Option<&'static str> {
    let flags = [
        (change.webhook.is_some(), "--webhook"),
        (change.unsigned, "--unsigned"),
        (!change.secret.is_empty(), "--secret"),
        (!change.header.is_empty(), "--header"),
        (change.timeout.is_some(), "--timeout"),
        (change.attempts.is_some(), "--attempts"),
        (change.max_age.is_some(), "--max-age"),
    ];
    flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
}

/// The first flag that is one of files.
fn flags_of_files(change: &SinkFlags) -> Option<&'static str> {
    let flags = [
        (change.file.is_some(), "--to-file"),
        (change.max_bytes.is_some(), "--max-bytes"),
        (change.keep.is_some(), "--keep"),
    ];
    flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
}

/// That a flag is of sinks of another kind than this one, or that a new one needs its receiver.
fn of_another_kind(flag: &str, (kind, receiver): (&str, &str), has_other: bool) -> Failure {
    let (reason, next) = match (has_other, kind) {
        (true, "webhooks") => ("it writes a file", "have it call a webhook instead"),
        (true, _) => ("it calls a webhook", "have it write a file instead"),
        (false, _) => ("it has no receiver yet", "name one"),
    };
    Failure::usage(format!("set a sink: {flag} is a flag of {kind}, and {reason}; {next}: {receiver}"))
}

fn changed_webhook(webhook: WebhookSpec, change: &SinkFlags) -> Result<WebhookSpec, Failure> {
    let mut headers = BTreeMap::new();
    for header in &change.header {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("use header {header:?}: write NAME=VALUE")))?;
        headers.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    let secrets = match (change.unsigned, change.secret.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => webhook.secrets,
        (false, false) => change.secret.clone(),
    };
    Ok(WebhookSpec {
        url: change.webhook.clone().unwrap_or(webhook.url),
        secrets,
        headers: if headers.is_empty() { webhook.headers } else { headers },
        timeout: change.timeout.map(|span| span.to_string()).or(webhook.timeout),
        attempts: change.attempts.or(webhook.attempts),
        max_age: change.max_age.map(|span| span.to_string()).or(webhook.max_age),
    })
}

fn changed_file(file: SinkFileSpec, change: &SinkFlags) -> SinkFileSpec {
    SinkFileSpec {
        path: change.file.clone().unwrap_or(file.path),
        max_bytes: change.max_bytes.or(file.max_bytes),
        keep: change.keep.or(file.keep),
    }
}

async fn list(context: &Context, page: &Page<Sink>) -> Result<(), Failure> {
    if documents::yaml(context, "sink", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|sink| sink.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|sink| {
            let status = sink.status.as_ref();
            let number = |of: fn(&SinkStatus) -> u64| {
                status.map_or_else(|| "-".to_owned(), |status| of(status).to_string())
            };
            let waits = status.and_then(|status| status.waits_for.clone()).unwrap_or_else(|| "-".to_owned());
            vec![
                sink.name.clone(),
                place(sink).to_owned(),
                sink.filter.clone(),
                number(|status| status.state.delivered_to),
                number(|status| status.undelivered),
                number(|status| status.state.dead_lettered),
                waits,
            ]
        });
        if page.items.is_empty() {
            return "no sinks; create one with: bellwether sink set SINK --webhook URL".to_owned();
        }
        table(
            &["name", "receiver", "filter", "delivered to", "undelivered", "dead letters", "waits for"],
            rows,
        )
    })
}

/// Where the events go.
fn place(sink: &Sink) -> &str {
    let file = sink.file.as_ref().map(|file| file.path.as_str());
    sink.webhook.as_ref().map(|webhook| webhook.url.as_str()).or(file).unwrap_or("-")
}

/// A sink with all its fields, one a line, then how far it is.
pub(super) fn sheet(sink: &Sink) -> String {
    let reason = if sink.reason.is_empty() { String::new() } else { format!(": {}", sink.reason) };
    let mut lines = vec![format!("name           {}", sink.name), format!("filter         {}", sink.filter)];
    if let Some(webhook) = &sink.webhook {
        let secrets = if webhook.secrets.is_empty() { "-".to_owned() } else { webhook.secrets.join(", ") };
        lines.push(format!("webhook        {}", webhook.url));
        lines.push(format!("secrets        {secrets}"));
        lines.extend(webhook.headers.iter().map(|(name, value)| format!("header         {name}: {value}")));
        lines.push(format!("timeout        {}", Span::from_millis(webhook.timeout_ms)));
        lines.push(format!("attempts       {}", webhook.attempts));
        lines.push(format!("max age        {}", Span::from_millis(webhook.max_age_ms)));
    }
    if let Some(file) = &sink.file {
        lines.push(format!("file           {}", file.path));
        lines.push(format!("max bytes      {}", file.max_bytes));
        lines.push(format!("keep           {}", file.keep));
    }
    lines.push(format!("disabled       {}", if sink.disabled { "yes" } else { "no" }));
    lines.push(format!("revision       {}", sink.revision));
    lines.push(format!("changed        by {}, {}{reason}", sink.by, date(sink.at_ms)));
    if let Some(status) = &sink.status {
        lines.push(String::new());
        lines.extend(progress(status));
    }
    lines.join("\n")
}

fn progress(status: &SinkStatus) -> Vec<String> {
    let SinkStatus { state, undelivered, oldest_undelivered_ms, waits_for } = status;
    let SinkState {
        delivered_to,
        delivered,
        last_delivery_ms,
        last_attempt,
        dead_letters,
        dead_lettered,
        ..
    } = state;
    let last = last_delivery_ms.map_or_else(String::new, |at| format!(", the last one {}", date(at)));
    let oldest = oldest_undelivered_ms.map_or_else(String::new, |at| format!(", the oldest of {}", date(at)));
    let mut lines = vec![
        format!("delivered to   event {delivered_to}"),
        format!("delivered      {}{last}", Plural(*delivered, "time")),
        format!("undelivered    {undelivered}{oldest}"),
        format!("waits for      {}", waits_for.as_deref().unwrap_or("-")),
    ];
    lines.extend(last_attempt.as_ref().map(|last| {
        let what = if last.delivered { "delivered" } else { "failed" };
        format!("last attempt   event {}, {}, {what}: {}", last.event, date(last.at_ms), last.answer)
    }));
    lines.push(format!("dead letters   {dead_lettered} since it was created"));
    lines.extend(dead_letters.iter().map(|letter| {
        format!(
            "  event {}, {}, {}: {}",
            letter.event,
            date(letter.at_ms),
            Plural(u64::from(letter.attempts), "attempt"),
            letter.reason
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> SinkFlags {
        SinkFlags {
            webhook: None,
            secret: Vec::new(),
            unsigned: false,
            header: Vec::new(),
            timeout: None,
            attempts: None,
            max_age: None,
            file: None,
            max_bytes: None,
            keep: None,
            filter: None,
            reason: String::new(),
        }
    }

    #[test]
    fn a_flag_of_another_kind_of_sink_is_refused_with_its_kind() {
        let file = SinkFileSpec { path: "a".to_owned(), ..SinkFileSpec::default() };
        let file = SinkSpec { file: Some(file), ..SinkSpec::default() };
        let webhook = WebhookSpec { url: "http://a".to_owned(), ..WebhookSpec::default() };
        let webhook = SinkSpec { webhook: Some(webhook), ..SinkSpec::default() };
        let attempts = SinkFlags { attempts: Some(3), ..flags() };
        let secret = SinkFlags { secret: vec!["key".to_owned()], ..flags() };
        let bytes = SinkFlags { max_bytes: Some(1 << 20), ..flags() };
        let both = SinkFlags { keep: Some(1), ..attempts.clone() };
        for (before, change, said) in [
            (&file, &attempts, "--attempts is a flag of webhooks, and it writes a file"),
            (&file, &secret, "--secret is a flag of webhooks, and it writes a file"),
            (&webhook, &bytes, "--max-bytes is a flag of files, and it calls a webhook"),
            (&SinkSpec::default(), &attempts, "it has no receiver yet; name one: --webhook URL"),
            (&webhook, &both, "--attempts is of webhooks, --keep of files"),
        ] {
            let refused = changed(before.clone(), change.clone()).unwrap_err().message;
            assert!(refused.contains(said), "{refused}");
        }
        let url = SinkFlags { webhook: Some("http://b".to_owned()), ..attempts };
        assert!(changed(file, url).unwrap().file.is_none(), "a receiver of another kind replaces it");
        assert_eq!(changed(webhook, flags()).unwrap().webhook.unwrap().url, "http://a");
    }
}
