//! What is remembered, one record per file. Each record has one writer, named in its file's header.

pub mod entity;
pub mod event;
pub mod evidence;
pub mod policy;
pub mod progress;
pub mod rollout;
pub mod target;
