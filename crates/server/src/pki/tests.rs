use bellwether_core::words::counter::MemberNumber;
use x509_parser::extensions::ParsedExtension;

use super::ensemble::{AuthorityUse, EnsembleId};
use super::*;

fn open(dir: &Path) -> Pki {
    Pki::open(
        dir,
        &["localhost".to_owned(), "127.0.0.1".to_owned()],
        Timestamp::from_millis(1_800_000_000_000),
    )
    .unwrap()
}

/// A certificate of a server.
fn of_server(pki: &Pki, now: Timestamp) -> CertificateDer<'static> {
    let (pem, _) = pki.founding.make_server(&pki.names, now).unwrap();
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

#[test]
fn another_authority_signs_and_both_are_told_apart_and_what_ensembles_derive_stays() {
    let (dir, now) = (tempfile::tempdir().unwrap(), Timestamp::from_millis(1_800_000_000_000));
    let pki = open(dir.path());
    let request = CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap();
    let request = request.pem().unwrap();
    let (namespace, node) = (Namespace::parse("default").unwrap(), NodeName::parse("web-1").unwrap());
    let name = "store".parse().unwrap();
    let password = |pki: &Pki| {
        pki.redis_password(
            EnsembleId { namespace: &namespace, name: &name, identity: "1" },
            MemberNumber::new(1),
        )
    };
    let (old, derived) = (pki.issue(&namespace, &node, &request, now).unwrap(), password(&pki));
    let (certificate, key) = Pki::make_next(now).unwrap();
    let next = AuthorityPair { certificate, key: Some(key) };
    let founding = AuthorityPair { certificate: pki.ca_pem().to_owned(), key: None };
    pki.take_in(2, &[next.clone(), founding], now).unwrap();
    let new = pki.issue(&namespace, &node, &request, now).unwrap();
    assert_ne!(new.issuer, old.issuer);
    assert!(pki.live().trusts(&old.issuer) && pki.live().trusts(&new.issuer));
    pki.take_in(3, std::slice::from_ref(&next), now).unwrap();
    assert!(!pki.live().trusts(&old.issuer) && pki.live().trusts(&new.issuer));
    assert_eq!((password(&pki), pki.ca_fingerprint()), (derived, old.issuer));
    let unknown = AuthorityPair { key: None, ..next };
    assert!(pki.take_in(4, &[unknown], now).is_err());
    assert_eq!(pki.live().version(), 3, "those before stay in use");
}

