//! What a member says of its replication, where one is the primary that others follow.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::words::plural::plural;

/// What a member says of its replication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// Whether it is a primary.
    pub is_primary: bool,
    /// URL of the member that it follows; `None` if it follows nobody.
    pub follows: Option<String>,
    /// Whether data come to it now.
    pub streams: bool,
    /// Whether it has all data of its history up to its position, and does not copy them anew.
    pub is_whole: bool,
    /// Id of its history.
    pub history: String,
    /// Id of the history of which that one is the continuation; `None` if there is none.
    pub former: Option<String>,
    /// Its position; `None` while it changes and nobody asked for it.
    pub offset: Option<u64>,
    /// URLs of the replicas that a primary sends data to.
    pub replicas: Vec<String>,
    /// Whether its agent knows that it is to take over from the primary.
    pub takes_over: bool,
    /// Id of its process: one that is started anew has another.
    pub run: String,
    /// Whether it cannot write to its disk: as a primary, it takes no writes.
    pub cannot_store: bool,
    /// The number of its keys. Of a primary, and while data come to it, only while a person may have to decide, and down to two digits.
    pub keys: Option<u64>,
}

impl Replication {
    /// How many keys it has, in words; `None` if that is not told.
    #[must_use]
    pub fn counted(&self) -> Option<String> {
        let about = if self.is_primary || self.streams { "about " } else { "" };
        self.keys.map(|keys| format!("{about}{}", plural(usize::try_from(keys).unwrap_or(usize::MAX), "key")))
    }
}
