use bellwether_core::catalogue::instance::{Instance as Known, InstanceState};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::time::Timestamp;

use super::*;

/// An instance of `service` at `ADDRESS` of `INTERFACE`.
fn put(
    catalogue: &mut Catalogue,
    service: &str,
    node: &str,
    (addresses, level): (&[(&str, &str)], InstanceState),
) {
    let mut all: BTreeMap<_, Vec<IpAddr>> = BTreeMap::new();
    for (interface, address) in addresses {
        all.entry(interface.parse().unwrap()).or_default().push(address.parse().unwrap());
    }
    let instance = Known {
        name: service.parse().unwrap(),
        node: node.parse().unwrap(),
        addresses: Addresses(all),
        port: Some(9292),
        tags: BTreeSet::from(["blue".parse().unwrap()]),
        meta: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        level,
        since: Timestamp::EPOCH,
    };
    catalogue.put(&service.parse().unwrap(), instance);
}

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    let failing = InstanceState::Failing { reason: "down".into() };
    put(
        &mut catalogue,
        "glance",
        "n2",
        (&[("eth0", "10.0.0.10"), ("eth0", "fd00::6")], InstanceState::Passing),
    );
    put(&mut catalogue, "glance", "n1", (&[("eth0", "10.0.0.9"), ("eth0:1", "10.1.0.5")], failing));
    put(&mut catalogue, "a-b", "n1", (&[("it's#1", "10.0.0.9")], InstanceState::Passing));
    catalogue.hear_of(&"gone".parse().unwrap());
    catalogue
}

fn written(format: Format) -> String {
    text(format, &everything(format.level()), &catalogue()).unwrap()
}

#[test]
fn hiera_reads_every_service_and_interface_with_sorted_addresses() {
    let body = "---\n'services::a-b::it''s#1': [10.0.0.9]\n\
                services::glance::eth0: [10.0.0.9, 10.0.0.10, \"fd00::6\"]\n\
                services::glance::eth0:1: [10.1.0.5]\n";
    assert_eq!(written(Format::Hiera), format!("{NOTICE}{body}"));
    let nothing =
        text(Format::Hiera, &everything(RequiredState::Addressable), &Catalogue::default()).unwrap();
    assert_eq!(nothing, format!("{NOTICE}---\n{{}}\n"));
}

#[test]
fn json_has_the_instances_that_serve_without_what_changes_by_itself() {
    let value: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
    assert_eq!(value["services"]["gone"], serde_json::json!([]));
    let wanted = serde_json::json!([{"node": "n2", "name": "glance", "address": "10.0.0.10", "port": 9292,
        "addresses": {"eth0": ["10.0.0.10", "fd00::6"]}, "tags": ["blue"], "meta": {"zone": "a"}, "level": "passing"}]);
    assert_eq!(value["services"]["glance"], wanted);
}

#[test]
fn variables_say_what_serves_also_when_nothing_does() {
    let wanted = "SERVICE_A_B_COUNT=1\nSERVICE_A_B_ADDRESSES=\"10.0.0.9\"\nSERVICE_A_B_ENDPOINTS=\"10.0.0.9:9292\"\n\
                  SERVICE_GLANCE_COUNT=1\nSERVICE_GLANCE_ADDRESSES=\"10.0.0.10 fd00::6\"\n\
                  SERVICE_GLANCE_ENDPOINTS=\"10.0.0.10:9292\"\n\
                  SERVICE_GONE_COUNT=0\nSERVICE_GONE_ADDRESSES=\"\"\nSERVICE_GONE_ENDPOINTS=\"\"\n";
    assert_eq!(written(Format::Env), format!("{NOTICE}{wanted}"));
}
