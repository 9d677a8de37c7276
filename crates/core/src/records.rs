//! What is remembered, one record per file. Each record has one writer, named in its file's header.

pub mod event;
pub mod evidence;
pub mod node;
pub mod order;
pub mod status;
pub mod token;
