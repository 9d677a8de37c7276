//! `slot`: what only so many may do at once, and who does.

use bellwether_api::v1::slot::{ForceRelease, SlotSpec};

use crate::args::SlotVerb;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::date;
use crate::show::{print, table, tell};

pub(super) async fn run(context: &Context, verb: SlotVerb) -> CommandResult {
    match verb {
        SlotVerb::List { all } => list(context, all).await?,
        SlotVerb::Delete { name } => context.client.delete_slot(&context.namespace, &name).await?,
        SlotVerb::Set { name, capacity, lease } => {
            let spec = SlotSpec { capacity, lease: lease.map(|lease| lease.to_string()) };
            let set = context.client.set_slot(&context.namespace, &name, &spec).await?;
            let (held, may) = (set.holders.len(), set.capacity);
            tell(&format!("{name}: {may} may hold it at once; {held} held now"));
        }
        SlotVerb::Release { name, holder, why } => {
            take_from(context, &name, ForceRelease { holder, reason: why }).await?
        }
    }
    Ok(Exit::Yes)
}

/// Takes a slot from its holder.
pub(super) async fn take_from(context: &Context, name: &str, force: ForceRelease) -> Result<(), Failure> {
    context.client.release_slot(&context.namespace, name, &force).await?;
    tell(&format!("{name} was taken from {}; it may be taken again", force.holder));
    Ok(())
}

/// Who holds which.
pub(super) async fn list(context: &Context, all: bool) -> Result<(), Failure> {
    let page = context.client.slots(&context.namespace, all).await?;
    if super::documents::yaml(context, "slot", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|slot| slot.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().flat_map(|slot| {
            let held = format!("{} of {}", slot.holders.len(), slot.capacity);
            let nobody = vec![slot.name.clone(), held.clone(), slot.fence.to_string()];
            let nobody = nobody.into_iter().chain((0..5).map(|_| "-".to_owned())).collect();
            let mut rows: Vec<Vec<String>> = Vec::new();
            for (name, holder) in &slot.holders {
                let (since, ends) = (date(holder.since_ms), date(holder.ends_ms));
                let (by, why) = (holder.by.clone(), holder.reason.clone());
                let fence = holder.fence.to_string();
                rows.push(vec![slot.name.clone(), held.clone(), fence, name.clone(), since, ends, by, why]);
            }
            if rows.is_empty() { vec![nobody] } else { rows }
        });
        if page.items.is_empty() {
            return String::new();
        }
        table(&["name", "held", "number", "holder", "since", "ends", "by", "why"], rows)
    })?;
    if page.items.is_empty() && !context.is_data() {
        print("nobody holds a slot");
    }
    Ok(())
}
