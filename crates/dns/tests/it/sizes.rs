use std::collections::BTreeSet;

use proptest::prelude::*;
use simple_dns::rdata::RData;
use simple_dns::{Packet, PacketFlag};

use crate::fleet::{large, question, start};

const A: u16 = 1;
const SRV: u16 = 33;

/// Records of the answer as text, whether it was truncated, and the number of additional records.
fn read(message: &[u8]) -> (Vec<String>, bool, usize) {
    let packet = Packet::parse(message).unwrap();
    let show = |data: &RData<'_>| format!("{data:?}");
    let answers = packet.answers.iter().map(|record| show(&record.rdata)).collect();
    (answers, packet.has_flags(PacketFlag::TRUNCATION), packet.additional_records.len())
}

/// Sizes around which answers stop to fit, and others.
fn counts() -> impl Strategy<Value = u16> {
    prop_oneof![1..120_u16, Just(4_090), Just(5_000), 1..=5_000_u16]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_answer_fits_or_says_that_it_does_not_and_tcp_has_all_that_64_kib_hold(
        count in counts(),
        kind in prop_oneof![Just(A), Just(SRV)],
        payload in prop_oneof![Just(None), (0..=u16::MAX).prop_map(Some)],
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = start(large(count)).await;
            let asked = question("big.service.bw.internal", kind, payload);
            let over_udp = server.udp(&asked).await;
            let limit = payload.map_or(512, |payload| payload.clamp(512, 1_232));
            assert!(over_udp.len() <= usize::from(limit), "{} bytes", over_udp.len());
            let (some, cut, _) = read(&over_udp);
            let distinct: BTreeSet<_> = some.iter().collect();
            assert_eq!(distinct.len(), some.len(), "a record twice");
            assert_eq!(cut, some.len() < usize::from(count));
            assert!(!some.is_empty(), "whatever fits is given");

            let over_tcp = server.tcp(&asked).await;
            let (all, cut, _) = read(&over_tcp);
            assert_eq!(cut, all.len() < usize::from(count));
            let one = if kind == A { 16 } else { 60 };
            assert!(!cut || over_tcp.len() + one > 65_535, "cut although {} bytes were free", over_tcp.len());
            let all: BTreeSet<_> = all.into_iter().collect();
            assert!(cut || some.iter().all(|one| all.contains(one)));
            server.stop().await;
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dig_retries_a_truncated_answer_over_tcp() {
    let server = start(large(4_000)).await;
    let said = server.dig("+short big.service.bw.internal A").await;
    let found = said.lines().filter(|line| line.starts_with("10.7.")).collect::<BTreeSet<_>>().len();
    assert_eq!(found, 4_000);
    let short = server.dig("+ignore +bufsize=600 big.service.bw.internal A").await;
    assert!(short.contains("flags: qr aa tc rd") && short.contains("MSG SIZE  rcvd: 5"), "{short}");
    assert!(server.serving.counts().truncated >= 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn additional_addresses_are_left_out_without_truncation() {
    let server = start(large(12)).await;
    let asked = question("big.service.bw.internal", SRV, Some(1_232));
    let (answers, cut, beside) = read(&server.udp(&asked).await);
    assert_eq!((answers.len(), cut, beside), (12, false, 12));
    let asked = question("big.service.bw.internal", SRV, Some(700));
    let (answers, cut, beside) = read(&server.udp(&asked).await);
    assert_eq!((answers.len(), cut), (12, false));
    assert!(beside < 12, "{beside}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_record_varies() {
    let server = start(large(4)).await;
    let asked = question("big.service.bw.internal", A, None);
    let mut firsts = BTreeSet::new();
    for _ in 0..200 {
        firsts.insert(read(&server.udp(&asked).await).0.swap_remove(0));
    }
    assert_eq!(firsts.len(), 4);
    server.stop().await;
}
