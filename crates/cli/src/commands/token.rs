//! `token` and `join-token`.

use bellwether_api::v1::access::{JoinsAs, NewJoinToken, NewToken};
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;

use crate::args::{Consent, JoinTokenVerb, TokenVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: TokenVerb) -> CommandResult {
    match verb {
        TokenVerb::Create { name, roles, only_in, expires_in } => {
            let roles = if roles.is_empty() { vec!["viewer".to_owned()] } else { roles };
            let expires_in = expires_in.map(|span| span.to_string());
            let request = NewToken { name, roles, only_in, expires_in };
            let made = context.client.create_token(&request).await?;
            context.show.data(&made, || vec![made.secret.clone()], |_| made.secret.clone())?;
            context.show.changed(&format!("token {}: created; it is shown only once", request.name));
        }
        TokenVerb::List => {
            let page = context.client.tokens().await?;
            let names = || page.items.iter().map(|token| token.name.clone()).collect();
            let now = Clock::system().now();
            context.show.data(&page.items, names, |_| {
                let rows = page.items.iter().map(|token| {
                    let end = token.expires_at_ms.map_or_else(|| "never".to_owned(), |at| expiry(at, now));
                    let only_in = token.only_in.clone().unwrap_or_else(|| "every namespace".to_owned());
                    vec![token.name.clone(), token.roles.join(","), only_in, date(token.created_at_ms), end]
                });
                table(&["name", "roles", "only in", "created", "expires"], rows)
            })?;
        }
        TokenVerb::Delete { name, force, consent } => delete(context, &name, force, consent).await?,
        TokenVerb::Whoami => {
            let me = context.client.who_am_i().await?;
            let only_in = me.only_in.as_ref().map(|only| format!(" in {only}")).unwrap_or_default();
            let roles = me.roles.join(",");
            context.show.data(
                &me,
                || vec![me.actor.clone()],
                |_| format!("{} {roles}{only_in}", me.actor),
            )?;
        }
    }
    Ok(Exit::Yes)
}

/// When a token expires, or that it has expired.
fn expiry(at_ms: u64, now: Timestamp) -> String {
    let expired = if at_ms <= now.as_millis() { " (expired)" } else { "" };
    format!("{}{expired}", date(at_ms))
}

/// Deletes a token; the one that this command authenticates with only if that is forced.
async fn delete(context: &Context, name: &str, force: bool, consent: Consent) -> Result<(), Failure> {
    if !force {
        let me = context.client.who_am_i().await?.actor;
        if me == name || me.rsplit('/').next() == Some(name) {
            let what = format!("delete token {name}: this command authenticates with it");
            return Err(Failure::new(Exit::Refused, what).hint("use another token, or pass --force"));
        }
    }
    confirm(&format!("delete token {name}?"), consent)?;
    context.client.delete_token(name).await?;
    context.show.changed(&format!("token {name}: deleted"));
    Ok(())
}

/// Notes that no machine can join under a name yet, as a node has it. Who may not read nodes learns it from the join.
async fn note_in_use(context: &Context, name: &str) {
    let node = context.client.node(&context.namespace, name).await;
    if node.is_ok_and(|view| view.node.decommissioned.is_none()) {
        context.show.note(&format!(
            "a node has the name {name}: another machine, or this one with a new disk, can join under it once that is decommissioned: bellwether node \
             decommission {name}"
        ));
    }
}

pub(super) async fn join(context: &Context, verb: JoinTokenVerb) -> CommandResult {
    match verb {
        JoinTokenVerb::Create { node, expires_in, labels, services } => {
            let namespace = Some(context.namespace.clone());
            let expires_in = expires_in.map(|span| span.to_string());
            let services = if services.is_empty() { vec!["*".to_owned()] } else { services };
            let named = node.clone();
            let request = NewJoinToken { namespace, node, expires_in, labels, services };
            let made = context.client.create_join_token(&request).await?;
            context.show.data(&made, || vec![made.secret.clone()], |_| made.secret.clone())?;
            context.show.changed("join token: created; it is shown only once and admits one node, once");
            if let Some(name) = named {
                note_in_use(context, &name).await;
            }
        }
        JoinTokenVerb::List => {
            let page = context.client.join_tokens().await?;
            let names = || page.items.iter().map(|token| token.id.clone()).collect();
            let now = Clock::system().now();
            context.show.data(&page.items, names, |_| {
                let rows = page.items.iter().map(|token| {
                    let node = match (token.joins_as, &token.node) {
                        (JoinsAs::Server, _) => "a server".to_owned(),
                        (JoinsAs::Node, Some(node)) => node.clone(),
                        (JoinsAs::Node, None) => "any".to_owned(),
                    };
                    let used = token.used_by.clone().unwrap_or_else(|| "-".to_owned());
                    vec![
                        token.id.clone(),
                        node,
                        joined(&token.labels),
                        joined(&token.services),
                        token.created_by.clone(),
                        expiry(token.expires_at_ms, now),
                        used,
                    ]
                });
                table(&["id", "node", "labels", "services", "created by", "expires", "used by"], rows)
            })?;
        }
        JoinTokenVerb::Delete { id, consent } => {
            confirm(&format!("delete join token {id}?"), consent)?;
            context.client.delete_join_token(&id).await?;
            context.show.changed(&format!("join token {id}: deleted"));
        }
    }
    Ok(Exit::Yes)
}

/// Patterns in a column.
fn joined(patterns: &[String]) -> String {
    match patterns {
        [] => "none".to_owned(),
        some => some.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_has_expired_is_marked() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(expiry(1_700_000_000_000, now), format!("{} (expired)", date(1_700_000_000_000)));
        assert_eq!(expiry(1_700_000_000_001, now), date(1_700_000_000_001));
    }
}
