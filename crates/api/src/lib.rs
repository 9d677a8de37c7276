//! The contract: JSON shapes v1, the routes they travel on, the errors that come back, and the client that speaks it.
//!
//! Wire shapes are not domain types: `From` turns a domain value into its shape, `TryFrom` reads a shape back or
//! says which field is wrong. The stored form of a record is its wire form.

pub mod client;
pub mod consul;
pub mod paths;
pub mod problem;
pub mod shape;
pub mod v1;
pub mod word;