#[test]
fn the_authority_survives_a_restart_and_its_key_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).ca_fingerprint();
    assert_eq!(open(dir.path()).ca_fingerprint(), first);
    let mode = std::fs::metadata(dir.path().join("ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_damaged_authority_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path());
    std::fs::write(dir.path().join("ca.key"), "garbage").unwrap();
    let now = Timestamp::from_millis(1_800_000_000_000);
    assert!(Pki::open(dir.path(), &[], now).is_err());
    assert_eq!(std::fs::read_to_string(dir.path().join("ca.key")).unwrap(), "garbage");
}

#[test]
fn an_issued_certificate_names_its_node_whatever_the_request_says() {
    let dir = tempfile::tempdir().unwrap();
    let pki = open(dir.path());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "db-1");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let ns = Namespace::parse("default").unwrap();
    let longest = [&*"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].join(".");
    for (name, common) in
        [("web-1", Some("web-1")), ("web-1.example.org", Some("web-1.example.org")), (&longest, None)]
    {
        let node = NodeName::parse(name).unwrap();
        let issued = pki.issue(&ns, &node, &request, Timestamp::from_millis(1_800_000_000_000)).unwrap();
        let der = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
        let bearer = bearer(&der).unwrap();
        assert_eq!((&bearer.namespace, &bearer.node), (&ns, &node));
        assert_eq!(bearer.key_fingerprint, issued.key_fingerprint);
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        let shown = parsed.subject().iter_common_name().next().map(|part| part.as_str().unwrap());
        assert_eq!(shown, common, "a common name has at most 64 characters");
    }
}

#[test]
fn what_the_authority_signs_says_which_key_signed_it() {
    let dir = tempfile::tempdir().unwrap();
    let pki = open(dir.path());
    let request = CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap();
    let (namespace, node) = (Namespace::parse("default").unwrap(), NodeName::parse("web-1").unwrap());
    let now = Timestamp::from_millis(1_800_000_000_000);
    let issued = pki.issue(&namespace, &node, &request.pem().unwrap(), now).unwrap();
    let issued = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
    let own = |der: &CertificateDer<'_>| {
        let (_, parsed) = x509_parser::parse_x509_certificate(der).unwrap();
        let (mut own, mut signer) = (None, None);
        for extension in parsed.extensions() {
            if let ParsedExtension::SubjectKeyIdentifier(id) = extension.parsed_extension() {
                own = Some(id.0.to_vec());
            }
            if let ParsedExtension::AuthorityKeyIdentifier(id) = extension.parsed_extension() {
                signer = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
        }
        (own, signer)
    };
    let (ca, _) = own(&pki.founding.der);
    assert!(ca.is_some());
    for der in [&issued, &of_server(&pki, now)] {
        assert_eq!(own(der).1, ca);
    }
}

#[test]
fn a_certificate_issued_by_a_clock_years_ahead_is_valid_now_and_by_one_years_behind_not_over() {
    let (dir, now) = (tempfile::tempdir().unwrap(), 1_800_000_000_i64);
    open(dir.path());
    let years = 5 * 365 * 86_400;
    let key = KeyPair::generate().unwrap();
    let request = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let (namespace, node) = (Namespace::parse("default").unwrap(), NodeName::parse("web-1").unwrap());
    for clock in [now + years, now - years, now] {
        let clock = Timestamp::from_millis(u64::try_from(clock).unwrap() * 1_000);
        let pki = Pki::open(dir.path(), &["localhost".to_owned()], clock).unwrap();
        let issued = pki.issue(&namespace, &node, &request, clock).unwrap();
        let issued = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
        for der in [&issued, &of_server(&pki, clock)] {
            let (_, parsed) = x509_parser::parse_x509_certificate(der).unwrap();
            let validity = parsed.validity();
            let valid = validity.not_before.timestamp()..validity.not_after.timestamp();
            assert!(valid.contains(&now), "{clock:?}: {valid:?}");
        }
    }
}

#[test]
fn the_authorities_of_ensembles_are_the_same_on_every_server_and_of_each_ensemble_others() {
    let dir = tempfile::tempdir().unwrap();
    let (namespace, name) = (Namespace::parse("default").unwrap(), "store".parse().unwrap());
    let request = CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap();
    let (request, now) = (request.pem().unwrap(), Timestamp::from_millis(1_800_000_000_000));
    let ca = |identity: &str, use_| {
        let of = EnsembleId { namespace: &namespace, name: &name, identity };
        let address = ["10.0.0.1".parse().unwrap()];
        let issued = open(dir.path()).issue_to_member((of, use_), &address, &request, now).unwrap();
        let leaf = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
        let authority = CertificateDer::from_pem_slice(issued.ca_pem.as_bytes()).unwrap();
        let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).unwrap();
        assert!(leaf.subject().iter_common_name().next().is_none());
        let names = leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len();
        assert_eq!(names, 4, "its address and three names");
        authority
    };
    let first = ca("store-1", AuthorityUse::Peers);
    assert_eq!(ca("store-1", AuthorityUse::Peers), first);
    assert_ne!(ca("store-1", AuthorityUse::Clients), first, "a client is no member");
    assert_ne!(ca("store-2", AuthorityUse::Peers), first);
    let other = tempfile::tempdir().unwrap();
    let of = EnsembleId { namespace: &namespace, name: &name, identity: "store-1" };
    let elsewhere = open(other.path()).issue_to_client(of, &request, (now, NODE_LIFE)).unwrap();
    let here = open(dir.path()).issue_to_client(of, &request, (now, NODE_LIFE)).unwrap();
    assert_ne!(elsewhere.ca_pem, here.ca_pem, "another installation has others");
}

#[test]
fn the_keys_of_a_ceph_are_the_same_on_every_server_and_of_each_ensemble_others() {
    let dir = tempfile::tempdir().unwrap();
    let (namespace, name) = (Namespace::parse("default").unwrap(), "disks".parse().unwrap());
    let of = |identity| EnsembleId { namespace: &namespace, name: &name, identity };
    let keys = |identity| open(dir.path()).ceph_keys(of(identity));
    let first = keys("disks-1");
    assert_eq!(keys("disks-1"), first);
    assert_ne!(first.monitors, first.administrator);
    let other = keys("disks-2");
    assert!(other.fsid != first.fsid && other.monitors != first.monitors, "{other:?}");
    let fsid = uuid::Uuid::parse_str(&first.fsid).unwrap();
    assert_eq!((fsid.get_version_num(), fsid.get_variant()), (8, uuid::Variant::RFC4122));
    // Twelve bytes before the secret, which has sixteen: 28 in base64.
    assert!(
        first.monitors.starts_with("AQAAAAAAAAAAABAA") && first.monitors.len() == 40,
        "{}",
        first.monitors.len()
    );
    assert!(!format!("{first:?}").contains(&first.monitors), "no key is in a log");
}
