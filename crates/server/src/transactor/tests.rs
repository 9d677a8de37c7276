use std::sync::Arc;

use bellwether_core::records::key::{Key, LocatedRecord, Record};
use bellwether_core::records::node::{Presence, PresenceState};
use bellwether_core::verdict::Write;
use bellwether_core::words::name::NodeName;
use bellwether_rt::tasks::Tasks;
use bellwether_store::{Op, Txn};

use super::*;
use crate::records::commit::Fence;
use crate::world_view::WorldPublisher;

fn node() -> NodeName {
    NodeName::parse("web-1").unwrap()
}

fn presence(since: u64) -> Record {
    let since = Timestamp::from_millis(since);
    Record::Presence(node(), Presence { contact: PresenceState::Up, since, server: None })
}

/// Another server writes a record, many others are written before this one is told of it: it is decided again once the world shows what
/// was first, and not sixteen times before that.
#[tokio::test]
async fn a_conflict_is_decided_again_on_the_world_that_shows_what_was_first() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let namespace = Namespace::parse("default").unwrap();
    let (publisher, published) = WorldPublisher::new(Arc::new(World::default()));
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let transactor = Transactor::new(published, committer, store.clone(), Clock::system());
    for number in 0..40 {
        let put = Op::Put { key: format!("other/{number}").into(), value: "".into(), lease: None };
        store.commit(Txn { compares: vec![], ops: vec![put] }).await.unwrap();
    }
    let key = key_text::of(&namespace, &Key::Presence(node()));
    let value = crate::records::encoding::write(&presence(1)).unwrap();
    store.commit(Txn { compares: vec![], ops: vec![Op::Put { key, value, lease: None }] }).await.unwrap();
    let first = store.now().await.unwrap();

    // The watch tells of one commit after the other.
    let telling = async {
        for revision in 1..first.0 {
            publisher.publish(World { revision: Revision::new(revision), ..World::default() });
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let shown = (LocatedRecord::Namespaced(namespace.clone(), presence(1)), Revision::new(first.0));
        publisher.publish(World::load([shown].into_iter(), Revision::new(first.0)));
        // What this server commits itself.
        loop {
            tokio::task::yield_now().await;
            let now = Revision::new(store.now().await.unwrap().0);
            let shown = (LocatedRecord::Namespaced(namespace.clone(), presence(2)), now);
            publisher.publish(World::load([shown].into_iter(), now));
        }
    };
    let mut decided = 0;
    let actor = Actor::parse("kim").unwrap();
    let changing = transactor.change(&namespace, &actor, |_, _, _| {
        decided += 1;
        let changeset = Changeset { writes: vec![Write::put(presence(2))], events: vec![] };
        Ok::<_, CommitError>((Some(changeset), ()))
    });
    tokio::select! {
        result = changing => result.unwrap(),
        () = telling => {}
    }
    assert_eq!(decided, 2);
}
