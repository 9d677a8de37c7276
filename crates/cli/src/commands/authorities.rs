//! `server ca`: replaces the certificate authority.

use bellwether_api::v1::authorities::{Authorities, AuthorityPhase, ChangeAuthorities};

use crate::args::CaVerb;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

/// Most names that are shown of those that are behind.
const NAMED: usize = 10;

/// Digits of a fingerprint that are shown.
const DIGITS: usize = 16;

pub(super) async fn run(context: &Context, verb: CaVerb) -> CommandResult {
    let client = &context.client;
    let change = |reason: String, force: bool| ChangeAuthorities { force, reason };
    let (authorities, next) = match verb {
        CaVerb::Get => (client.authorities().await?, None),
        CaVerb::Rotate { reason } => (
            client.rotate_authority(&change(reason, false)).await?,
            Some("once every node trusts it: bellwether context refresh, then bellwether server ca activate"),
        ),
        CaVerb::Activate { force, reason } => (
            client.activate_authority(&change(reason, force)).await?,
            Some("once every node has renewed its certificate: bellwether server ca retire"),
        ),
        CaVerb::Retire { force, reason, consent } => {
            confirm("trust the previous certificate authority no more?", consent)?;
            (
                client.retire_authority(&change(reason, force)).await?,
                Some("have everybody refresh their contexts: bellwether context refresh"),
            )
        }
        CaVerb::Cancel { reason } => (client.cancel_authority(&change(reason, false)).await?, None),
    };
    show(context, &authorities)?;
    if let Some(next) = next {
        context.show.note(&format!("next: {next}"));
    }
    Ok(Exit::Yes)
}

fn show(context: &Context, authorities: &Authorities) -> Result<(), Failure> {
    let names = || authorities.authorities.iter().map(|each| each.fingerprint.clone()).collect();
    context.show.data(authorities, names, |_| {
        let rows = authorities.authorities.iter().map(|each| {
            vec![
                each.fingerprint.chars().take(DIGITS).collect(),
                each.phase.to_string(),
                each.since_ms.map_or_else(|| "-".to_owned(), date),
                date(each.expires_at_ms),
            ]
        });
        let mut text = table(&["authority", "phase", "since", "expires"], rows);
        let has = |phase| authorities.authorities.iter().any(|each| each.phase == phase);
        let nodes = authorities.nodes;
        if has(AuthorityPhase::Next) {
            text.push_str(&behind(
                "do not trust the next authority yet",
                &authorities.not_trusting_next,
                nodes,
            ));
        }
        if authorities.version > 0 {
            let what = "have no certificate of the active authority";
            text.push_str(&behind(what, &authorities.not_renewed, nodes));
        }
        for (what, names) in [
            (
                "servers without the key that the authority's is encrypted with",
                &authorities.servers_without_key,
            ),
            ("join tokens that name another authority than the active one", &authorities.old_join_tokens),
        ] {
            if !names.is_empty() {
                text.push_str(&format!("\n{what}: {}", some(names)));
            }
        }
        text
    })
}

fn behind(what: &str, names: &[String], nodes: u64) -> String {
    match names {
        [] => format!("\n0 of {nodes} nodes {what}"),
        names => format!("\n{} of {nodes} nodes {what}: {}", names.len(), some(names)),
    }
}

fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
