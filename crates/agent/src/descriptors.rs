//! Descriptors that were open when the agent was started.

/// The first one behind stdin, stdout and stderr.
const FIRST_UNNAMED: i32 = 3;

/// Has no command get what whoever started the agent left open: a command may be another user's. The agent itself uses none of
/// them: no socket is handed to it.
pub(crate) fn close_inherited_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST_UNNAMED, &[]);
}
