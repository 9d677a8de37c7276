//! Retries of calls: the time before each grows, and is never shorter than the server asks for.

use bellwether_api::client::{CallError, UnreachableCause};
use bellwether_api::problem::Code;
use bellwether_core::local::delay;
use bellwether_core::words::time::Span;

/// Longest time that a server may ask for: one that asks for more is called after this.
const LONGEST_ASKED: Span = Span::from_secs(60);

/// How TLS says that a server does not know the authority of the certificate that it was shown.
const NOT_OURS: &str = "UnknownCA";

/// What to do if the authority was replaced.
const AWAY: &str = "if the certificate authority was replaced while this node was away, join the machine again: bellwether agent join --force";

/// How long to wait after `failed` calls in a row failed, the last one with `error`. The time that a server asks for is
/// spread upwards by up to a half, so that agents it turned away together do not come back together. A call that timed out
/// is repeated soon: the server may be about to answer, behind the TLS handshakes of a whole fleet.
pub(super) fn retry_after(error: &CallError, failed: u32, seed: u64) -> Span {
    let usual = delay::before_call(failed, seed);
    let asked = match error {
        CallError::Problem(problem) => problem.retry_after_ms.map(Span::from_millis),
        CallError::Timeout { .. } => return delay::before_call(1, seed),
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Garbled { .. } => None,
    };
    let Some(asked) = asked.map(|asked| asked.min(LONGEST_ASKED)) else { return usual };
    let least = Span::from_millis(asked.as_millis() / 4);
    usual.max(Span::from_millis(delay::spread(asked, seed, failed).as_millis() + least.as_millis()))
}

/// What failed, as a sentence: "cannot reach SERVER: REASON", or what the server answered.
pub(crate) fn cannot(error: &CallError) -> String {
    match error {
        CallError::Problem(problem) => match &problem.hint {
            Some(hint) if problem.code == Code::Unauthenticated => format!("{}; {hint}", problem.detail),
            Some(_) | None => problem.detail.clone(),
        },
        CallError::Unreachable { cause, reason, .. }
            if *cause == UnreachableCause::Certificate || reason.contains(NOT_OURS) =>
        {
            format!("cannot {error}; {AWAY}")
        }
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Garbled { .. } => format!("cannot {error}"),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::problem::Problem;

    use super::*;

    fn turned_away(retry_after_ms: Option<u64>) -> CallError {
        let detail = "cannot take the request: too many at once".to_owned();
        CallError::Problem(Problem {
            status: 503,
            code: Code::Store,
            detail,
            hint: None,
            may_be_made: false,
            retry_after_ms,
            conflict: None,
            invalid: None,
        })
    }

    #[test]
    fn the_time_a_server_asks_for_is_kept_and_spread() {
        let pauses =
            |asked| (0..100).map(move |seed| retry_after(&turned_away(Some(asked)), 1, seed).as_millis());
        assert!(pauses(4_000).all(|pause| (4_000..=6_001).contains(&pause)));
        let different: std::collections::BTreeSet<u64> = pauses(4_000).collect();
        assert!(different.len() > 50, "{different:?}");
        assert!(
            pauses(1_000_000).all(|pause| pause <= 90_001),
            "a server cannot send its agents away for good"
        );
    }

    #[test]
    fn a_call_that_timed_out_is_repeated_soon() {
        let after = std::time::Duration::from_secs(10);
        let waited =
            CallError::Timeout { server: "https://server-1:7420".to_owned(), after, may_be_made: false };
        for failed in 1..20 {
            assert!(retry_after(&waited, failed, 7).as_millis() <= delay::FIRST_CALL.as_millis() * 5 / 4);
        }
    }

    #[test]
    fn without_a_time_from_the_server_the_backoff_is_used_and_it_is_never_shortened() {
        for failed in 1..20 {
            let usual = delay::before_call(failed, 7);
            assert_eq!(retry_after(&turned_away(None), failed, 7), usual);
            assert!(retry_after(&turned_away(Some(1)), failed, 7) >= usual);
        }
    }
}
