//! JSON shapes, version 1. A shape never changes its meaning; an incompatible change is added beside it as
//! `v2`.

pub mod access;
pub mod annotation;
pub mod apply;
pub mod entity;
pub mod event;
pub mod evidence;
pub mod external;
pub mod failure;
pub mod freeze;
pub mod hook;
pub mod hook_answers;
pub mod http_sd;
pub mod labels;
pub mod local;
pub mod log;
pub mod namespace;
pub mod node;
pub mod order;
pub mod overview;
pub mod page;
pub mod pause;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod progress;
pub mod registrations;
pub mod report;
pub mod rollout;
pub mod server;
pub mod service;
pub mod slot;
pub mod status;
pub mod target;
pub mod wait_cycle;
pub mod why;
