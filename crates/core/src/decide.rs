//! Deciders: from what is known and the time to a verdict. Pure and level-triggered; deciding again changes nothing.

pub mod rollout;
