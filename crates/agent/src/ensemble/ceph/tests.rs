use serde_json::json;

use super::*;

fn ceph() -> Ceph {
    let settings = CephSettings { port: 3300, replicas: 2, devices: [].into() };
    Ceph::new(
        (&"disks".parse().unwrap(), MemberNumber::new(2)),
        settings,
        "10.0.0.2".parse().unwrap(),
        Path::new("/m"),
    )
}

fn status(state: &str) -> Value {
    let mon = |name: &str, address: &str| {
        let v1 = json!({"type": "v1", "addr": "10.9.9.9:6789", "nonce": 0});
        json!({"name": name, "public_addrs": {"addrvec": [v1, {"type": "v2", "addr": address, "nonce": 0}]}})
    };
    let mons = [mon("disks-1", "10.0.0.1:3300"), mon("disks-2", "10.0.0.2:3300")];
    json!({"name": "disks-2", "state": state, "rank": 1, "quorum": [0, 1], "monmap": {"mons": mons}})
}

#[test]
fn a_monitor_serves_only_as_one_of_a_quorum() {
    let MemberAnswer::Serving(membership) = read(&status("peon"), "disks-2") else { panic!("it serves") };
    assert!(!membership.is_leader && membership.own_id == "disks-2");
    assert_eq!(membership.members["disks-1"].address.as_deref(), Some("v2:10.0.0.1:3300"));
    assert_eq!(membership.members.len(), 2);
    assert!(matches!(read(&status("leader"), "disks-2"), MemberAnswer::Serving(of) if of.is_leader));
    for state in ["probing", "electing", "shutdown"] {
        assert!(matches!(read(&status(state), "disks-2"), MemberAnswer::Silent(_)), "{state}");
    }
    assert_eq!(read(&status("synchronizing"), "disks-2"), MemberAnswer::Learner);
    assert!(matches!(read(&status("peon"), "disks-3"), MemberAnswer::Other(_)));
    assert!(matches!(read(&json!({}), "disks-2"), MemberAnswer::Silent(_)));
}

#[test]
fn a_monitor_takes_nothing_from_the_configuration_of_its_machine() {
    let argv = ceph().command("ceph-mon", Path::new("/m/data")).argv.join(" ");
    assert!(argv.starts_with("ceph-mon --conf /dev/null -f -i disks-2 --mon-data /m/data/mon "), "{argv}");
    assert!(argv.contains(" --public-addrv [v2:10.0.0.2:3300] "), "{argv}");
    assert!(!argv.contains("keyring"), "one that joins would not be let in: {argv}");
    let urls = ["v2:10.0.0.1:3300".to_owned(), "v2:10.0.0.2:3300".to_owned()];
    let argv = ceph().manager_command("ceph-mgr", &urls).argv.join(" ");
    assert!(argv.contains(" -m v2:10.0.0.1:3300,v2:10.0.0.2:3300 --mgr-data /m/data/mgr "), "{argv}");
}
