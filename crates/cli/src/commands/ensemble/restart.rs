//! `ensemble restart`.

use bellwether_api::v1::ensemble::requests::RestartMembers;
use bellwether_core::words::plural::plural;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;

/// Most members of which none can be away without the store being away, too.
const NO_SPARE: u64 = 2;

/// Asks that the members are restarted, after the question whether that is meant; or withdraws that.
pub(super) async fn restart(
    context: &Context,
    name: &str,
    request: RestartMembers,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    if !request.withdraw {
        let voting = client.ensemble(namespace, name).await?.status.map_or(0, |status| status.voting);
        let members = plural(usize::try_from(voting).unwrap_or(usize::MAX), "member");
        let away = if voting > NO_SPARE { "" } else { "\nit does not serve while one of them is away" };
        let order = "those that do not work first, the leader last, each after the one before works again";
        confirm(&format!("{members} of ensemble {name}: {order}{away}\nrestart ensemble {name}?"), consent)?;
    }
    client.restart_ensemble(namespace, name, &request).await?;
    let what = if request.withdraw { "is not restarted any further" } else { "is to be restarted" };
    context.show.changed(&format!("ensemble {name}: {what}"));
    if !request.withdraw {
        context.show.note(&format!("see how far it is: bellwether why ensemble/{name}"));
    }
    Ok(())
}
