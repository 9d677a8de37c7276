//! Place kept.
