//! Waiting for a condition on another process, with a bound.

use std::time::Duration;

use anyhow::{Result, bail};
use bellwether_rt::clock::Clock;

/// Longest time for a part to become ready: far longer than it takes on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

/// Interval between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// Checks until the condition holds.
///
/// # Errors
/// If it does not hold within the bound; the error names `what`.
#[expect(clippy::disallowed_methods, reason = "it waits for other processes, outside of any runtime")]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let clock = Clock::system();
    let began = clock.now();
    while !holds()? {
        if clock.now().since(began).to_duration() > BOUND {
            bail!("waited {BOUND:?} in vain for: {what}");
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
