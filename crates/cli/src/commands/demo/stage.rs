//! The demo's output: steps, the live tree, notes, and the summary at the end.

use std::time::Duration;

use bellwether_api::v1::rollout::RolloutView;
use bellwether_core::words::time::Span;

use super::expect::Expectations;
use super::fleet::ENTITY;
use crate::args::Global;
use crate::commands::rollout::follow::targets;
use crate::context::Context;
use crate::exit::Failure;
use crate::show::paint::Tone;
use crate::show::screen::Screen;
use crate::show::{Show, print, tree};

/// The demo's output.
pub(super) struct Stage {
    show: Show,
    screen: Screen,
    said: String,
    context: Option<Context>,
}

impl Stage {
    pub(super) fn new(global: &Global) -> Self {
        Self { show: Show::new(global), screen: Screen::default(), said: String::new(), context: None }
    }

    /// Connects the output to the fleet, whose targets it shows from now on.
    pub(super) fn tie(&mut self, context: Context) {
        self.context = Some(context);
    }

    /// Prints a sentence.
    pub(super) fn say(&mut self, text: &str) {
        self.screen.keep();
        // The demo proves its steps whether or not somebody can read them.
        drop(print(text));
    }

    /// Begins the next step.
    pub(super) fn act(&mut self, title: &str) {
        self.say(&format!("\n{} {title}", self.show.paint.text(Tone::Strong, "▶")));
    }

    /// Notes an event outside the control plane.
    pub(super) fn note(&mut self, text: &str) {
        self.say(&format!("{} {text}", self.show.paint.text(Tone::Bad, "⚡")));
    }

    /// Shows the rollout: redrawn on a terminal, else a line when it changes.
    pub(super) async fn show(&mut self, context: &Context, view: &RolloutView) -> Result<(), Failure> {
        if self.show.terminal {
            let targets = targets(context, ENTITY).await?;
            self.screen.draw(&tree::lines(view, &targets, self.show.paint));
            return Ok(());
        }
        let line = format!("  {}", view.reason);
        if line != self.said {
            print(&line)?;
            self.said = line;
        }
        Ok(())
    }

    /// The summary: what happened, why, and what to try next.
    pub(super) fn summary(
        &mut self,
        last: &RolloutView,
        lost: &str,
        took: Span,
        expect: &Expectations,
    ) -> String {
        self.screen.keep();
        let paint = self.show.paint;
        let good = last.progress.last_known_good.as_deref().unwrap_or("none");
        let bad = last.progress.bad.last();
        let mut lines = vec![
            String::new(),
            paint.text(Tone::Strong, "What happened"),
            format!("  last known good  {}", paint.text(Tone::Good, good)),
        ];
        if let Some(bad) = bad {
            lines.push(format!(
                "  last known bad   {}   {}",
                paint.text(Tone::Bad, &bad.version),
                bad.reason
            ));
        }
        lines.push(format!(
            "  node lost        {}   the rollout of v2 continued within its limit of unreachable nodes",
            paint.text(Tone::Bad, lost)
        ));
        if let Some(rollout) = &last.rollout {
            for failure in rollout.failures.iter().take(3) {
                lines.push(format!(
                    "  {:<16} {}",
                    format!("{} failed", failure.target),
                    failure.evidence.summary
                ));
            }
        }
        let seconds = Duration::from_millis(took.as_millis()).as_secs();
        lines.push(format!("  took             {seconds} s"));
        lines.push(String::new());
        lines.extend(expect.lines(paint));
        lines.push(String::new());
        lines.push(paint.text(Tone::Strong, "Try next"));
        lines
            .push("  bellwether demo --keep      leaves the fleet running: look around, break it".to_owned());
        lines.push(
            "  bellwether dev              a server and an agent of your own on this machine".to_owned(),
        );
        lines.push("  bellwether rollout --help   start, watch, pause, undo".to_owned());
        lines.join("\n")
    }
}
