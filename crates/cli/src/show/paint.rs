//! Colours: few, and never the only carrier of a meaning.

use anstyle::{AnsiColor, Style};

use super::visible;

/// Whether and how to colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

/// The meaning of a text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Busy,
    Dim,
    Strong,
    Plain,
}

impl Paint {
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
            Tone::Busy => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Dim => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
            Tone::Plain => Style::new(),
        };
        if self.on && tone != Tone::Plain {
            format!("{}{}{}", style.render(), visible::text(text), style.render_reset())
        } else {
            text.to_owned()
        }
    }
}

/// A target's glyph and tone, by its phase.
pub(crate) fn phase(phase: &str) -> (&'static str, Tone) {
    match phase {
        "succeeded" => ("✓", Tone::Good),
        "rolled_back" => ("↩", Tone::Busy),
        "failed" => ("✗", Tone::Bad),
        "unreachable" => ("?", Tone::Bad),
        "blocked" => ("■", Tone::Busy),
        "soaking" => ("◑", Tone::Busy),
        "paused" => ("‖", Tone::Busy),
        "idle" | "waiting" => ("·", Tone::Dim),
        _ => ("◔", Tone::Busy),
    }
}
