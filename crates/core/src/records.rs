//! The stored records, one per file. Each record has one writer, named in its file's header.

pub mod annotation;
pub mod entity;
pub mod event;
pub mod evidence;
pub mod external;
pub mod freeze;
pub mod hook_answers;
pub mod key;
pub mod log;
pub mod node;
pub mod order;
pub mod pause;
pub mod policy;
pub mod profile;
pub mod progress;
pub mod registrations;
pub mod report;
pub mod rollout;
pub mod server;
pub mod slot;
pub mod status;
pub mod target;
pub mod token;
pub mod versioned;
pub mod wait_cycle;
