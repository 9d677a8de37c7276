//! Sinks: receivers of the events of a namespace. Written only by operations; how far a sink is, is in a record of its own.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::annotation::Annotation;
use crate::words::counter::SinkRevision;
use crate::words::filter::Filter;
use crate::words::label::Labels;
use crate::words::name::{SecretName, SinkName};
use crate::words::time::Span;

/// Most sinks of a namespace: each has a task of the leader and a connection or a file of its own.
pub const MAX_SINKS: usize = 32;

/// Most secrets that sign the calls of a webhook: the present one, and the one before or after it.
pub const MAX_SIGNING_SECRETS: usize = 2;

/// Most headers of a webhook's own.
pub const MAX_HEADERS: usize = 16;

/// Longest value of such a header, in bytes.
pub const MAX_HEADER_BYTES: usize = 1_024;

/// Longest URL of a webhook, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;

/// Default time limit of one call.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);

/// Shortest time limit of one call.
pub const MIN_TIMEOUT: Span = Span::from_millis(100);

/// Longest time limit of one call: a receiver that needs longer should take the event and work later.
pub const MAX_TIMEOUT: Span = Span::from_secs(60);

/// Default number of refusals of one event after which it is given up: with the delays between them, about an hour.
pub const DEFAULT_ATTEMPTS: u32 = 20;

/// Largest such number.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// Default age of an event after which an attempt that fails was the last.
pub const DEFAULT_MAX_AGE: Span = Span::from_secs(24 * 60 * 60);

/// Shortest such age.
pub const SHORTEST_MAX_AGE: Span = Span::from_secs(1);

/// Longest such age.
pub const LONGEST_MAX_AGE: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Default size of a file, in bytes, after which another one is begun.
pub const DEFAULT_FILE_BYTES: u64 = 64 << 20;

/// Smallest such size: one that holds a few events.
pub const MIN_FILE_BYTES: u64 = 64 << 10;

/// Largest such size.
pub const MAX_FILE_BYTES: u64 = 16 << 30;

/// Default number of older files that are kept.
pub const DEFAULT_KEEP: u32 = 4;

/// Most older files that are kept.
pub const MAX_KEEP: u32 = 100;

/// Longest path of a file, in bytes.
pub const MAX_PATH_BYTES: usize = 255;

/// A receiver of the events of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    /// Its name.
    pub name: SinkName,
    /// Number of its last change, from 1.
    pub revision: SinkRevision,
    /// Where the events go.
    pub target: SinkTarget,
    /// Filter of the events.
    pub filter: Filter,
    /// Whether a person disabled it: nothing is sent, and events wait for as long as they are kept.
    pub disabled: bool,
    /// Labels given to it by `apply`, for pruning by them.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}

/// Where the events of a sink go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkTarget {
    /// To an HTTP endpoint, one POST for each event.
    Webhook(Webhook),
    /// To a file on the disk of the server that leads, one line for each event.
    File(SinkFile),
}

/// An HTTP endpoint that receives events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its URL: `http://…` or `https://…`.
    pub url: String,
    /// The secrets of the namespace that sign each call, at most [`MAX_SIGNING_SECRETS`]; unsigned without one.
    pub secrets: Vec<SecretName>,
    /// Headers that are sent with each call, in lower case.
    pub headers: BTreeMap<String, String>,
    /// Time limit of one call. [`MIN_TIMEOUT`] to [`MAX_TIMEOUT`].
    pub timeout: Span,
    /// Refusals of one event by the receiver after which it is a dead letter. 1 to [`MAX_ATTEMPTS`].
    pub attempts: u32,
    /// Age of an event after which an attempt that fails was the last. [`SHORTEST_MAX_AGE`] to [`LONGEST_MAX_AGE`].
    pub max_age: Span,
}

/// A file that receives events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkFile {
    /// Path below the directory of the namespace, in the directory that the server's configuration names.
    pub path: String,
    /// Size after which another file is begun, in bytes.
    pub max_bytes: u64,
    /// Number of older files that are kept.
    pub keep: u32,
}

impl SinkFile {
    /// Whether it writes a file of this path, or gives one that name once it is large enough.
    #[must_use]
    pub fn writes(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(self.path.as_str()) else { return false };
        let number = rest.strip_prefix('.').and_then(|number| number.parse::<u32>().ok());
        rest.is_empty() || number.is_some_and(|number| (1..=self.keep).contains(&number))
    }
}

impl SinkTarget {
    /// Its kind, in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::File(_) => "file",
        }
    }

    /// Its URL or its path.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Webhook(webhook) => &webhook.url,
            Self::File(file) => &file.path,
        }
    }
}
