use std::collections::BTreeMap;

use bellwether_api::client::secret::Secret;
use bellwether_core::words::time::Timestamp;

use super::*;
use crate::identity::Identity;
use crate::link::connection::ConnectionSettings;
use crate::link::contact::ServerContact;
use crate::link::server_list;

fn order(generation: u64, term: u64) -> v1::order::Order {
    let assignment = v1::order::Assignment {
        store: None,
        retry: None,
        soak_ms: None,
        version: format!("v{generation}"),
        number: generation,
        method: v1::order::ApplyMethod::Apply,
        ledger: None,
        complete: 0,
        lost_for: None,
    };
    let entities = BTreeMap::from([("web".to_owned(), assignment)]);
    v1::order::Order {
        generation,
        term,
        epoch: 0,
        entities,
        paused: None,
        rescan: 0,
        hosts: BTreeMap::new(),
        not_runnable: None,
        undo: None,
        failed_runs: Vec::new(),
        services: None,
        members: BTreeMap::new(),
        osds: std::collections::BTreeMap::new(),
    }
}

/// Has an answer handled to a poll with the identity in use.
async fn handle(poll: &mut OrderPoll, answer: v1::order::OrderPoll) -> Option<Span> {
    let shown = poll.connection.identity();
    poll.handle(answer, (shown, None)).await
}

/// A poll without a server.
fn poll(dir: &std::path::Path, contact: watch::Sender<ServerContact>) -> OrderPoll {
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
        is_logical: false,
    };
    let connection = Connection::new(ConnectionSettings {
        identity,
        servers: Vec::new(),
        saved: server_list::SavedServers::default(),
        contact,
        seed: 0,
        now: Timestamp::EPOCH,
    });
    let place = (connection.clone(), namespace.clone(), node.clone());
    OrderPoll {
        connection,
        job_logs: LogAnswers::new(place, (ledger.clone(), dir.join("logs")), &Tasks::new()),
        node,
        namespace,
        ledger,
        orders: watch::Sender::new(None),
        board: watch::Sender::new(ReportBoard::default()),
        report_requests: watch::Sender::new(0),
        numbers: std::sync::Arc::new(SharedNumbers::new(Timestamp::EPOCH)),
        registered: std::sync::Arc::default(),
        deliveries: watch::Sender::new(0).subscribe(),
        snapshot: watch::Sender::default(),
        wants_catalogue: watch::channel(false).1,
        live_params: None,
        misread: Refused::default(),
        refused: RefusedOrder::default(),
        data_dir: dir.to_owned(),
        tasks: Tasks::new(),
        clock: Clock::system(),
        seed: 1,
        decommissioned: std::sync::Arc::default(),
        lease: None,
    }
}

#[tokio::test]
async fn a_catalogue_update_of_a_newer_server_is_refused_and_not_requested_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let contact = watch::Sender::new(ServerContact::default());
    let mut poll = poll(dir.path(), contact.clone());
    let answer = |text: &str| -> v1::order::OrderPoll { serde_json::from_str(text).unwrap() };
    let known = r#"{"report_requested": false, "catalogue": {"index": 7, "whole": true, "changes":
        [{"change": "service_known", "service": "db"}]}}"#;
    assert_eq!(handle(&mut poll, answer(known)).await, None);
    // A change and a level that this version does not know.
    let conflict = [
        r#"{"report_requested": false, "catalogue": {"index": 9, "changes": [{"change": "renamed", "to": {"a": 1}}]}}"#,
        r#"{"report_requested": false, "catalogue": {"index": 9, "changes": [{"change": "put", "service": "db", "instance":
            {"node": "b", "name": "db", "addresses": {}, "status": "dreaming", "since_ms": 1}}]}}"#,
    ];
    for text in conflict {
        assert_eq!(handle(&mut poll, answer(text)).await, None, "polling goes on");
        assert!(
            poll.misread.left(poll.clock.now()).is_some(),
            "and the catalogue is not requested for a while"
        );
        assert!(
            contact
                .borrow()
                .misread
                .as_ref()
                .is_some_and(|reason| reason.contains("does not know the value"))
        );
        let snapshot = poll.snapshot.borrow().clone();
        assert_eq!((snapshot.index, snapshot.catalogue.services().count()), (7, 1), "the copy before stays");
    }
    assert_eq!(handle(&mut poll, answer(known)).await, None);
    assert_eq!(contact.borrow().misread, None);
}

