//! `events --chain`: what led to an event, and what it led to, as a tree.

use std::collections::BTreeMap;

use bellwether_api::v1::event::Event;

use super::print;
use crate::args::Output;
use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::event::branch;
use crate::show::screen::folded;
use crate::show::time::{clock, date};
use crate::show::try_print;

pub(super) async fn run(context: &Context, number: u64) -> CommandResult {
    let chain = context.client.event_chain(&context.namespace, number).await?;
    let is_wide = context.show.output == Output::Wide;
    if is_wide || context.show.output == Output::Table {
        for (depth, event) in tree(&chain.items) {
            let time = if is_wide { date(event.time_ms) } else { clock(event.time_ms) };
            try_print(&folded(&[branch(event, context.show.paint, &time, depth)]))?;
        }
    } else {
        print::each(context, &chain.items)?;
    }
    if !chain.complete {
        let read_to = chain.read_to;
        context.show.note(&format!("events after {read_to} were not read: there may be more that it led to"));
    }
    Ok(Exit::Yes)
}

/// The events, each under the one that led to it, with its depth.
fn tree(events: &[Event]) -> Vec<(usize, &Event)> {
    let mut children: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    let mut pending = Vec::new();
    for event in events {
        match event.caused_by.filter(|cause| events.iter().any(|other| other.seq == *cause)) {
            Some(cause) if cause < event.seq => children.entry(cause).or_default().push(event),
            Some(_) | None => pending.push((0, event)),
        }
    }
    pending.reverse();
    let mut tree = Vec::new();
    while let Some((depth, event)) = pending.pop() {
        tree.push((depth, event));
        let below = children.remove(&event.seq).unwrap_or_default();
        pending.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_stands_under_the_one_that_led_to_it_and_one_without_is_a_root() {
        let event = |(seq, caused_by): (u64, Option<u64>)| Event {
            seq,
            time_ms: 0,
            actor: "kim".to_owned(),
            kind: "node.up".to_owned(),
            subject: "node/web-1".to_owned(),
            before: None,
            after: None,
            cause: String::new(),
            caused_by,
        };
        let events = [(3, Some(1)), (4, None), (5, Some(3)), (6, Some(4)), (7, Some(3))].map(event);
        let shape: Vec<_> = tree(&events).into_iter().map(|(depth, event)| (depth, event.seq)).collect();
        assert_eq!(shape, [(0, 3), (1, 5), (1, 7), (0, 4), (1, 6)]);
    }
}
