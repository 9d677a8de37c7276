//! One target of an entity, found by its name.

use bellwether_api::v1::target::TargetView;

use crate::context::Context;
use crate::exit::{Exit, Failure};

/// One target of an entity, by `ENTITY/NAME`.
pub(super) async fn target(context: &Context, asked: &str) -> Result<TargetView, Failure> {
    let (entity, name) = asked
        .split_once('/')
        .ok_or_else(|| Failure::usage(format!("describe target/{asked}")).hint("write target/ENTITY/NAME"))?;
    let mut after: Option<String> = None;
    loop {
        let page = context.client.targets(&context.namespace, entity, after.as_deref(), None).await?;
        if let Some(found) = page.items.into_iter().find(|target| target.name == name) {
            return Ok(found);
        }
        after = page.next;
        if after.is_none() {
            let what = format!("find target {name} of {entity}");
            return Err(Failure::new(Exit::No, what).hint(format!("bellwether rollout get {entity}")));
        }
    }
}
