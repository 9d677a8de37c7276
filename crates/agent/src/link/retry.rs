//! When a call that failed is made again: later and later, and never before the server said.

use bellwether_api::client::CallError;
use bellwether_core::local::delay;
use bellwether_core::words::time::Span;

/// Longest that a server's word is waited for: one that asks for more is called again anyhow.
const LONGEST_ASKED: Span = Span::from_secs(60);

/// How long until the call that follows `failed` ones, the last of which came to `error`. What a server asks for is spread
/// upwards by up to a half, so that those it turned away together do not come back together. Whoever waited for an answer in
/// vain has waited long enough: behind a whole fleet that shakes hands with a server that just began, its turn may be next.
pub(super) fn before_again(error: &CallError, failed: u32, seed: u64) -> Span {
    let usual = delay::before_call(failed, seed);
    let asked = match error {
        CallError::Problem(problem) => problem.retry_after_ms.map(Span::from_millis),
        CallError::Timeout { .. } => return delay::before_call(1, seed),
        CallError::Setup { .. } | CallError::Unreachable { .. } | CallError::Garbled { .. } => None,
    };
    let Some(asked) = asked.map(|asked| asked.min(LONGEST_ASKED)) else { return usual };
    let least = Span::from_millis(asked.as_millis() / 4);
    usual.max(Span::from_millis(delay::spread(asked, seed, failed).as_millis() + least.as_millis()))
}

#[cfg(test)]
mod tests {
    use bellwether_api::problem::{Code, Problem};

    use super::*;

    fn turned_away(retry_after_ms: Option<u64>) -> CallError {
        let detail = "could not take it: too much at once".to_owned();
        CallError::Problem(Problem { status: 503, code: Code::Store, detail, hint: None, retry_after_ms })
    }

    #[test]
    fn a_server_that_says_when_is_not_called_before_and_not_by_all_at_once() {
        let pauses =
            |asked| (0..100).map(move |seed| before_again(&turned_away(Some(asked)), 1, seed).as_millis());
        assert!(pauses(4_000).all(|pause| (4_000..=6_001).contains(&pause)));
        let different: std::collections::BTreeSet<u64> = pauses(4_000).collect();
        assert!(different.len() > 50, "{different:?}");
        assert!(pauses(1_000_000).all(|pause| pause <= 90_001), "no server sends its agents away for good");
    }

    #[test]
    fn one_that_was_waited_for_in_vain_is_called_again_soon() {
        let after = std::time::Duration::from_secs(10);
        let waited = CallError::Timeout { server: "https://server-1:7420".to_owned(), after };
        for failed in 1..20 {
            assert!(before_again(&waited, failed, 7).as_millis() <= delay::FIRST_CALL.as_millis() * 5 / 4);
        }
    }

    #[test]
    fn one_that_does_not_say_is_called_as_ever_and_backing_off_is_never_cut_short() {
        for failed in 1..20 {
            let usual = delay::before_call(failed, 7);
            assert_eq!(before_again(&turned_away(None), failed, 7), usual);
            assert!(before_again(&turned_away(Some(1)), failed, 7) >= usual);
        }
    }
}
