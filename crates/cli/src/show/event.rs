//! An event in one line.

use bellwether_api::v1::event::Event;

use super::paint::{Paint, Tone};
use super::visible;

/// An event: its number, time, kind and subject, what changed, why and by whom.
pub(crate) fn line(event: &Event, paint: Paint, time: &str) -> String {
    branch(event, paint, time, 0)
}

/// The same as a part of a tree, at this depth.
pub(crate) fn branch(event: &Event, paint: Paint, time: &str, depth: usize) -> String {
    let indent = match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    let kind = format!("{indent}{}", event.kind);
    let change = match (&event.before, &event.after) {
        (Some(before), Some(after)) if before == after => format!("{after}: "),
        // Its cause may say what it is now.
        (Some(before), Some(after)) if *after == event.cause => format!("{before} → "),
        (Some(before), Some(after)) => format!("{before} → {after}: "),
        (None, Some(after)) => format!("{after}: "),
        (Some(before), None) => format!("{before} →: "),
        (None, None) => String::new(),
    };
    let change = visible::line(&change);
    let tone = match event.kind.rsplit('.').next() {
        Some(
            "failed" | "unreachable" | "rolling_back" | "known_bad" | "rollback_failed" | "late_failure",
        ) => Tone::Bad,
        Some("succeeded" | "known_good" | "up") => Tone::Good,
        Some(_) | None => Tone::Strong,
    };
    format!(
        "{} {} {} {} {change}{} {}",
        paint.text(Tone::Dim, &format!("{:>6}", event.seq)),
        paint.text(Tone::Dim, time),
        paint.text(tone, &format!("{kind:<22}")),
        format_args!("{:<22}", visible::line(&event.subject)),
        visible::line(&event.cause),
        paint.text(Tone::Dim, &visible::line(&format!("({})", event.actor))),
    )
}
