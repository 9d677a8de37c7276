//! The API: JSON shapes v1, the routes, the errors, and the client.
//!
//! Shapes are not domain types: `From` converts a domain value to its shape, and `TryFrom` converts a shape
//! to its domain value or names the invalid field. The stored form of a record is its JSON shape.

pub mod client;
pub mod condition;
pub mod consul;
pub mod list;
pub mod media;
pub mod metrics_page;
pub mod number;
pub mod paths;
pub mod problem;
pub mod shape;
pub mod template;
pub mod v1;
pub mod value;
pub mod web_address;
pub mod word;
