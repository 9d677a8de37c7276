//! Values that are right by construction: text is parsed once, at the edge, and trusted inside.

pub mod time;
