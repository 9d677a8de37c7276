//! What a fuzz target has read as what a member says of itself.

use super::delegate::{own_status, unit_status};
use super::etcd_wal::member;
use super::redis_info::{Tells, is_stale, replication};
use crate::probe::redis::Info;

/// Reads what a Redis says of its replication.
pub(crate) fn read_redis(info: &Info) {
    drop(replication(info, "redis", Tells { position: true, keys: true }));
    let _is_stale = is_stale(info);
}

/// Reads the beginning of a log of etcd.
pub(crate) fn read_log(bytes: &[u8]) {
    let _member = member(bytes);
}

/// Reads what an executable, or systemd, says of a member.
pub(crate) fn read_status(bytes: &[u8]) {
    drop(own_status(bytes));
    let _status = unit_status("db.service", &String::from_utf8_lossy(bytes));
}
