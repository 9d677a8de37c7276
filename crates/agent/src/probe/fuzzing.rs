//! What a fuzz target has read as answers of data stores.

use super::redis::{self, Info};
use super::resp::{Redis, Reply};
use super::{exec, http, sentinel, zookeeper};

/// Reads an answer as each kind of store that is asked with a protocol of its own; answers what a Redis says of itself in it.
pub(crate) async fn read(bytes: &[u8]) -> Option<Info> {
    drop(zookeeper::facts("store:1", &String::from_utf8_lossy(bytes)));
    drop(exec::read(bytes));
    drop(http::message(bytes));
    match Redis::of(bytes).reply().await.ok()? {
        Reply::Text(text) => {
            let mut info = Info::default();
            info.add(&text);
            drop(redis::facts("store:1", &info));
            Some(info)
        }
        list @ Reply::List(_) => {
            drop(sentinel::watched(list));
            None
        }
        Reply::Null => None,
    }
}
