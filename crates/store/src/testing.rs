//! Tools for tests of this crate and of its users: a real etcd, and fault injection for any store. Feature `testing`; never in
//! the product.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up has failed"
)]

pub mod certificates;
pub mod etcd;
pub mod faulty;
mod faulty_backend;
