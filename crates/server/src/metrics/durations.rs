//! Histograms of durations in seconds.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// Bounds of the buckets, in seconds. A pass, a commit and a request are each expected to take much less than one; from the fifth bound on
/// somebody notices.
const BOUNDS: [f64; 9] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// A histogram of durations in seconds. Clones are one histogram.
#[derive(Debug, Clone)]
pub struct Durations(pub(super) Histogram);

impl Default for Durations {
    fn default() -> Self {
        Self(histogram())
    }
}

impl Durations {
    /// Counts what began then and ends now.
    pub(crate) fn observe_since(&self, begun: Instant) {
        self.observe(begun.elapsed());
    }

    /// Counts a duration.
    pub(crate) fn observe(&self, duration: Duration) {
        self.0.observe(duration.as_secs_f64());
    }
}

fn histogram() -> Histogram {
    Histogram::new(BOUNDS)
}

/// Labels of the histogram of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestsOf {
    class: &'static str,
}

/// A histogram of durations of requests for each of their classes. Clones are one.
#[derive(Debug, Clone)]
pub struct RequestDurations(pub(super) Family<RequestsOf, Histogram, fn() -> Histogram>);

impl Default for RequestDurations {
    fn default() -> Self {
        Self(Family::new_with_constructor(histogram))
    }
}

impl RequestDurations {
    /// Counts a request of a class that began then and ends now.
    pub(crate) fn observe_since(&self, class: &'static str, begun: Instant) {
        self.0.get_or_create(&RequestsOf { class }).observe(begun.elapsed().as_secs_f64());
    }
}
