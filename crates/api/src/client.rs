//! The HTTP client of the API: typed calls over shared connections, with deadlines. It makes no decisions.

mod access;
mod attempt;
pub mod calls;
mod connection;
mod connector;
mod error;
mod failover;
mod list_options;
mod notice;
pub mod secret;
mod servers;
pub mod tls;

pub use access::{Access, Identity};
pub use calls::nodes::{NodeKnowledge, NodeLogKey};
pub use connection::streamed::AnswerBody;
pub use connection::{Client, DEFAULT_DEADLINE};
pub use error::{CallError, FailedAttempt, UnreachableCause};
pub use list_options::ListOptions;
pub use notice::Notice;
