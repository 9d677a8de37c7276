//! Waiting for another process until something holds, within a bound.

use std::time::Duration;

use anyhow::{Result, bail};
use bellwether_rt::clock::Clock;

/// How long a part may take to be ready: far longer than it does on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// Looks again and again until it holds.
///
/// # Errors
/// When it does not within the bound, saying `what`.
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
