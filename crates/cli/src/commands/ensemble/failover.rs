//! `ensemble failover`: the primary hands over, or a member becomes it whatever is lost.

use bellwether_api::v1::ensemble::FailoverEnsemble;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;

/// Requests it, after the question whether writes may be lost.
pub(super) async fn failover(
    context: &Context,
    name: &str,
    request: &FailoverEnsemble,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let before = client.ensemble(namespace, name).await?;
    if let Some(to) = request.to.filter(|_| request.accept_data_loss) {
        // What each member has is what the answer depends on.
        let why = client.why(namespace, &format!("ensemble/{name}")).await?;
        for line in why.lines.iter().filter(|line| line.starts_with("member ")) {
            context.show.note(line);
        }
        let question =
            format!("make member {to} the primary of ensemble {name}, and lose what it does not have?");
        confirm(&question, consent)?;
    }
    let at = client.only_at(before.revision);
    let after = at.fail_over_ensemble(namespace, name, request).await?;
    let what = match (request.acknowledge, request.to.filter(|_| request.accept_data_loss)) {
        _ if request.withdraw => "the primary is not to hand over".to_owned(),
        (true, _) => "the last failover is acknowledged".to_owned(),
        (false, Some(to)) => format!("member {to} is to be the primary"),
        (false, None) => "the primary is to hand over".to_owned(),
    };
    context.show.changed(&format!("ensemble {name}: {what}"));
    context.show.note(&format!("see: bellwether ensemble get {name}"));
    context.show.data(&after, || vec![after.name.clone()], |_| String::new())
}
