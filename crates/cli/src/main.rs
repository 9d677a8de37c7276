//! Place kept.

fn main() {}
