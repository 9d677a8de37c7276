//! The nodes that a command is about: one by its name, or those that a selector picks now.

use bellwether_api::v1::node::NodeView;

use crate::args::NodeChoice;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// All nodes that a selector picks, read page by page.
pub(super) async fn all(
    context: &Context,
    selector: Option<&str>,
    decommissioned: bool,
) -> Result<Vec<NodeView>, Failure> {
    let mut nodes: Vec<NodeView> = Vec::new();
    let mut after = None;
    loop {
        let page =
            context.client.nodes(&context.namespace, selector, after.as_deref(), decommissioned).await?;
        nodes.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(nodes),
        }
    }
}

/// The node that is named, or those that the selector picks now.
pub(super) async fn picked(context: &Context, which: NodeChoice) -> Result<Vec<NodeView>, Failure> {
    if let Some(name) = which.name {
        return Ok(vec![context.client.node(&context.namespace, &name).await?]);
    }
    let nodes = all(context, which.selector.as_deref(), false).await?;
    if nodes.is_empty() {
        return Err(Failure::new(Exit::No, "find a node that the selector picks")
            .hint("bellwether node list -o wide"));
    }
    Ok(nodes)
}
