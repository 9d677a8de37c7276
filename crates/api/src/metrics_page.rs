//! A page of metrics, in the format that a client accepts: OpenMetrics, or Prometheus' older text format.

use std::collections::BTreeSet;

use crate::media::{OPEN_METRICS, PROMETHEUS_TEXT};

/// The media type and the text of a page of OpenMetrics for a client with this header `Accept`: unchanged if it accepts OpenMetrics, else in
/// Prometheus' older text format.
#[must_use]
pub fn accepted(accept: Option<&str>, page: String) -> (&'static str, String) {
    match accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        true => (OPEN_METRICS, page),
        false => (PROMETHEUS_TEXT, as_prometheus_text(&page)),
    }
}

/// A page of OpenMetrics in Prometheus' older text format: there the type and the help of a counter have the name of its sample, and no mark is
/// at the end.
fn as_prometheus_text(page: &str) -> String {
    let counters: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(page.len() + 1_024);
    for line in page.lines().filter(|line| *line != "# EOF") {
        let about = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
        match about.and_then(|about| about.split_once(' ')).filter(|(name, _)| counters.contains(name)) {
            Some((name, rest)) => {
                let keyword = line.get(..7).unwrap_or_default();
                text.push_str(&format!("{keyword}{name}_total {rest}\n"));
            }
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_names_open_metrics_gets_it_and_any_other_the_older_text() {
        let page = || "# EOF\n".to_owned();
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(accepted(Some(prometheus), page()), (OPEN_METRICS, page()));
        for other in [None, Some("*/*"), Some("text/plain")] {
            assert_eq!(accepted(other, page()), (PROMETHEUS_TEXT, String::new()), "{other:?}");
        }
    }

    #[test]
    fn the_older_text_names_counters_by_their_samples_and_has_no_mark_at_its_end() {
        let page = "# HELP a_b Help of a.\n# TYPE a_b counter\na_b_total{x=\"y\"} 1\n# HELP c Help.\n# TYPE c gauge\nc 2\n# EOF\n";
        let text = "# HELP a_b_total Help of a.\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 1\n# HELP c Help.\n# TYPE c gauge\nc 2\n";
        assert_eq!(as_prometheus_text(page), text);
    }
}
