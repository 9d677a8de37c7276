//! Operations on the certificate authorities: make the next one, bring it into use, end the trust in the one before.

use bellwether_api::v1::authorities::ChangeAuthorities;
use bellwether_core::decide::authorities::{
    self as decide, AuthorityProgress, FoundingAuthority, NewAuthority, PhaseRefusal,
};
use bellwether_core::records::authorities::{Authorities, Authority, AuthorityPhase};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::Epoch;
use bellwether_core::words::name::Actor;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use serde_json::Value;

use super::grant::access_namespace;
use super::{OpError, cause, event, reason};
use crate::authority_place::place;
use crate::installation::Installation;
use crate::pki::{self, Pki};
use crate::transactor::Transactor;

/// Most names in a refusal.
const NAMED: usize = 10;

/// The authority that the installation was initialised with.
pub(crate) fn founding(pki: &Pki, installation: &Installation) -> FoundingAuthority {
    FoundingAuthority {
        fingerprint: pki.ca_fingerprint(),
        certificate: pki.ca_pem().to_owned(),
        since: installation.made_at(),
    }
}

/// Makes the next authority, which everybody is to trust before it is used.
///
/// # Errors
/// [`OpError::Refused`] while another change is not finished; [`OpError::Keyring`] without a key to encrypt its own with.
pub async fn rotate(
    transactor: &Transactor,
    founding: &FoundingAuthority,
    actor: &Actor,
    change: &ChangeAuthorities,
) -> Result<(), OpError> {
    let (certificate, key) = Pki::make_next(transactor.now())?;
    let fingerprint = pki::fingerprint(&certificate).unwrap_or_default();
    let (key, keyring) = (Value::String(key), transactor.keyring());
    let what = "make another certificate authority";
    change_to(transactor, actor, (what, "authority.added", change), |world, at| {
        let sealed = keyring.seal(&keyring.active(world)?, &place(&fingerprint), &key)?;
        let next =
            NewAuthority { fingerprint: fingerprint.clone(), certificate: certificate.clone(), key: sealed };
        decide::prepare(present(world), founding, next, at).map_err(|refusal| refused(what, &refusal))
    })
    .await
}

/// Brings the next authority into use.
///
/// # Errors
/// [`OpError::Refused`] while nodes or servers are behind, unless it is forced.
pub async fn activate(
    transactor: &Transactor,
    founding: &FoundingAuthority,
    actor: &Actor,
    change: &ChangeAuthorities,
) -> Result<(), OpError> {
    let what = "bring the next certificate authority into use";
    change_to(transactor, actor, (what, "authority.activated", change), |world, at| {
        let changed = decide::activate(present(world), at).map_err(|refusal| refused(what, &refusal))?;
        let behind = decide::progress(world, founding, at.0);
        // Without the key a server could present nothing that the others trust: no force helps.
        servers_have_keys(what, &behind)?;
        let nodes = (behind.not_trusting_next.as_slice(), behind.nodes, "do not trust it yet");
        if !change.force {
            nodes_keep_up(what, nodes)?;
        }
        Ok(changed)
    })
    .await
}

/// Ends the trust in the previous authority.
///
/// # Errors
/// [`OpError::Refused`] while nodes use certificates of it, unless it is forced.
pub async fn retire(
    transactor: &Transactor,
    founding: &FoundingAuthority,
    actor: &Actor,
    change: &ChangeAuthorities,
) -> Result<(), OpError> {
    let what = "retire the previous certificate authority";
    change_to(transactor, actor, (what, "authority.retired", change), |world, at| {
        let changed = decide::retire(present(world), at).map_err(|refusal| refused(what, &refusal))?;
        let behind = decide::progress(world, founding, at.0);
        if !change.force {
            let nodes = (behind.not_renewed.as_slice(), behind.nodes, "use a certificate of it");
            nodes_keep_up(what, nodes)?;
        }
        Ok(changed)
    })
    .await
}

/// Drops the next authority.
///
/// # Errors
/// [`OpError::Refused`] if there is none.
pub async fn cancel(
    transactor: &Transactor,
    actor: &Actor,
    change: &ChangeAuthorities,
) -> Result<(), OpError> {
    let what = "drop the next certificate authority";
    change_to(transactor, actor, (what, "authority.cancelled", change), |world, at| {
        decide::cancel(present(world), at).map_err(|refusal| refused(what, &refusal))
    })
    .await
}

async fn change_to(
    transactor: &Transactor,
    actor: &Actor,
    (_, kind, change): (&str, &'static str, &ChangeAuthorities),
    decide: impl Fn(&World, (Timestamp, Epoch)) -> Result<Authorities, OpError>,
) -> Result<(), OpError> {
    let reason = reason(&change.reason)?;
    transactor
        .change(&access_namespace()?, actor, |world, _, now| {
            let changed = decide(world, (now, world.epoch))?;
            let active = |of: &Authorities| of.in_phase(AuthorityPhase::Active).map(short);
            let ended = present(world).and_then(|before| ended(before, &changed)).map(short);
            let subject = ended.clone().or_else(|| changed.all.last().map(short)).unwrap_or_default();
            let event = EventDraft {
                before: ended.or_else(|| present(world).and_then(active)),
                after: active(&changed),
                ..event(kind, format!("authority/{subject}"), cause(&reason))
            };
            let writes = vec![Write::put(GlobalRecord::Authorities(changed))];
            Ok::<_, OpError>((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// The authority that is trusted no more.
fn ended<'a>(before: &'a Authorities, after: &Authorities) -> Option<&'a Authority> {
    let is_trusted = |authority: &&Authority| authority.phase != AuthorityPhase::Retired;
    let mut trusted = before.all.iter().filter(is_trusted);
    trusted.find(|of| !after.all.iter().filter(is_trusted).any(|known| known.fingerprint == of.fingerprint))
}

/// How events name an authority.
fn short(authority: &Authority) -> String {
    authority.fingerprint.chars().take(12).collect()
}

fn present(world: &World) -> Option<&Authorities> {
    world.authorities.as_ref().map(|kept| &*kept.value)
}

fn refused(what: &str, refusal: &PhaseRefusal) -> OpError {
    let (reason, hint) = refusal.reasons();
    OpError::Refused { reason: format!("{what}: {reason}"), hint: Some(hint.to_owned()) }
}

fn servers_have_keys(what: &str, behind: &AuthorityProgress) -> Result<(), OpError> {
    if behind.servers_without_key.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = behind.servers_without_key.iter().map(|name| name.as_str()).collect();
    Err(OpError::Refused {
        reason: format!(
            "{what}: servers lack the key for secrets that its own is encrypted with: {}",
            names.join(", ")
        ),
        hint: Some("copy pki/secrets.key to them from another server, and restart them".to_owned()),
    })
}

fn nodes_keep_up(what: &str, (behind, nodes, reason): (&[String], usize, &str)) -> Result<(), OpError> {
    if behind.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = behind.iter().take(NAMED).map(String::as_str).collect();
    let more = behind.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(OpError::Refused {
        reason: format!("{what}: {} of {nodes} nodes {reason}: {}{more}", behind.len(), named.join(", ")),
        hint: Some(
            "those that are up follow within seconds (bellwether server ca get); start the others, or decommission them; with \
             --force they are cut off and must join again"
                .to_owned(),
        ),
    })
}
