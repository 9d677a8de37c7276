//! `ensemble restart` and `ensemble defragment`: what is done with one member after the other.

use bellwether_api::v1::ensemble::Ensemble;
use bellwether_api::v1::ensemble::requests::RollMembers;
use bellwether_api::v1::ensemble::service::ServiceAgentSpec;
use bellwether_core::words::plural::plural;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;

/// Asks that the members are restarted, after the question whether that is meant; or withdraws that.
pub(super) async fn restart(
    context: &Context,
    name: &str,
    request: RollMembers,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    if !request.withdraw {
        let ensemble = client.ensemble(namespace, name).await?;
        let away = match no_spare(&ensemble.service) {
            (most, words) if serving(&ensemble) <= most => format!("\nit {words} while one of them is away"),
            _ => String::new(),
        };
        let members = plural(usize::try_from(serving(&ensemble)).unwrap_or(usize::MAX), "member");
        let last = match ensemble.service {
            ServiceAgentSpec { etcd: Some(_), .. } | ServiceAgentSpec { ceph: Some(_), .. } => {
                ", the leader last"
            }
            ServiceAgentSpec { redis: Some(_), .. } => ", the primary last, after it has handed over",
            _ => "",
        };
        let order = format!("those that do not work first{last}, each after the one before works again");
        confirm(&format!("{members} of ensemble {name}: {order}{away}\nrestart ensemble {name}?"), consent)?;
    }
    client.restart_ensemble(namespace, name, &request).await?;
    asked(context, name, request.withdraw, "restarted");
    Ok(())
}

/// Asks that the members are defragmented, after the question whether that is meant; or withdraws that.
pub(super) async fn defragment(
    context: &Context,
    name: &str,
    request: RollMembers,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    if !request.withdraw {
        let ensemble = client.ensemble(namespace, name).await?;
        let away = match serving(&ensemble) {
            0 | 1 => "\nit does not serve meanwhile, which with a large database takes minutes",
            _ => "\neach does not answer meanwhile, which with a large database takes minutes",
        };
        let members = plural(usize::try_from(serving(&ensemble)).unwrap_or(usize::MAX), "member");
        let order = "one after the other, the leader last";
        confirm(
            &format!("{members} of ensemble {name}: {order}{away}\ndefragment ensemble {name}?"),
            consent,
        )?;
    }
    client.defragment_ensemble(namespace, name, &request).await?;
    asked(context, name, request.withdraw, "defragmented");
    Ok(())
}

/// Says what was asked.
fn asked(context: &Context, name: &str, is_withdrawn: bool, what: &str) {
    let what = if is_withdrawn { format!("is not {what} any further") } else { format!("is to be {what}") };
    context.show.changed(&format!("ensemble {name}: {what}"));
    if !is_withdrawn {
        context.show.note(&format!("see how far it is: bellwether why ensemble/{name}"));
    }
}

fn serving(ensemble: &Ensemble) -> u64 {
    ensemble.status.as_ref().map_or(0, |status| status.voting)
}

/// Most members of which none can be away without something being missed, and what that is.
fn no_spare(service: &ServiceAgentSpec) -> (u64, &'static str) {
    match service {
        ServiceAgentSpec { etcd: Some(_), .. } | ServiceAgentSpec { ceph: Some(_), .. } => {
            (2, "does not serve")
        }
        ServiceAgentSpec { redis: Some(redis), .. } => {
            (u64::from(redis.min_replicas_to_write.unwrap_or(1)).saturating_add(1), "takes no writes")
        }
        _ => (1, "does not serve"),
    }
}
