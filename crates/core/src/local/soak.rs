//! The soak of an assignment, as its own machine measures it: only time that was observed counts, and at its end every check is
//! asked again.

use crate::records::order::Assignment;
use crate::words::counter::AssignmentNumber;
use crate::words::time::Span;

/// What is known of the soak of one assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoakMeter {
    number: AssignmentNumber,
    soak: Span,
    observed: Span,
    state: SoakState,
}

/// What a soak needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SoakState {
    /// It is healthy time that is missing, or nothing.
    #[default]
    Observing,
    /// Every check must pass again.
    Asking,
    /// It is over.
    Confirmed,
}

impl SoakMeter {
    /// Continues what an earlier agent observed of this assignment.
    #[must_use]
    pub fn restored(number: AssignmentNumber, observed: Span) -> Self {
        Self { number, observed, ..Self::default() }
    }

    /// The assignment, and the healthy time on it that was observed.
    #[must_use]
    pub const fn observed(&self) -> (AssignmentNumber, Span) {
        (self.number, self.observed)
    }

    /// Follows the assignment in force: `None` if nothing is measured, because there is none, its soak is unknown, or its version
    /// is not healthy here. Another assignment starts anew; another soak of the same one does not.
    pub fn follow(&mut self, healthy_on: Option<&Assignment>) {
        match healthy_on.and_then(|assignment| Some((assignment.number, assignment.soak?))) {
            None => *self = Self::default(),
            Some((number, soak)) => {
                if number != self.number {
                    *self = Self { number, ..Self::default() };
                }
                if soak > self.soak {
                    self.state = SoakState::Observing;
                }
                self.soak = soak;
            }
        }
    }

    /// More healthy time was observed.
    pub fn add(&mut self, more: Span) {
        self.observed = self.observed.plus(more);
    }

    /// Healthy time that must still be observed; `None` if none is missing, or nothing is measured.
    #[must_use]
    pub fn missing(&self) -> Option<Span> {
        let is_measured = self.number != AssignmentNumber::ZERO && self.state == SoakState::Observing;
        let missing = self.soak.minus(self.observed);
        (is_measured && missing > Span::ZERO).then_some(missing)
    }

    /// Whether every check must be asked again now: true once for each soak.
    pub fn asks(&mut self) -> bool {
        let due = self.number != AssignmentNumber::ZERO
            && self.state == SoakState::Observing
            && self.missing().is_none();
        // Without a soak the first results were the last ones.
        let at_once = self.soak == Span::ZERO;
        if due {
            self.state = if at_once { SoakState::Confirmed } else { SoakState::Asking };
        }
        due && !at_once
    }

    /// Whether the answers of the checks are awaited.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.state == SoakState::Asking
    }

    /// Every check passed after it was asked again.
    pub const fn confirm(&mut self) {
        self.state = SoakState::Confirmed;
    }

    /// The soak that was confirmed; `None` until it was.
    #[must_use]
    pub fn confirmed(&self) -> Option<Span> {
        (self.state == SoakState::Confirmed).then_some(self.soak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::version::Version;

    fn assignment(number: u64, soak: Option<u64>) -> Assignment {
        Assignment {
            store: None,
            retry: None,
            version: Version::parse("v2").unwrap(),
            number: AssignmentNumber::new(number),
            method: Default::default(),
            soak: soak.map(Span::from_secs),
            binding: Default::default(),
        }
    }

    fn seconds(seconds: u64) -> Span {
        Span::from_secs(seconds)
    }

    #[test]
    fn a_soak_is_observed_then_asked_for_once_then_confirmed() {
        let mut meter = SoakMeter::default();
        assert!(!meter.asks() && meter.missing().is_none(), "nothing is assigned");
        meter.follow(Some(&assignment(1, Some(60))));
        meter.add(seconds(59));
        assert_eq!(meter.missing(), Some(seconds(1)));
        assert!(!meter.asks());
        meter.add(seconds(1));
        assert_eq!(meter.missing(), None);
        assert!(meter.asks() && !meter.asks() && meter.is_asking());
        assert_eq!(meter.confirmed(), None);
        meter.confirm();
        meter.follow(Some(&assignment(1, Some(60))));
        assert_eq!(meter.confirmed(), Some(seconds(60)));
    }

    #[test]
    fn ill_health_and_another_assignment_begin_anew() {
        let mut meter = SoakMeter::default();
        meter.follow(Some(&assignment(1, Some(60))));
        meter.add(seconds(60));
        assert!(meter.asks());
        meter.confirm();
        meter.follow(None);
        assert_eq!(meter.confirmed(), None);
        meter.follow(Some(&assignment(1, Some(60))));
        assert_eq!(meter.missing(), Some(seconds(60)));
        meter.add(seconds(30));
        meter.follow(Some(&assignment(2, Some(60))));
        assert_eq!(meter.missing(), Some(seconds(60)));
    }

    #[test]
    fn a_longer_soak_continues_and_a_shorter_one_is_over_sooner() {
        let mut meter = SoakMeter::restored(AssignmentNumber::new(1), seconds(20));
        meter.follow(Some(&assignment(1, Some(60))));
        assert_eq!(meter.missing(), Some(seconds(40)), "an earlier agent observed the rest");
        meter.follow(Some(&assignment(1, Some(10))));
        assert!(meter.asks());
        meter.confirm();
        assert_eq!(meter.confirmed(), Some(seconds(10)));
        meter.follow(Some(&assignment(1, Some(30))));
        assert_eq!((meter.confirmed(), meter.missing()), (None, Some(seconds(10))));
        meter.follow(Some(&assignment(3, Some(0))));
        assert!(!meter.asks());
        assert_eq!(meter.confirmed(), Some(Span::ZERO));
        meter.follow(Some(&assignment(1, None)));
        assert_eq!(meter.missing(), None, "an older control plane tells no soak");
    }
}
