//! Bellwether's control plane: keeps records, decides, and speaks to agents and people.

pub mod pki;
pub mod secret;
