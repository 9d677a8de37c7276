//! The server as others meet it: over TLS, with tokens and certificates, on a store on disk.

mod access;
mod bad_input;
mod durable;
mod harness;
mod rollouts;
mod routes;
