//! Shapes v1. A shape never changes its meaning; what breaks comes as `v2` beside it.

pub mod access;
pub mod event;
pub mod evidence;
pub mod node;
pub mod order;
pub mod page;
pub mod status;
