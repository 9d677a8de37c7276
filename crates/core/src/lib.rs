//! Bellwether's thinking: what is remembered, what follows from it, and why.
//!
//! Reading order: [`words`], [`records`]. Nothing here reads a clock, a file, a socket or a random source; `now` and seeds
//! come as arguments, and the crate is `no_std`, so the compiler holds that wall.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod decide;
pub mod records;
pub mod rollout;
pub mod words;
