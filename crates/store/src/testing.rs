//! What tests of this crate and of its users start and hurt: a real etcd, and any store through a line that makes trouble. Feature `testing`; never in the product.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up has failed"
)]

pub mod certificates;
pub mod etcd;
pub mod faulty;
mod faulty_backend;
