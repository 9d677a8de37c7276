//! Faults of a simulated fleet. Owns shares, failure modes, and the behaviour drawn from them.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::target::AssignmentPurpose;
use bellwether_core::trial::simulation::behaviour::{AssignedVersion, SimulatedResponse, TargetBehaviour};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::Span;

use super::spread::Distribution;

/// A share, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share(u32);

/// Failure modes, each with its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mix(Vec<(Mode, u32)>);

/// How a node fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It cannot apply the version.
    Apply,
    /// It runs the version, and its check fails from the start.
    Check,
    /// It runs the version, and its check fails later.
    Soak,
    /// It never finishes.
    Hang,
    /// It stops reporting.
    Silent,
}

const MODES: [(Mode, &str); 5] = [
    (Mode::Apply, "apply"),
    (Mode::Check, "check"),
    (Mode::Soak, "soak"),
    (Mode::Hang, "hang"),
    (Mode::Silent, "silent"),
];

/// The faults that nodes are given.
#[derive(Debug, Clone)]
pub(crate) struct FaultModel {
    pub(crate) apply: Distribution,
    pub(crate) unlucky: Share,
    pub(crate) bad: Share,
    pub(crate) mix: Mix,
    pub(crate) late: Option<Distribution>,
    pub(crate) zones: u32,
}

impl Share {
    /// Parts per million.
    pub(crate) const fn parts(self) -> u32 {
        self.0
    }
}

impl Mix {
    fn draw(&self, chance: &mut RandomStream) -> Mode {
        let all: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = chance.below(all);
        let mut modes = self.0.iter();
        loop {
            match modes.next() {
                Some((_, weight)) if left >= u64::from(*weight) => left -= u64::from(*weight),
                Some((mode, _)) => return *mode,
                None => return Mode::Apply,
            }
        }
    }
}

impl TargetBehaviour for FaultModel {
    fn answer(&self, assigned: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse {
        // Everything is drawn in the same order whatever the outcome: a node has the same faults under every policy.
        let apply = self.apply.draw(chance);
        let (bad, unlucky) = (chance.happens(self.bad.0), chance.happens(self.unlucky.0));
        let (mode, moment) = (self.mix.draw(chance), chance.draw());
        let back = match assigned.purpose {
            AssignmentPurpose::Update | AssignmentPurpose::Adopted => false,
            AssignmentPurpose::Rollback | AssignmentPurpose::KnownGood => true,
        };
        if back || !(bad || unlucky) {
            return SimulatedResponse::Succeeds { apply };
        }
        match mode {
            Mode::Apply => self.try_again(apply, bad, assigned.policy.retries, chance),
            Mode::Check => SimulatedResponse::BecomesUnhealthy { apply, healthy_for: Span::ZERO },
            Mode::Soak => {
                let within =
                    || Span::from_millis(RandomStream::of(moment).below(assigned.policy.soak.as_millis()));
                let healthy_for = self.late.as_ref().map_or_else(within, |late| late.draw(chance));
                SimulatedResponse::BecomesUnhealthy { apply, healthy_for }
            }
            Mode::Hang => SimulatedResponse::Hangs,
            Mode::Silent => SimulatedResponse::FallsSilent { after: apply },
        }
    }

    fn domain(&self, target: &TargetName) -> Option<Arc<str>> {
        let number: u32 = target.as_str().rsplit('-').next()?.parse().ok()?;
        (self.zones > 1).then(|| format!("z{}", number % self.zones + 1).into())
    }
}

impl FaultModel {
    /// Attempts after a first failed one, with the pauses that an agent makes between them.
    fn try_again(
        &self,
        first: Span,
        bad: bool,
        retries: u32,
        chance: &mut RandomStream,
    ) -> SimulatedResponse {
        let mut apply = first;
        for failed in 1..=retries {
            apply = apply.plus(delay::after(failed, chance.draw())).plus(self.apply.draw(chance));
            if !bad && !chance.happens(self.unlucky.0) {
                return SimulatedResponse::Succeeds { apply };
            }
        }
        SimulatedResponse::Fails { apply, attempts: retries.saturating_add(1) }
    }
}

impl FromStr for Share {
    type Err = String;
    /// Reads `5%` and `0.25%`, up to four decimals.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "write a share from 0% to 100%, like 0.5%".to_owned();
        let number = text.strip_suffix('%').ok_or_else(refuse)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 4 {
            return Err(refuse());
        }
        let whole: u32 = whole.parse().map_err(|_| refuse())?;
        let part: u32 = format!("{part:0<4}").parse().map_err(|_| refuse())?;
        let parts = whole.checked_mul(10_000).and_then(|whole| whole.checked_add(part));
        parts.filter(|parts| *parts <= 1_000_000).map(Self).ok_or_else(refuse)
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:04}", self.0 % 10_000);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{}%", self.0 / 10_000),
            decimals => write!(f, "{}.{decimals}%", self.0 / 10_000),
        }
    }
}

impl FromStr for Mix {
    type Err = String;
    /// Reads `soak`, `apply,soak` and `apply=3,soak=1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = MODES.map(|(_, word)| word).join(", ");
        let refuse = |part: &str| {
            format!("{part:?} is not one of {known}; write one, or several with weights, like apply=3,soak=1")
        };
        let mut modes = Vec::new();
        for part in text.split(',') {
            let (word, weight) = part.split_once('=').unwrap_or((part, "1"));
            let mode = MODES.iter().find(|(_, known)| *known == word).ok_or_else(|| refuse(part))?.0;
            let weight = weight.parse().ok().filter(|weight| (1..=1_000).contains(weight));
            modes.push((
                mode,
                weight.ok_or_else(|| {
                    format!("the weight of {word} must be between 1 and 1000, like {word}=3")
                })?,
            ));
        }
        Ok(Self(modes))
    }
}

impl Display for Mix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, (mode, weight)) in self.0.iter().enumerate() {
            let word = MODES.iter().find(|(known, _)| known == mode).map_or("", |(_, word)| word);
            let gap = if place == 0 { "" } else { ", " };
            if *weight == 1 { write!(f, "{gap}{word}")? } else { write!(f, "{gap}{word}={weight}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_decimals() {
        for (text, parts) in [("0%", 0), ("5%", 50_000), ("0.5%", 5_000), ("0.0001%", 1), ("100%", 1_000_000)]
        {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.parts(), share.to_string().as_str()), (parts, text));
        }
        for text in ["", "5", "%", ".5%", "5.%", "-1%", "100.1%", "0.00001%", "99999999999%", "five%"] {
            assert_eq!(text.parse::<Share>().unwrap_err(), "write a share from 0% to 100%, like 0.5%");
        }
    }

    #[test]
    fn modes_are_drawn_by_their_weight() {
        let mix: Mix = "apply=3,soak".parse().unwrap();
        assert_eq!(mix.to_string(), "apply=3, soak");
        let drawn =
            (0..10_000).filter(|n| mix.draw(&mut RandomStream::for_one(1, "", *n)) == Mode::Apply).count();
        assert!((7_300..7_700).contains(&drawn), "{drawn}");
        for text in ["", "bang", "apply=0", "apply=x", "apply,,soak"] {
            assert!(text.parse::<Mix>().unwrap_err().contains("like apply=3"), "{text}");
        }
    }
}
