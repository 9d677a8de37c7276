//! The tie between a long-running process and the one that started it.

use crate::exit::Failure;

/// Has this process asked to stop when the one that started it ends, however that ends.
pub(crate) fn follow(follow: bool) -> Result<(), Failure> {
    if !follow {
        return Ok(());
    }
    let set = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    set.map_err(|error| Failure::ours(format!("follow the parent process: {error}")))
}
