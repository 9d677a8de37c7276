//! The nodes that a command is about: one by its name, or those that a filter matches now.

use bellwether_api::client::CallError;
use bellwether_api::client::ListOptions;
use bellwether_api::problem::Code;
use bellwether_api::v1::node::NodeView;

use crate::args::NodeChoice;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// All nodes that a filter matches.
pub(super) async fn all(
    context: &Context,
    filter: Option<&str>,
    decommissioned: bool,
) -> Result<Vec<NodeView>, Failure> {
    let options = ListOptions { filter: filter.map(str::to_owned), ..ListOptions::default() };
    let nodes = context.client.listing(options).nodes(&context.namespace, decommissioned).await;
    Ok(nodes.map_err(|error| Failure::pointing(error, filter))?.items)
}

/// The node that is named, or those that the filter matches now.
pub(super) async fn picked(context: &Context, which: NodeChoice) -> Result<Vec<NodeView>, Failure> {
    if let Some(name) = which.name {
        return Ok(vec![context.client.node(&context.namespace, &name).await?]);
    }
    let nodes = all(context, which.filter.as_deref(), false).await?;
    if nodes.is_empty() {
        return Err(Failure::new(Exit::No, "find a node that the filter matches")
            .hint("bellwether node list -o wide"));
    }
    Ok(nodes)
}

/// Refuses a node that is not there. One that the caller may not read is not known to be there, and not refused.
pub(super) async fn exists(context: &Context, name: &str) -> Result<(), Failure> {
    match context.client.node(&context.namespace, name).await {
        Err(CallError::Problem(problem)) if problem.code == Code::Forbidden => Ok(()),
        found => Ok(found.map(drop)?),
    }
}
