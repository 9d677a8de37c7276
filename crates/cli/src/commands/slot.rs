//! `slot`: how many machines may do something at once, and which do.

use super::lists;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::slot::{ForceRelease, Slot, SlotSpec};

use crate::args::{ListFlags, SlotVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::{date, length};

pub(super) async fn run(context: &Context, verb: SlotVerb) -> CommandResult {
    match verb {
        SlotVerb::List { all, flags } => return list(context, &flags, all, "slot").await,
        SlotVerb::Delete { of, consent } => {
            confirm(&format!("delete slot {}?", of.name), consent)?;
            context.client.delete_slot(&context.namespace, &of.name).await?;
            context.show.changed(&format!("slot {}: deleted", of.name));
        }
        SlotVerb::Set { of, capacity, lease } => {
            let spec = SlotSpec { capacity, lease: lease.map(|lease| lease.to_string()) };
            let set = context.client.set_slot(&context.namespace, &of.name, &spec).await?;
            let (held, capacity) = (set.holders.len(), set.capacity);
            context.show.changed(&format!("slot {}: capacity {capacity}, held by {held} now", of.name));
        }
        SlotVerb::Release { of, holder, reason } => {
            release(context, "slot", &of.name, ForceRelease { holder, reason }).await?;
        }
    }
    Ok(Exit::Yes)
}

/// Releases a slot in place of its holder.
///
/// A lock is a slot: `noun` is the one that the person used.
pub(super) async fn release(
    context: &Context,
    noun: &str,
    name: &str,
    force: ForceRelease,
) -> Result<(), Failure> {
    context.client.force_release_slot(&context.namespace, name, &force).await?;
    context.show.changed(&format!("{noun} {name}: released from {}; it is free to take again", force.holder));
    Ok(())
}

/// Refuses a slot that was neither set nor acquired; `noun` is slot or lock.
///
/// # Errors
/// Not found, if no slot of the name exists.
pub(super) async fn exists(context: &Context, noun: &str, name: &str) -> Result<(), Failure> {
    let all = context.client.slots(&context.namespace, true).await?.items;
    if all.iter().any(|slot| slot.name == name) {
        return Ok(());
    }
    let failure = Failure::new(Exit::No, format!("find {noun} {name}"));
    Err(failure.hint(format!("list them: bellwether {noun} list --all")))
}

/// Lists slots with their holders; `noun` is slot or lock.
pub(super) async fn list(context: &Context, flags: &ListFlags, all: bool, noun: &str) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.slots(namespace, all).await;
    let path = format!("{}?all={all}", fill(paths::SLOTS, &[namespace]));
    lists::show(context, flags, &path, read, async |page| shown(context, &page, noun).await).await
}

async fn shown(context: &Context, page: &Page<Slot>, noun: &str) -> Result<(), Failure> {
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
                let (by, reason) = (holder.by.clone(), holder.reason.clone());
                let fence = holder.fence.to_string();
                rows.push(vec![
                    slot.name.clone(),
                    held.clone(),
                    fence,
                    name.clone(),
                    since,
                    ends,
                    by,
                    reason,
                ]);
            }
            if rows.is_empty() { vec![nobody] } else { rows }
        });
        if page.items.is_empty() {
            return format!("no {noun} is held");
        }
        table(&["name", "held", "number", "holder", "since", "ends", "by", "reason"], rows)
    })
}

/// A slot with its holders, one fact a line.
pub(super) fn sheet(slot: &Slot) -> String {
    let mut lines = vec![
        format!("name      {}", slot.name),
        format!("held      {} of {}", slot.holders.len(), slot.capacity),
        format!("lease     {}", length(slot.lease_ms)),
    ];
    if slot.fence > 0 {
        lines.push(format!("number    {}", slot.fence));
    }
    for (name, holder) in &slot.holders {
        let reason = if holder.reason.is_empty() { String::new() } else { format!(": {}", holder.reason) };
        let (since, ends) = (date(holder.since_ms), date(holder.ends_ms));
        lines.push(format!("held by   {name} since {since}, until {ends} (by {}{reason})", holder.by));
    }
    lines.join("\n")
}
