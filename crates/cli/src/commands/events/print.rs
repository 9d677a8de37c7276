//! Printing of events.

use bellwether_api::v1::event::Event;

use crate::args::Output;
use crate::context::Context;
use crate::exit::Failure;
use crate::show::data::{json_line, readable, yaml};
use crate::show::event::line;
use crate::show::screen::folded;
use crate::show::time::{clock, date};
use crate::show::{try_print, try_print_data};

/// Prints events in the form that was asked for, one after the other.
pub(super) fn each(context: &Context, events: &[Event]) -> Result<(), Failure> {
    for event in events {
        let text = match context.show.output {
            Output::Json => {
                readable(event).map_err(|error| error.to_string()).and_then(|value| json_line(&value))
            }
            Output::Yaml => yaml(event).map(|text| format!("---\n{text}")),
            Output::Name => {
                try_print(&event.seq.to_string())?;
                continue;
            }
            Output::Table | Output::Wide => {
                let is_wide = context.show.output == Output::Wide;
                let time = if is_wide { date(event.time_ms) } else { clock(event.time_ms) };
                try_print(&folded(&[line(event, context.show.paint, &time)]))?;
                continue;
            }
        };
        try_print_data(&text.map_err(|error| Failure::ours(format!("print an event: {error}")))?)?;
    }
    Ok(())
}