#[tokio::test]
async fn an_older_order_changes_neither_the_ledger_nor_the_order_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let poll = poll(dir.path(), watch::Sender::new(ServerContact::default()));
    poll.accept(order(5, 3)).await.unwrap();
    for (stale, reason) in [
        (order(5, 3), "cannot accept an order of generation 5: the stored order has generation 5"),
        (order(4, 4), "cannot accept an order of generation 4: the stored order has generation 5"),
        (
            order(9, 2),
            "cannot accept an order of term 2: the stored order has term 3; if it goes on, the store of the servers was set back: stop them, then run `bellwether server restore --in-place`",
        ),
    ] {
        assert_eq!(format!("cannot {}", poll.accept(stale).await.unwrap_err()), reason);
    }
    let bad = v1::order::Order {
        paused: None,
        entities: BTreeMap::from([("No".to_owned(), order(1, 1).entities["web"].clone())]),
        ..order(6, 3)
    };
    assert!(poll.accept(bad).await.is_err());
    assert_eq!(poll.orders.borrow().as_ref().unwrap().generation, Generation::new(5));
    let (_, kept) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    assert_eq!(kept.order.unwrap().generation, Generation::new(5));
    poll.accept(order(6, 4)).await.unwrap();
}

#[tokio::test]
async fn a_refused_order_does_not_stop_polling() {
    let dir = tempfile::tempdir().unwrap();
    let contact = watch::Sender::new(ServerContact::default());
    let mut poll = poll(dir.path(), contact.clone());
    let answer = |order, catalogue| v1::order::OrderPoll {
        order: Some(order),
        report_requested: false,
        overwritten: false,
        catalogue,
        servers: None,
        params: None,
        log_requests: Vec::new(),
        authorities: None,
        renew: false,
    };
    let heard = |index| {
        let text = format!("{{\"index\": {index}, \"whole\": true, \"changes\": []}}");
        serde_json::from_str(&text).unwrap()
    };
    let refused = || contact.borrow().refused.clone();
    assert_eq!(handle(&mut poll, answer(order(5, 3), None)).await, None);
    assert_eq!(refused(), None);

    let older = answer(order(9, 2), Some(heard(7)));
    assert_eq!(handle(&mut poll, older).await, None, "polling goes on");
    assert_eq!(
        refused().as_deref(),
        Some(
            "cannot accept an order of term 2: the stored order has term 3; if it goes on, the store of the servers was set back: stop them, then run `bellwether server restore --in-place`; order 9 is refused"
        )
    );
    assert_eq!(poll.board.borrow().refused_order, refused(), "it is reported as well");
    assert_eq!(poll.snapshot.borrow().index, 7, "the catalogue in the same answer is applied");
    let known = |poll: &OrderPoll| poll.refused.known(Generation::new(5), poll.clock.now());
    assert_eq!(known(&poll), Generation::new(9), "it is not requested again at once");
    let mut conflict = order(10, 3);
    conflict.entities.get_mut("web").unwrap().method = v1::order::ApplyMethod::Unknown;
    assert_eq!(handle(&mut poll, answer(conflict, None)).await, None);
    assert!(refused().is_some_and(|reason| reason.contains("entities.web.method")), "{:?}", refused());
    assert_eq!(poll.orders.borrow().as_ref().unwrap().generation, Generation::new(5));

    assert_eq!(handle(&mut poll, answer(order(11, 3), None)).await, None);
    assert_eq!((refused(), known(&poll)), (None, Generation::new(5)));
    assert_eq!(poll.board.borrow().refused_order, None);
    assert_eq!(poll.orders.borrow().as_ref().unwrap().generation, Generation::new(11));
}

#[test]
fn the_first_poll_and_the_first_after_a_failure_return_at_once() {
    for (round, failed) in [(1, 0), (1, 3), (9, 1), (9, u32::MAX)] {
        assert_eq!(
            poll_wait(round, failed, 7),
            Span::from_millis(1),
            "round {round} after {failed} failures"
        );
    }
    assert!(poll_wait(9, 0, 7) > Span::from_secs(30));
}
