//! Who has room, who goes, and when a connection is idle or its answers are not taken.

use futures_util::FutureExt;

use super::*;

/// Eight connections, four of unknown peers, two of these from one network.
fn narrow() -> Connections {
    Connections::within(ConnectionLimits { all: 8, unknown: 4, of_network: 2 })
}

fn from(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4_000))
}

/// Whether the connection is to be closed, and why.
fn closing(state: &ConnectionState) -> Option<Closing> {
    state.closing().now_or_never()
}

#[test]
fn limits_follow_the_file_descriptors_of_the_process() {
    let of = |descriptors| {
        let limits = ConnectionLimits::of(descriptors);
        (limits.all, limits.unknown, limits.of_network)
    };
    assert_eq!(of(None), (16_384, 8_192, 4_096));
    assert_eq!(of(Some(1_024)), (768, 384, 192));
    assert_eq!(of(Some(0)), (64, 32, 16));
}

#[tokio::test(start_paused = true)]
async fn a_network_full_of_young_unknown_connections_has_no_room_and_others_do() {
    let connections = narrow();
    let (first, _second) = (connections.arrive(from(1)).unwrap(), connections.arrive(from(1)).unwrap());
    assert!(connections.arrive(from(1)).is_none());
    let other = connections.arrive(from(2)).unwrap();
    assert_eq!((closing(&first), closing(&other)), (None, None));
    drop(first);
    assert!(connections.arrive(from(1)).is_some(), "one that ended leaves its place");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_a_network_goes_once_it_had_time_to_show_who_it_is() {
    let connections = narrow();
    let first = connections.arrive(from(1)).unwrap();
    tokio::time::advance(SETTLING).await;
    let second = connections.arrive(from(1)).unwrap();
    let third = connections.arrive(from(1)).unwrap();
    assert_eq!((closing(&first), closing(&second), closing(&third)), (Some(Closing::Evicted), None, None));
}

#[tokio::test(start_paused = true)]
async fn who_has_shown_an_identity_neither_counts_nor_goes() {
    let connections = narrow();
    let known: Vec<_> = (0..4)
        .map(|_| {
            let state = connections.arrive(from(1)).unwrap();
            state.is_of_somebody();
            state
        })
        .collect();
    let _unknown = (connections.arrive(from(1)).unwrap(), connections.arrive(from(1)).unwrap());
    assert!(connections.arrive(from(1)).is_none());
    assert!(known.iter().all(|state| closing(state).is_none()));
}

#[tokio::test(start_paused = true)]
async fn without_room_the_network_that_has_most_gives_way() {
    let connections = narrow();
    let first = connections.arrive(from(1)).unwrap();
    let large = (connections.arrive(from(2)).unwrap(), connections.arrive(from(2)).unwrap());
    let third = connections.arrive(from(3)).unwrap();
    let fourth = connections.arrive(from(4)).unwrap();
    assert_eq!(closing(&large.0), Some(Closing::Evicted));
    for stays in [&first, &large.1, &third, &fourth] {
        assert_eq!(closing(stays), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_closed_later_if_its_peer_is_known() {
    let connections = narrow();
    let (unknown, known) = (connections.arrive(from(1)).unwrap(), connections.arrive(from(1)).unwrap());
    known.is_of_somebody();
    tokio::time::advance(UNKNOWN_IDLE).await;
    assert_eq!((closing(&unknown), closing(&known)), (Some(Closing::Idle), None));
    tokio::time::advance(KNOWN_IDLE).await;
    assert_eq!(closing(&known), Some(Closing::Idle));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_idle_while_the_server_works_on_an_answer_nor_just_after_it() {
    let connections = narrow();
    let state = connections.arrive(from(1)).unwrap();
    let pending = state.begin();
    tokio::time::advance(UNKNOWN_IDLE * 20).await;
    assert_eq!(closing(&state), None);
    drop(pending);
    assert_eq!(closing(&state), None);
    tokio::time::advance(UNKNOWN_IDLE).await;
    assert_eq!(closing(&state), Some(Closing::Idle));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_one_answer_and_not_another_is_closed() {
    let connections = narrow();
    let state = connections.arrive(from(1)).unwrap();
    state.is_of_somebody();
    let (stuck, taken, quiet) = (state.begin(), state.begin(), state.begin());
    stuck.offer(true);
    quiet.offer(false);
    tokio::time::advance(TAKEN_WITHIN / 2).await;
    taken.offer(true);
    assert_eq!(closing(&state), None);
    tokio::time::advance(TAKEN_WITHIN / 2).await;
    assert_eq!(closing(&state), Some(Closing::NotTaken));
    stuck.offer(false);
    assert_eq!(closing(&state), None);
}
