//! What was answered, counted. Owns the numbers; never where they are shown.

use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_core::words::time::Timestamp;

use crate::wire::code::ResponseCode;

/// What a DNS server did since it started, as plain numbers for whoever shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Answers that the name is there, with records or without.
    pub no_error: u64,
    /// Answers to bytes that are no question.
    pub form_err: u64,
    /// Answers that something failed: no resolver answered, or too many questions were forwarded.
    pub serv_fail: u64,
    /// Answers that there is no such name.
    pub nx_domain: u64,
    /// Answers to operations other than questions.
    pub not_imp: u64,
    /// Answers that a question is not for this server.
    pub refused: u64,
    /// Answers to an unknown version of EDNS.
    pub bad_vers: u64,
    /// Answers of other resolvers, passed on.
    pub forwarded: u64,
    /// How many of all these answers were cut to what the client takes.
    pub truncated: u64,
    /// Packets that deserve no answer: too short, or answers themselves.
    pub dropped: u64,
    /// Connections over TCP that were closed because there were too many.
    pub connections_refused: u64,
    /// Since when the zone's catalogue may be out of date; none while it is current.
    pub stale_since: Option<Timestamp>,
}

impl Counts {
    /// How many queries were answered, in whatever way.
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

/// The numbers while they grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    codes: [AtomicU64; 7],
    pub(crate) forwarded: AtomicU64,
    pub(crate) truncated: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
}

impl Counters {
    /// One answer more with this code.
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

    /// The numbers as they are now.
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
            connections_refused: get(&self.connections_refused),
            stale_since,
        }
    }
}

/// One more.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
