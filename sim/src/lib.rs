//! The place of the simulator: real deciders, servers and agents' logic on a simulated clock, network and store.
//!
//! Empty so far. Until it is there, random histories of the rollout engine run as property tests in `crates/core`, and
//! crashes of the store and the server as tests with real processes.
