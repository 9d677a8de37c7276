//! `ensemble resume`.

use bellwether_api::v1::ensemble::requests::ResumeEnsemble;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;
use crate::show::list::listed;

/// Goes on with an ensemble as it is recorded, after the question whether that is meant.
pub(super) async fn resume(
    context: &Context,
    name: &str,
    request: &ResumeEnsemble,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let lost = match request.accept_data_loss {
        true => ", and those that are known to be there; what only others have may be lost",
        false => "",
    };
    let status = client.ensemble(namespace, name).await?.status.unwrap_or_default();
    let waiting = status.waiting.filter(|_| status.is_held);
    let waiting = waiting.map(|waiting| format!("ensemble {name}: {waiting}\n")).unwrap_or_default();
    let question = format!(
        "{waiting}ensemble {name}: it goes on with the members that are recorded, as `bellwether ensemble get {name}` shows them{lost}\nresume ensemble {name}?"
    );
    confirm(&question, consent)?;
    let now = client.resume_ensemble(namespace, name, request).await?.status.unwrap_or_default();
    let numbers: Vec<String> = now.members.iter().map(|member| member.number.to_string()).collect();
    let noun = if numbers.len() == 1 { "member" } else { "members" };
    let was_held = if status.is_held { "" } else { "was not held and " };
    context.show.changed(&format!("ensemble {name}: {was_held}goes on with {noun} {}", listed(&numbers)));
    Ok(())
}
