use std::collections::BTreeMap;

use bellwether_api::client::secret::Secret;
use bellwether_core::words::time::Timestamp;

use super::*;
use crate::identity::Identity;
use crate::link::contact::ServerContact;
use crate::link::server_list;

fn order(generation: u64, term: u64) -> v1::order::Order {
    let assignment = v1::order::Assignment {
        version: format!("v{generation}"),
        number: generation,
        method: v1::order::ApplyMethod::Apply,
    };
    let entities = BTreeMap::from([("web".to_owned(), assignment)]);
    v1::order::Order { generation, term, entities, paused: None }
}

/// A link whose server is nowhere.
fn sync(dir: &std::path::Path, contact: watch::Sender<ServerContact>) -> OrderPoll {
    let (ledger, _) = Ledger::open(dir, Tasks::new()).unwrap();
    let node = NodeName::parse("a").unwrap();
    let namespace = Namespace::parse("default").unwrap();
    let identity = Identity {
        node: node.clone(),
        namespace: namespace.clone(),
        server: String::new(),
        issued_at: Timestamp::EPOCH,
        expires_at: Timestamp::EPOCH,
        certificate: String::new(),
        ca: String::new(),
        key: Secret::new(""),
    };
    OrderPoll {
        line: Connection::new(
            identity,
            (Vec::new(), server_list::SavedServers::default()),
            contact,
            (0, Timestamp::EPOCH),
        ),
        node,
        namespace,
        ledger,
        orders: watch::Sender::new(None),
        board: watch::Sender::new(ReportBoard::default()),
        asked: watch::Sender::new(0),
        deliveries: watch::Sender::new(0).subscribe(),
        snapshot: watch::Sender::default(),
        wants_catalogue: watch::channel(false).1,
        misread: Refused::default(),
        refused: RefusedOrder::default(),
        data_dir: dir.to_owned(),
        level: Tasks::new(),
        clock: Clock::system(),
        seed: 1,
    }
}

#[tokio::test]
async fn a_catalogue_of_a_newer_server_is_not_taken_in_and_not_asked_for_over_and_over() {
    let dir = tempfile::tempdir().unwrap();
    let contact = watch::Sender::new(ServerContact::default());
    let mut sync = sync(dir.path(), contact.clone());
    let answer = |text: &str| -> v1::order::OrderPoll { serde_json::from_str(text).unwrap() };
    let known = r#"{"report_requested": false, "catalogue": {"index": 7, "whole": true, "changes":
        [{"change": "service_known", "service": "db"}]}}"#;
    assert_eq!(sync.heed(answer(known)).await, None);
    // A change that there will be one day, and a level that there will be.
    let conflict = [
        r#"{"report_requested": false, "catalogue": {"index": 9, "changes": [{"change": "renamed", "to": {"a": 1}}]}}"#,
        r#"{"report_requested": false, "catalogue": {"index": 9, "changes": [{"change": "put", "service": "db", "instance":
            {"node": "b", "name": "db", "addresses": {}, "status": "dreaming", "since_ms": 1}}]}}"#,
    ];
    for text in conflict {
        assert_eq!(sync.heed(answer(text)).await, None, "the line goes on");
        assert!(sync.misread.left(sync.clock.now()).is_some(), "and the catalogue is left alone for a while");
        assert!(contact.borrow().misread.as_ref().is_some_and(|reason| reason.contains("does not know it")));
        let snapshot = sync.snapshot.borrow().clone();
        assert_eq!((snapshot.index, snapshot.catalogue.services().count()), (7, 1), "what was known stays");
    }
    assert_eq!(sync.heed(answer(known)).await, None);
    assert_eq!(contact.borrow().misread, None);
}

#[tokio::test]
async fn an_older_order_changes_neither_the_ledger_nor_what_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let sync = sync(dir.path(), watch::Sender::new(ServerContact::default()));
    sync.take(order(5, 3)).await.unwrap();
    for (stale, reason) in [
        (order(5, 3), "could not take an order of generation 5: generation 5 is in hand"),
        (order(4, 4), "could not take an order of generation 4: generation 5 is in hand"),
        (order(9, 2), "could not take an order of term 2: one of term 3 is in hand"),
    ] {
        assert_eq!(format!("could not {}", sync.take(stale).await.unwrap_err()), reason);
    }
    let bad = v1::order::Order {
        paused: None,
        entities: BTreeMap::from([("No".to_owned(), order(1, 1).entities["web"].clone())]),
        ..order(6, 3)
    };
    assert!(sync.take(bad).await.is_err());
    assert_eq!(sync.orders.borrow().as_ref().unwrap().generation, Generation::new(5));
    let (_, kept) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    assert_eq!(kept.order.unwrap().generation, Generation::new(5));
    sync.take(order(6, 4)).await.unwrap();
}

#[tokio::test]
async fn an_order_that_is_refused_does_not_hold_up_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let contact = watch::Sender::new(ServerContact::default());
    let mut sync = sync(dir.path(), contact.clone());
    let answer = |order, catalogue| v1::order::OrderPoll {
        order: Some(order),
        report_requested: false,
        catalogue,
        servers: None,
    };
    let heard = |index| {
        let text = format!("{{\"index\": {index}, \"whole\": true, \"changes\": []}}");
        serde_json::from_str(&text).unwrap()
    };
    let refused = || contact.borrow().refused.clone();
    assert_eq!(sync.heed(answer(order(5, 3), None)).await, None);
    assert_eq!(refused(), None);

    let older = answer(order(9, 2), Some(heard(7)));
    assert_eq!(sync.heed(older).await, None, "the line goes on");
    assert_eq!(refused().as_deref(), Some("could not take an order of term 2: one of term 3 is in hand"));
    assert_eq!(sync.snapshot.borrow().index, 7, "what came with it is taken in");
    let known = |sync: &OrderPoll| sync.refused.known(Generation::new(5), sync.clock.now());
    assert_eq!(known(&sync), Generation::new(9), "it is not asked for again at once");
    let mut conflict = order(10, 3);
    conflict.entities.get_mut("web").unwrap().method = v1::order::ApplyMethod::Unknown;
    assert_eq!(sync.heed(answer(conflict, None)).await, None);
    assert!(refused().is_some_and(|reason| reason.contains("entities.web.method")), "{:?}", refused());
    assert_eq!(sync.orders.borrow().as_ref().unwrap().generation, Generation::new(5));

    assert_eq!(sync.heed(answer(order(11, 3), None)).await, None);
    assert_eq!((refused(), known(&sync)), (None, Generation::new(5)));
    assert_eq!(sync.orders.borrow().as_ref().unwrap().generation, Generation::new(11));
}

#[test]
fn what_finds_out_whether_the_line_is_up_does_not_hang() {
    for (round, failed) in [(1, 0), (1, 3), (9, 1), (9, u32::MAX)] {
        assert_eq!(hangs(round, failed, 7), Span::from_millis(1), "round {round} after {failed} failures");
    }
    assert!(hangs(9, 0, 7) > Span::from_secs(30));
}
