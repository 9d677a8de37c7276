//! `ensemble resume`.

use bellwether_api::v1::ensemble::requests::ResumeEnsemble;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;

/// Goes on with an ensemble as it is recorded, after the question whether that is meant.
pub(super) async fn resume(
    context: &Context,
    name: &str,
    request: &ResumeEnsemble,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let lost = match request.accept_data_loss {
        true => "; what only other members have may be lost",
        false => "",
    };
    let waiting = client.ensemble(namespace, name).await?.status.and_then(|status| status.waiting);
    let waiting = waiting.map(|waiting| format!("ensemble {name}: {waiting}\n")).unwrap_or_default();
    let question = format!(
        "{waiting}ensemble {name}: its members become what is recorded of them, as `bellwether ensemble get {name}` shows it{lost}\nresume ensemble {name}?"
    );
    confirm(&question, consent)?;
    client.resume_ensemble(namespace, name, request).await?;
    context.show.changed(&format!("ensemble {name}: goes on as it is recorded"));
    Ok(())
}
