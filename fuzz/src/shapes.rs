//! Shapes of which each is read as a record: what is accepted is written as a shape that is read as the same record.

use bellwether_api::v1;
use bellwether_core::records;

use crate::{read, sent};

macro_rules! there_and_back {
    ($data:expr, $($shape:ty => $record:ty),+ $(,)?) => {
        $(if let Some(Ok(record)) = read::<$shape>($data).map(<$record>::try_from) {
            let again = <$record>::try_from(sent(&<$shape>::from(&record)));
            assert_eq!(again.expect("what was accepted is accepted again"), record, "{}", stringify!($record));
        })+
    };
}

/// What people write, and read back.
pub fn written(data: &[u8]) {
    there_and_back!(
        data,
        v1::ensemble::Ensemble => records::ensemble::Ensemble,
        v1::external::ExternalTarget => records::external::ExternalTarget,
        v1::filter::Filter => bellwether_core::records::filter::SavedFilter,
        v1::profile::Profile => records::profile::Profile,
        v1::reaction::Reaction => records::reaction::Reaction,
        v1::schedule::Schedule => records::schedule::Schedule,
        v1::sink::Sink => records::sink::Sink,
        v1::slot::Slot => records::slot::Slot,
    );
    if let Some(spec) = read::<v1::cluster::ClusterSpec>(data) {
        drop(spec.desired("fuzzed"));
    }
}

/// What agents send.
pub fn reported(data: &[u8]) {
    there_and_back!(
        data,
        v1::ensemble::reports::NodeMembers => records::member::NodeMembers,
        v1::facts::NodeFacts => records::facts::NodeFacts,
        v1::log::NodeLog => records::log::NodeLog,
        v1::registrations::ServiceRegistrations => records::registrations::ServiceRegistrations,
    );
}

/// What agents are sent, and keep for a start without a server.
pub fn ordered(data: &[u8]) {
    there_and_back!(
        data,
        v1::order::Order => records::order::Order,
        v1::ensemble::orders::MemberOrder => records::member::MemberOrder,
    );
}
