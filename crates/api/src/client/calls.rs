//! The calls, typed: one function per route.
