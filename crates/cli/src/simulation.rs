//! What `simulate` is asked to simulate: policies, faults and durations, as written on the command line and in files.

pub(crate) mod faults;
pub(crate) mod policies;
pub(crate) mod spread;
