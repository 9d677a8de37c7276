//! Spreads: how long something takes, as typed, drawn by chance. Owns the grammar and the arithmetic of its shapes.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use bellwether_core::trial::simulation::random::RandomStream;
use bellwether_core::words::time::Span;

/// Longest that anything takes: a day. An exponential tail has no end of its own.
const LONGEST: Span = Span::from_secs(86_400);

/// What is accepted, for whoever typed something else.
const ACCEPTED: &str = "write 30s, 10s..60s for anything between, exp:30s for that mean, normal:30s±5s or \
                        lognormal:30s±20s for mean and deviation (+- reads as ±); a day at most";

/// How long something takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Distribution {
    /// Always the same.
    Fixed(Span),
    /// Anything between, each alike.
    Uniform(Span, Span),
    /// Mostly short, now and then long; the mean.
    Exponential(Span),
    /// Around a mean, with a standard deviation; never below zero.
    Normal(Span, Span),
    /// Around a mean, with a standard deviation and a long tail.
    LogNormal(Span, Span),
}

impl Distribution {
    /// Draws one. The same shape always takes as many draws.
    pub(crate) fn draw(&self, chance: &mut RandomStream) -> Span {
        match self {
            Self::Fixed(span) => *span,
            Self::Uniform(low, high) => {
                let width = high.as_millis() - low.as_millis();
                low.plus(Span::from_millis(chance.below(width + 1)))
            }
            Self::Exponential(mean) => span(-millis(*mean) * unit(chance).ln()),
            Self::Normal(mean, deviation) => span(millis(*mean) + millis(*deviation) * bell(chance)),
            Self::LogNormal(mean, deviation) => {
                let (mean, deviation) = (millis(*mean), millis(*deviation));
                let variance = (1.0 + (deviation / mean).powi(2)).ln();
                span((mean.ln() - variance / 2.0 + variance.sqrt() * bell(chance)).exp())
            }
        }
    }
}

/// Above 0, up to 1: 53 bits of a draw, all that a float holds.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "53 bits fit exactly")]
fn unit(chance: &mut RandomStream) -> f64 {
    ((chance.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// The standard normal, by Box and Muller.
fn bell(chance: &mut RandomStream) -> f64 {
    let (radius, angle) = (unit(chance), unit(chance));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a day in milliseconds fits exactly")]
fn millis(span: Span) -> f64 {
    span.as_millis() as f64
}

/// Whole milliseconds, from nothing to [`LONGEST`].
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits"
)]
fn span(millis_drawn: f64) -> Span {
    Span::from_millis(millis_drawn.round().clamp(0.0, millis(LONGEST)) as u64)
}

impl FromStr for Distribution {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || ACCEPTED.to_owned();
        let read = |text: &str| text.parse::<Span>().ok().filter(|span| *span <= LONGEST).ok_or_else(refuse);
        let environment = |text: &str| {
            let parts = text.split_once('±').or_else(|| text.split_once("+-"));
            let (mean, deviation) = parts.ok_or_else(refuse)?;
            Ok::<_, String>((read(mean)?, read(deviation)?))
        };
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (read(low)?, read(high)?);
            return if low <= high {
                Ok(Self::Uniform(low, high))
            } else {
                Err(format!("{low} is longer than {high}: write the shorter one first, like {high}..{low}"))
            };
        }
        match text.split_once(':') {
            None => read(text).map(Self::Fixed),
            Some(("exp", mean)) => read(mean).map(Self::Exponential),
            Some(("normal", rest)) => {
                environment(rest).map(|(mean, deviation)| Self::Normal(mean, deviation))
            }
            Some(("lognormal", rest)) => match environment(rest)? {
                (Span::ZERO, _) => Err("a lognormal mean is above zero, like lognormal:30s±20s".to_owned()),
                (mean, deviation) => Ok(Self::LogNormal(mean, deviation)),
            },
            Some(_) => Err(refuse()),
        }
    }
}

impl Display for Distribution {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(span) => write!(f, "{span}"),
            Self::Uniform(low, high) => write!(f, "{low} to {high}"),
            Self::Exponential(mean) => write!(f, "{mean} on average, exponentially"),
            Self::Normal(mean, deviation) => write!(f, "{mean} ± {deviation}"),
            Self::LogNormal(mean, deviation) => write!(f, "{mean} ± {deviation}, lognormally"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "small numbers")]
    fn mean(text: &str) -> f64 {
        let spread: Distribution = text.parse().unwrap();
        let total: u64 =
            (0..20_000).map(|n| spread.draw(&mut RandomStream::for_one(3, text, n)).as_millis()).sum();
        total as f64 / 20_000.0
    }

    #[test]
    fn every_shape_has_the_mean_that_was_asked_for() {
        for (text, expected) in [
            ("30s", 30_000.0),
            ("10s..60s", 35_000.0),
            ("exp:30s", 30_000.0),
            ("normal:30s±5s", 30_000.0),
            ("normal:30s+-5s", 30_000.0),
            ("lognormal:30s±20s", 30_000.0),
        ] {
            let mean = mean(text);
            assert!((mean - expected).abs() < expected * 0.03, "{text}: {mean}");
        }
    }

    #[test]
    fn what_is_no_spread_is_refused_with_an_example() {
        for text in ["", "30", "exp:", "exp:5", "normal:30s", "60s..10s", "gamma:3s", "2d", "lognormal:0s±1s"]
        {
            let error = text.parse::<Distribution>().unwrap_err();
            assert!(error.contains("s"), "{text}: {error}");
        }
        assert_eq!(
            "60s..10s".parse::<Distribution>().unwrap_err(),
            "1m is longer than 10s: write the shorter one first, like 10s..1m"
        );
    }
}
