//! What a policy may ask of a run.

use bellwether_api::shape::ShapeError;
use bellwether_core::records::policy::{OnFailure, Policy};
use bellwether_core::records::run::Run;

use super::OpError;

/// Refuses a policy that rolls a run back which nothing undoes.
///
/// # Errors
/// [`OpError::Invalid`].
pub fn may_roll_back(run: &Run, policy: &Policy) -> Result<(), OpError> {
    if policy.on_failure != OnFailure::Rollback || run.rollback.is_some() {
        return Ok(());
    }
    let workflow = &run.workflow;
    let reason = format!("workflow {workflow} names no other one that undoes it; use pause or continue");
    Err(ShapeError::at("on_failure", reason).within("policy").into())
}
