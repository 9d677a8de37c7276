//! The ends of a guard's children.

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// What was found of the children of this process.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// Whether any are left.
    pub are_left: bool,
    /// How the child that was asked for has ended, if it has.
    pub ended: Option<WaitStatus>,
}

/// Reaps all children that have ended.
#[must_use]
pub fn reap(child: Option<Pid>) -> Reaped {
    let mut ended = None;
    let are_left = loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if child == Some(pid) && ended.is_none() => ended = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => break true,
            // There are no children.
            Err(_) => break false,
        }
    };
    Reaped { are_left, ended }
}
