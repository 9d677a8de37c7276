//! Counters of answers.

use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_core::words::time::Timestamp;

use crate::wire::code::ResponseCode;

/// The counters of a DNS server since it started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// NOERROR: the name exists, with or without records.
    pub no_error: u64,
    /// FORMERR: the message is malformed.
    pub form_err: u64,
    /// SERVFAIL: no resolver answered, or too many queries were being forwarded.
    pub serv_fail: u64,
    /// NXDOMAIN: the name does not exist.
    pub nx_domain: u64,
    /// NOTIMP: the operation is not a query.
    pub not_imp: u64,
    /// REFUSED: the query is not for this server.
    pub refused: u64,
    /// BADVERS: unknown version of EDNS.
    pub bad_vers: u64,
    /// Answers of upstream resolvers.
    pub forwarded: u64,
    /// How many of all these answers were truncated to the client's size.
    pub truncated: u64,
    /// Packets that were dropped: too short, or answers.
    pub dropped: u64,
    /// Queries over UDP beyond the limit of their network: dropped, or answered as truncated.
    pub limited: u64,
    /// TCP connections that were closed because there were too many.
    pub connections_refused: u64,
    /// Since when the zone's catalogue may be stale; `None` while it is current.
    pub stale_since: Option<Timestamp>,
}

impl Counts {
    /// The number of answered queries, whatever the answer.
    #[must_use]
    pub const fn queries(&self) -> u64 {
        self.no_error
            + self.form_err
            + self.serv_fail
            + self.nx_domain
            + self.not_imp
            + self.refused
            + self.bad_vers
            + self.forwarded
    }
}

/// The counters in use.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    codes: [AtomicU64; 7],
    pub(crate) forwarded: AtomicU64,
    pub(crate) truncated: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) limited: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
}

impl Counters {
    /// Counts an answer with this code.
    pub(crate) fn answered(&self, code: ResponseCode) {
        let [no_error, form_err, serv_fail, nx_domain, not_imp, refused, bad_vers] = &self.codes;
        let counter = match code {
            ResponseCode::NoError => no_error,
            ResponseCode::FormErr => form_err,
            ResponseCode::ServFail => serv_fail,
            ResponseCode::NxDomain => nx_domain,
            ResponseCode::NotImp => not_imp,
            ResponseCode::Refused => refused,
            ResponseCode::BadVers => bad_vers,
        };
        add(counter);
    }

    /// The values now.
    pub(crate) fn read(&self, stale_since: Option<Timestamp>) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [no_error, form_err, serv_fail, nx_domain, not_imp, refused, bad_vers] =
            self.codes.each_ref().map(get);
        Counts {
            no_error,
            form_err,
            serv_fail,
            nx_domain,
            not_imp,
            refused,
            bad_vers,
            forwarded: get(&self.forwarded),
            truncated: get(&self.truncated),
            dropped: get(&self.dropped),
            limited: get(&self.limited),
            connections_refused: get(&self.connections_refused),
            stale_since,
        }
    }
}

/// Adds one.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
