//! HTTP: routes, who may use them, and the translation between shapes and operations. Decides nothing.

mod auth;
mod listen;
mod problem;
mod routes;
