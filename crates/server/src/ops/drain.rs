//! Requests to drain a node. The leader's decider begins the drain once its budget allows it.

use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::node::{Cordon, Drain, DrainBudget, Node};
use bellwether_core::words::percent::Amount;
use bellwether_core::words::time::{Span, Timestamp};

use super::node::{active, put};
use super::scope::NodeScope;
use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// How long a drain may wait for its budget, if the request does not say.
const DEADLINE: Span = Span::from_secs(3_600);

/// Requests the drain of a node: it is cordoned at once, and its service instances are withdrawn from discovery as soon
/// as that keeps to the budget; with `force` at once. Running programs keep running. A node that is drained, or to be
/// drained with the same budget, for the same reason is unchanged.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn request(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    request: &v1::node::DrainRequest,
) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let reason = reason(&request.reason)?;
    let limits = limits(request)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            if !request.force && is_same(&node, &reason, limits.max_unavailable) {
                return Ok((None, ()));
            }
            let annotation = Annotation { by: actor.clone(), at: now, reason: reason.clone() };
            let before = node.cordon.take().and_then(|cordon| cordon.drain);
            let (kind, drain) = match before {
                Some(Drain::Drained(since)) => ("node.drained", Drain::Drained(since)),
                Some(Drain::Waiting(_)) | None if request.force => ("node.drained", Drain::Drained(now)),
                Some(Drain::Waiting(_)) | None => ("node.drain_requested", limits.waiting(now)),
            };
            node.cordon = Some(Cordon { annotation, drain: Some(drain) });
            Ok((Some(put(node, event(kind, format!("node/{name}"), cause(&reason)))), ()))
        })
        .await
}

/// The budget of a drain, and how long it may wait for it.
#[derive(Debug, Clone, Copy)]
struct DrainLimits {
    max_unavailable: Amount,
    deadline: Span,
}

impl DrainLimits {
    const fn waiting(self, now: Timestamp) -> Drain {
        Drain::Waiting(DrainBudget {
            max_unavailable: self.max_unavailable,
            deadline: now.plus(self.deadline),
        })
    }
}

/// The limits as requested.
fn limits(request: &v1::node::DrainRequest) -> Result<DrainLimits, OpError> {
    let most: Option<Amount> = read_some("max_unavailable", request.max_unavailable.as_deref())?;
    let most = most.unwrap_or(Amount::Count(1));
    if most.is_zero() {
        let error = "write at least 1: with 0 no node that serves anything is ever drained";
        return Err(ShapeError::at("max_unavailable", error).into());
    }
    let deadline: Option<Span> = read_some("deadline", request.deadline.as_deref())?;
    Ok(DrainLimits { max_unavailable: most, deadline: deadline.unwrap_or(DEADLINE) })
}

/// Whether the node is drained, or waits for it with this budget, for the same reason.
fn is_same(node: &Node, reason: &str, most: Amount) -> bool {
    node.cordon.as_ref().filter(|cordon| cordon.annotation.reason == reason).is_some_and(
        |cordon| match cordon.drain {
            Some(Drain::Drained(_)) => true,
            Some(Drain::Waiting(budget)) => budget.max_unavailable == most,
            None => false,
        },
    )
}
