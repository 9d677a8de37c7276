//! Shapes v1. A shape never changes its meaning; what breaks comes as `v2` beside it.

pub mod access;
pub mod answers;
pub mod entity;
pub mod event;
pub mod evidence;
pub mod external;
pub mod failure;
pub mod freeze;
pub mod hook;
pub mod local;
pub mod log;
pub mod node;
pub mod offers;
pub mod order;
pub mod overview;
pub mod page;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod progress;
pub mod report;
pub mod rollout;
pub mod service;
pub mod status;
pub mod target;
pub mod why;
