use crate::fleet::{addresses, small, start};

#[tokio::test(flavor = "multi_thread")]
async fn dig_finds_services_nodes_and_addresses() {
    let server = start(small()).await;
    for (args, expected) in [
        ("web.service.bw.internal A", &["10.0.0.1", "10.9.0.2"][..]),
        ("web.service.bw.internal AAAA", &["fd00::1"]),
        ("web.service.dc1.bw.internal A", &["10.0.0.1", "10.9.0.2"]),
        ("+tcp web.service.bw.internal A", &["10.0.0.1", "10.9.0.2"]),
        ("+noedns web.service.bw.internal A", &["10.0.0.1", "10.9.0.2"]),
        ("+bufsize=4096 web.service.bw.internal A", &["10.0.0.1", "10.9.0.2"]),
        ("blue.web.service.bw.internal A", &["10.0.0.1"]),
        ("any.web.service.bw.internal A", &["10.0.0.1", "10.0.0.3", "10.9.0.2"]),
        ("WeB.sErViCe.Bw.InTeRnAl A", &["10.0.0.1", "10.9.0.2"]),
        (
            "web.service.bw.internal SRV",
            &["1 1 8080 0a090002.addr.dc1.bw.internal.", "1 1 8080 web-1.node.dc1.bw.internal."],
        ),
        ("_web._green.service.bw.internal SRV", &["1 1 8080 0a090002.addr.dc1.bw.internal."]),
        ("_web._tcp.service.bw.internal A", &[]),
        ("0a090002.addr.dc1.bw.internal A", &["10.9.0.2"]),
        ("web-3.node.bw.internal AAAA", &["fd00::3"]),
        ("-x 10.0.0.1", &["web-1.node.dc1.bw.internal."]),
        ("-x fd00::3", &["web-3.node.dc1.bw.internal."]),
        ("-x 10.9.0.2", &["web.service.dc1.bw.internal."]),
        ("bw.internal SOA", &["ns.bw.internal. hostmaster.bw.internal. 42 3600 600 86400 3"]),
        ("bw.internal NS", &["ns.bw.internal."]),
        ("ns.bw.internal A", &["10.0.0.9"]),
        ("+notcp web.service.bw.internal ANY", &["\"RFC8482\" \"\""]),
    ] {
        assert_eq!(server.short(args).await, expected, "dig {args}");
    }
    server.stop().await;
}

/// Status, flags, and the size of each section; without sections if the question is not repeated.
async fn outcome(server: &crate::fleet::Server, args: &str) -> String {
    let said = server.dig(&format!("+nocookie {args}")).await;
    assert!(!said.contains("WARNING") || said.contains("recursion requested but not available"), "{said}");
    let after = |mark: &str, end: char| {
        said.split(mark).nth(1).and_then(|rest| rest.split(end).next()).unwrap_or_default().to_owned()
    };
    let sections = after("QUERY: 1, ", '\n');
    format!("{} [{}] {sections}", after("status: ", ','), after("flags: ", ';'))
}

#[tokio::test(flavor = "multi_thread")]
async fn dig_distinguishes_a_missing_name_a_missing_record_and_another_zone() {
    let server = start(small()).await;
    for (args, expected) in [
        ("web.service.bw.internal A", "NOERROR [qr aa rd] ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 1"),
        ("+norec web.service.bw.internal A", "NOERROR [qr aa] ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 1"),
        ("web.service.bw.internal SRV", "NOERROR [qr aa rd] ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 4"),
        ("+noedns web.service.bw.internal SRV", "NOERROR [qr aa rd] ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 3"),
        ("idle.service.bw.internal A", "NOERROR [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("web.service.bw.internal MX", "NOERROR [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("service.bw.internal A", "NOERROR [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("-x 10.0.0.1 -t A", "NOERROR [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("nobody.service.bw.internal A", "NXDOMAIN [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("web.service.dc2.bw.internal A", "NXDOMAIN [qr aa rd] ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 1"),
        ("example.org A", "REFUSED [qr rd] ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 1"),
        ("-x 192.0.2.1", "REFUSED [qr rd] ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 1"),
        ("version.bind CH TXT", "REFUSED [qr rd] ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 1"),
        ("+opcode=NOTIFY bw.internal SOA", "NOTIMP [qr rd] "),
        (
            "+edns=1 +noednsnegotiation bw.internal SOA",
            "BADVERS [qr rd] ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 1",
        ),
        ("+dnssec bw.internal SOA", "NOERROR [qr aa rd] ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1"),
    ] {
        assert_eq!(outcome(&server, args).await, expected, "dig {args}");
    }
    let negative = server.dig("nobody.service.bw.internal A +noall +authority").await;
    assert!(negative.starts_with("bw.internal.\t\t3\tIN\tSOA\t"), "{negative}");
    let reverse = server.dig("1.0.0.10.in-addr.arpa A +noall +authority").await;
    assert!(reverse.starts_with("1.0.0.10.in-addr.arpa.\t3\tIN\tSOA\tns.bw.internal."), "{reverse}");
    let loud = server.dig("WeB.service.bw.InTernal A +noall +answer").await;
    assert!(loud.starts_with("WeB.service.bw.InTernal. 0\tIN\tA\t10."), "the question's own letters: {loud}");
    let dnssec = server.dig("+dnssec bw.internal SOA").await;
    assert!(dnssec.contains("flags: do; udp: 1232"), "{dnssec}");
    let counts = server.serving.counts();
    assert_eq!((counts.nx_domain, counts.refused, counts.not_imp, counts.bad_vers), (3, 3, 1, 1));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_snapshot_is_used_at_once_and_a_stale_one_is_reported() {
    let server = start(small()).await;
    let mut newer = small();
    newer.catalogue.set_host(&"web-9".parse().unwrap(), Some(addresses(&["10.0.0.99"])));
    newer.stale_since = Some(bellwether_core::words::time::Timestamp::from_millis(7));
    server.publish.send(std::sync::Arc::new(newer)).unwrap();
    assert_eq!(server.short("web-9.node.bw.internal").await, ["10.0.0.99"]);
    assert_eq!(server.serving.counts().stale_since.unwrap().as_millis(), 7);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zone_transfers_are_refused() {
    let server = start(small()).await;
    let said = server.dig("bw.internal AXFR").await;
    assert!(said.contains("Transfer failed."), "{said}");
    server.stop().await;
}
