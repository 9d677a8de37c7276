//! Tokens: credentials of people, programs and joining machines. Written only by operations; the secret
//! itself is never stored.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::access::NamePattern;
use crate::words::label::{Label, Labels};
use crate::words::name::{Actor, Namespace, NodeName, RoleName};
use crate::words::time::Timestamp;

/// An API token of a person or program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Name of the token; events name it as the actor.
    pub name: Actor,
    /// The roles whose claims it has, 1 to 16.
    pub roles: Vec<RoleName>,
    /// The namespaces that it is limited to; `None` for no limit.
    pub only_in: Option<NamePattern>,
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// Time of its creation, by the server's clock.
    pub created_at: Timestamp,
    /// Time it expires; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// What a machine becomes that joins with a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinsAs {
    /// A node, which runs an agent.
    #[default]
    Node,
    /// A server of the control plane: it receives the keys of the installation. Namespace, node, labels and services of the token
    /// mean nothing.
    Server,
}

/// A token that lets one machine join once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// What the machine becomes.
    pub joins_as: JoinsAs,
    /// Namespace in which the machine joins.
    pub namespace: Namespace,
    /// The name the machine must join under; `None` for any free name.
    pub node: Option<NodeName>,
    /// The labels of the node, as `KEY=VALUE`. Of those that end with `*` the machine chooses; it may choose no others.
    pub labels: Vec<NamePattern>,
    /// The services that the node may register.
    pub services: Vec<NamePattern>,
    /// The authority that it names, SHA-256 of the certificate; `None` for the one that the installation was founded with.
    pub authority: Option<String>,
    /// Token that created it.
    pub created_by: Actor,
    /// Time it expires; at most an hour after its creation.
    pub expires_at: Timestamp,
    /// The node or server that used it, and when; `None` while unused.
    pub used: Option<(NodeName, Timestamp)>,
}

impl JoinToken {
    /// The labels that every node gets that joins with it: those that leave the machine no choice.
    ///
    /// # Errors
    /// Why one is no label.
    pub fn given_labels(&self) -> Result<Labels, String> {
        let mut labels = Labels::default();
        for pattern in &self.labels {
            if let NamePattern::Exact(label) = pattern {
                let (key, value) = label
                    .split_once('=')
                    .ok_or_else(|| format!("{label:?} is not KEY=VALUE, like role=web"))?;
                let label = Label::new(key, value).map_err(|error| error.to_string())?;
                if let Some(given) = labels.get(&label.key).filter(|given| **given != *label.value) {
                    return Err(format!(
                        "{key}={given} and {key}={value}: a label has one value; {key}=* leaves it open"
                    ));
                }
                labels.set(label).map_err(|error| error.to_string())?;
            }
        }
        Ok(labels)
    }
}
