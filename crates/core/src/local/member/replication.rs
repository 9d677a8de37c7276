//! The next step of a member towards what it is ordered to be, where one is the primary that replicas follow.

use alloc::format;
use alloc::string::{String, ToString};

use crate::records::member::{Replication, ReplicationOrder};

/// The next step of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicationStep {
    /// It is what it is to be.
    Done,
    /// It becomes the primary.
    Promote,
    /// It follows the member with this URL.
    Follow(String),
    /// It follows nobody, and takes no writes.
    Detach,
    /// It hands over to the member with this URL.
    HandOver(String),
    /// It cannot be what it is to be, for this reason.
    Wait(String),
}

/// The next step, by what it says of itself.
#[must_use]
pub fn next(order: &ReplicationOrder, said: &Replication) -> ReplicationStep {
    match order {
        ReplicationOrder::Primary { .. } if said.is_primary => ReplicationStep::Done,
        ReplicationOrder::Primary { history } => match history {
            Some(history) if *history != said.history => ReplicationStep::Wait(
                "does not become the primary: it has another history of writes than the one that was last, as one that was started anew"
                    .to_string(),
            ),
            Some(_) if !said.is_whole => {
                ReplicationStep::Wait("does not become the primary: it copies its data anew".to_string())
            }
            Some(_) | None => ReplicationStep::Promote,
        },
        ReplicationOrder::HandOver { to } if said.is_primary => ReplicationStep::HandOver(to.clone()),
        ReplicationOrder::HandOver { .. } => ReplicationStep::Done,
        ReplicationOrder::TakeOver { .. } if said.is_primary => ReplicationStep::Done,
        ReplicationOrder::Follow { of } | ReplicationOrder::TakeOver { of } if said.follows.as_ref() == Some(of) => ReplicationStep::Done,
        ReplicationOrder::Follow { of } | ReplicationOrder::TakeOver { of } => {
            ReplicationStep::Follow(of.clone())
        }
        ReplicationOrder::Nobody if !said.is_primary && said.follows.is_none() => ReplicationStep::Done,
        ReplicationOrder::Nobody => ReplicationStep::Detach,
    }
}

/// Why a primary takes no writes although it serves; `None` if it takes them.
#[must_use]
pub fn alarm(order: &ReplicationOrder, said: &Replication, min_replicas: u32) -> Option<String> {
    let leads = matches!(order, ReplicationOrder::Primary { .. } | ReplicationOrder::HandOver { .. });
    if leads && said.is_primary && said.cannot_store {
        return Some("takes no writes: it cannot write to its disk; make room there".to_string());
    }
    let has = said.replicas.len();
    (leads && said.is_primary && has < min_replicas as usize).then(|| {
        format!("takes no writes: {has} of the {min_replicas} replicas that it must have for that are connected to it")
    })
}

/// Why a member that is what it is to be does not have what it is to have yet; empty if it has.
#[must_use]
pub const fn lag(order: &ReplicationOrder, said: &Replication) -> &'static str {
    match order {
        ReplicationOrder::Follow { .. } | ReplicationOrder::TakeOver { .. } if !said.is_whole => {
            "copies the data of the member that it follows"
        }
        ReplicationOrder::Follow { .. } | ReplicationOrder::TakeOver { .. }
            if !said.streams && !said.is_primary =>
        {
            "is not connected to the member that it follows"
        }
        ReplicationOrder::Primary { .. }
        | ReplicationOrder::HandOver { .. }
        | ReplicationOrder::Follow { .. }
        | ReplicationOrder::TakeOver { .. }
        | ReplicationOrder::Nobody => "",
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn replica(follows: Option<&str>) -> Replication {
        Replication {
            is_primary: false,
            follows: follows.map(ToString::to_string),
            streams: follows.is_some(),
            is_whole: true,
            history: "h".into(),
            former: None,
            offset: None,
            replicas: Vec::new(),
            takes_over: false,
            run: "r".into(),
            cannot_store: false,
            keys: None,
        }
    }

    #[test]
    fn one_becomes_the_primary_only_with_the_history_that_it_was_chosen_for() {
        let of = |history: Option<&str>| ReplicationOrder::Primary { history: history.map(Into::into) };
        assert_eq!(next(&of(Some("h")), &replica(None)), ReplicationStep::Promote);
        assert_eq!(next(&of(None), &replica(None)), ReplicationStep::Promote);
        assert!(matches!(next(&of(Some("other")), &replica(None)), ReplicationStep::Wait(_)));
        let copying = Replication { is_whole: false, ..replica(None) };
        assert!(matches!(next(&of(Some("h")), &copying), ReplicationStep::Wait(_)));
        let primary = Replication { is_primary: true, ..replica(None) };
        assert_eq!(next(&of(Some("other")), &primary), ReplicationStep::Done, "it is one already");
    }

    #[test]
    fn one_follows_whom_it_is_told_and_a_former_primary_takes_no_writes() {
        let follow = ReplicationOrder::Follow { of: "a".into() };
        let primary = Replication { is_primary: true, ..replica(None) };
        assert_eq!(next(&follow, &replica(Some("a"))), ReplicationStep::Done);
        assert_eq!(next(&follow, &replica(Some("b"))), ReplicationStep::Follow("a".into()));
        assert_eq!(next(&follow, &primary), ReplicationStep::Follow("a".into()));
        assert_eq!(next(&ReplicationOrder::Nobody, &primary), ReplicationStep::Detach);
        assert_eq!(next(&ReplicationOrder::Nobody, &replica(Some("b"))), ReplicationStep::Detach);
        assert_eq!(next(&ReplicationOrder::Nobody, &replica(None)), ReplicationStep::Done);
        let over = ReplicationOrder::HandOver { to: "a".into() };
        assert_eq!(next(&over, &primary), ReplicationStep::HandOver("a".into()));
        assert_eq!(next(&over, &replica(Some("a"))), ReplicationStep::Done);
        let take = ReplicationOrder::TakeOver { of: "b".into() };
        assert_eq!(next(&take, &primary), ReplicationStep::Done, "it has taken over");
        assert_eq!((lag(&take, &primary), lag(&follow, &replica(Some("a")))), ("", ""));
        assert!(lag(&follow, &replica(None)).contains("not connected"));
        let primary = ReplicationOrder::Primary { history: None };
        let alone = Replication { is_primary: true, ..replica(None) };
        assert!(
            alarm(&primary, &alone, 1).is_some_and(|text| text.starts_with("takes no writes: 0 of the 1"))
        );
        let full = Replication { cannot_store: true, ..alone.clone() };
        assert!(alarm(&primary, &full, 0).is_some_and(|text| text.contains("cannot write to its disk")));
        assert_eq!((alarm(&primary, &alone, 0), alarm(&follow, &alone, 1)), (None, None));
        assert_eq!(next(&take, &replica(None)), ReplicationStep::Follow("b".into()));
    }
}
