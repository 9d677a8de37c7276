//! `role` and `auth`: what tokens may do.

use bellwether_api::v1::role::{Claim as ClaimShape, NewAccessReview, Role, RoleSpec};
use bellwether_core::access::Claim;

use super::lists;
use crate::args::{AuthVerb, ListFlags, RoleVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use bellwether_api::paths;
use bellwether_api::v1::page::Page;

pub(super) async fn run(context: &Context, verb: RoleVerb) -> CommandResult {
    match verb {
        RoleVerb::Set { name, claims, description } => {
            let claims = claims.iter().map(|text| claim(text)).collect::<Result<Vec<_>, _>>()?;
            let role = context.client.put_role(&name, &RoleSpec { claims, description }).await?;
            let count = role.claims.len();
            let claims = if count == 1 { "1 claim".to_owned() } else { format!("{count} claims") };
            context.show.changed(&format!("role {name}: set to {claims}"));
        }
        RoleVerb::Get { name } => {
            let role = context.client.role(&name).await?;
            context.show.data(&role, || vec![role.name.clone()], |_| sheet(&role))?;
        }
        RoleVerb::List(flags) => return list(context, &flags).await,
        RoleVerb::Delete { name, consent } => {
            confirm(&format!("delete role {name}?"), consent)?;
            context.client.delete_role(&name).await?;
            context.show.changed(&format!("role {name}: deleted"));
        }
    }
    Ok(Exit::Yes)
}

/// A claim as it is typed.
fn claim(text: &str) -> Result<ClaimShape, Failure> {
    let read =
        Claim::parse(text).map_err(|reason| Failure::usage(format!("cannot read a claim: {reason}")))?;
    Ok(ClaimShape::from(&read))
}

/// A claim as text; one of a newer server that this program does not know is shown in its own words.
fn text(claim: &ClaimShape) -> String {
    let read = Claim::try_from(claim).map(|claim| claim.to_string());
    read.unwrap_or_else(|_| {
        let (verbs, kinds) = (claim.verbs.join(","), claim.kinds.join(","));
        format!("{verbs} {kinds}/{} in {}", claim.names.join(","), claim.namespaces.join(","))
    })
}

fn sheet(role: &Role) -> String {
    let kind = if role.built_in { "built in" } else { "own" };
    let mut lines = vec![
        format!("name         {}", role.name),
        format!("kind         {kind}"),
        format!("description  {}", if role.description.is_empty() { "-" } else { &role.description }),
        format!("tokens       {}", role.tokens),
        "claims".to_owned(),
    ];
    lines.extend(role.claims.iter().map(|claim| format!("  {}", text(claim))));
    lines.join("\n")
}

async fn list(context: &Context, flags: &ListFlags) -> CommandResult {
    let read = async |context: &Context| context.client.roles().await;
    lists::show(context, flags, paths::ROLES, read, async |page| shown(context, &page)).await
}

fn shown(context: &Context, page: &Page<Role>) -> Result<(), Failure> {
    let names = || page.items.iter().map(|role| role.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|role| {
            let kind = if role.built_in { "built in" } else { "own" };
            let claims: Vec<String> = role.claims.iter().map(text).collect();
            vec![role.name.clone(), kind.to_owned(), role.tokens.to_string(), claims.join("; ")]
        });
        table(&["name", "kind", "tokens", "claims"], rows)
    })
}

pub(super) async fn auth(context: &Context, verb: AuthVerb) -> CommandResult {
    match verb {
        AuthVerb::CanI { verb, object, anywhere } => {
            let (kind, name) = match object.split_once('/') {
                Some((kind, name)) => (kind.to_owned(), Some(name.to_owned())),
                None => (object.clone(), None),
            };
            let namespace = (!anywhere).then(|| context.namespace.clone());
            let asked = NewAccessReview { verb, kind, name, namespace };
            let review = context.client.review_access(&asked).await?;
            let by = || match (&review.role, &review.claim) {
                (Some(role), Some(claim)) => format!("yes: role {role} has the claim \"{claim}\""),
                _ => format!("no: no claim of this token allows {}", review.request),
            };
            let answer = if review.allowed { "yes" } else { "no" };
            context.show.data(&review, || vec![answer.to_owned()], |_| by())?;
            Ok(if review.allowed { Exit::Yes } else { Exit::No })
        }
        AuthVerb::Explain => {
            let me = context.client.who_am_i().await?;
            let claims: Vec<String> = me.claims.iter().map(text).collect();
            context.show.data(
                &me,
                || claims.clone(),
                |_| {
                    let limit = me.only_in.as_ref().map(|only| format!(", limited to namespace {only}"));
                    let head = format!(
                        "token {} has {}{}",
                        me.actor,
                        me.roles.join(", "),
                        limit.unwrap_or_default()
                    );
                    let lines = claims.iter().map(|claim| format!("\n  {claim}")).collect::<String>();
                    format!("{head}; it may:{lines}")
                },
            )?;
            Ok(Exit::Yes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_shown_as_it_is_typed() {
        for typed in ["* *", "get,update:/params node/web-*,db-1 in shop,shop-*", "delete freeze"] {
            assert_eq!(text(&claim(typed).unwrap()), typed);
        }
        assert!(claim("get").is_err());
    }
}
