//! A rollout of an entity's history, with what failed in it.

use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::sheet;

/// Shows the rollout of this number.
pub(super) async fn show(context: &Context, entity: &str, number: u64) -> CommandResult {
    let rollout = context.client.rollout(&context.namespace, entity, number).await?;
    let fields = serde_json::to_value(&rollout);
    let fields = fields.map_err(|error| Failure::ours(format!("describe the answer: {error}")))?;
    context.show.data(
        &rollout,
        || vec![format!("{entity}/{number}")],
        |_| format!("entity  {entity}\n\n{}", sheet::lines(&fields).join("\n")),
    )?;
    Ok(Exit::Yes)
}
