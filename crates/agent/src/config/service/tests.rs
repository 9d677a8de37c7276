use std::path::Path;

use bellwether_core::local::health::Hysteresis;

use super::*;
use crate::config::recipe::Probe;

fn definition(text: &str) -> ServiceDefinition {
    toml::from_str(text).unwrap()
}

fn refused(text: &str) -> String {
    let wrong = Service::of(&definition(text)).unwrap_err();
    format!("{}: {}", wrong.field, wrong.reason)
}

#[test]
fn a_whole_definition_reads() {
    let service = Service::of(&definition(
        r#"
        name = "web"
        id = "web-blue"
        port = 8080
        interface = "eth1"
        tags = ["blue", "v=2"]
        meta = { weight = "10" }
        entity = "shop"
        [[check]]
        name = "port"
        tcp = "127.0.0.1:8080"
        interval = "2s"
        [[check]]
        name = "disk"
        exec = ["/usr/lib/check_disk", "-w", "90"]
        warning_exit = 1
        [[check]]
        name = "page"
        http = "http://127.0.0.1:8080/health"
        [[check]]
        name = "alive"
        ttl = "30s"
        "#,
    ))
    .unwrap();
    assert_eq!((service.id.as_str(), service.port, service.tags.len()), ("web-blue", Some(8080), 2));
    assert_eq!(service.at, ServiceAddress::Interface("eth1".parse().unwrap()));
    let names: Vec<&str> = service.checks.keys().map(CheckName::as_str).collect();
    assert_eq!((names, service.ttl_checks.len()), (vec!["disk", "page", "port"], 1));
    let page = &service.checks[&"page".parse().unwrap()].probe;
    assert!(matches!(page, Probe::Http { status: None, .. }), "any success passes");
    let simple = Service::of(&definition("name = \"db\"\naddress = \"fd00::7\"")).unwrap();
    assert_eq!(simple.id.as_str(), "db");
    assert!(matches!(simple.at, ServiceAddress::Address(_)));
}

#[test]
fn an_invalid_definition_is_refused_with_its_field() {
    for (text, reason) in [
        ("name = \"Web_1\"", "name: \"Web_1\" is not a valid service name"),
        ("name = \"web\"\nneeds = [\"2 of web\"]", "needs: a service cannot need itself"),
        ("name = \"web\"\nport = 0", "port: not from 1 to 65535"),
        ("name = \"web\"\ntags = [\"a b\"]", "tags: \"a b\" is not a valid tag"),
        ("name = \"web\"\naddress = \"10.0.0.1\"\ninterface = \"eth0\"", "interface: set address or"),
        ("name = \"web\"\n[[check]]\nname = \"a\"", "check.a: name one of exec, http, tcp or ttl"),
        (
            "name = \"web\"\n[[check]]\nname = \"a\"\ntcp = \"x:1\"\nttl = \"3s\"",
            "check.a.ttl: name only one of",
        ),
        ("name = \"web\"\n[[check]]\nname = \"a\"\nttl = \"0s\"", "check.a.ttl: must be longer than zero"),
        ("name = \"web\"\n[[check]]\nname = \"a\"\ntcp = \"x\"", "check.a.tcp: \"x\" is not host:port"),
        (
            "name = \"web\"\n[[check]]\nname = \"a\"\nhttp = \"https://x\"",
            "check.a.http: an http check probes",
        ),
        (
            "name = \"web\"\n[[check]]\nname = \"a\"\ntcp = \"x:1\"\nstatus = 200",
            "check.a.status: only an http",
        ),
        (
            "name = \"web\"\n[[check]]\nname = \"a\"\ntcp = \"x:1\"\nwarning_exit = 1",
            "check.a.warning_exit: only",
        ),
        ("name = \"web\"\n[[check]]\nname = \"a\"\ntcp = \"x:1\"\nfall = 0", "check.a.fall: 0 is not from 1"),
        (
            "name = \"web\"\n[[check]]\nname = \"a\"\nttl = \"3s\"\n[[check]]\nname = \"a\"\nttl = \"3s\"",
            "check.a: there are two",
        ),
    ] {
        let message = refused(text);
        assert!(message.starts_with(reason), "{text}\n{message}");
    }
}

#[test]
fn definitions_in_consuls_form_are_read() {
    let text = r#"{
      "service": {
        "name": "keystone", "port": 5000, "tags": ["real"], "enable_tag_override": false,
        "weights": { "passing": 10 }, "token": "x",
        "check": { "script": "/usr/lib/jiocloud/tests/keystone.sh", "interval": "10s", "notes": "as Puppet writes it" }
      },
      "services": [
        { "id": "web-1", "name": "web", "address": "10.0.0.7", "meta": { "a": "b" },
          "checks": [
            { "name": "HTTP on port 80", "http": "http://127.0.0.1:80/", "interval": "5s", "timeout": "1s" },
            { "id": "alive", "ttl": "30s" },
            { "args": ["/bin/true"], "interval": "1m", "failures_before_critical": 2 }
          ] }
      ]
    }"#;
    let services: Vec<Service> =
        consul::read(text).unwrap().iter().map(|definition| Service::of(definition).unwrap()).collect();
    let [keystone, web] = services.as_slice() else { panic!("two services") };
    assert_eq!((keystone.port, keystone.id.as_str()), (Some(5000), "keystone"));
    let check = keystone.checks.values().next().unwrap();
    let Probe::Exec { command, warning } = &check.probe else { panic!("a script") };
    assert_eq!(command.argv, ["sh", "-c", "/usr/lib/jiocloud/tests/keystone.sh"]);
    assert_eq!((*warning, check.hysteresis), (Some(1), Hysteresis { fall: 1, rise: 1 }));
    let names: Vec<&str> = web.checks.keys().map(CheckName::as_str).collect();
    assert_eq!(names, ["check-3", "http-on-port-80"]);
    assert_eq!(web.checks[&"check-3".parse().unwrap()].hysteresis.fall, 3);
    assert_eq!(web.ttl_checks.len(), 1);
}

#[test]
fn a_consul_file_with_an_invalid_definition_is_refused_as_a_whole() {
    for (text, reason) in [
        ("{", "EOF"),
        ("{}", "there is no \"service\""),
        (r#"{"service":{"port":80}}"#, "missing field `name`"),
        (r#"{"service":{"name":"a","address":"host.example"}}"#, "is not an IP address"),
        (r#"{"service":{"name":"a","check":{"grpc":"x:1"}}}"#, "a check by grpc is not supported"),
        (r#"{"service":{"name":"a","check":{"interval":7}}}"#, "check 1: invalid type"),
    ] {
        let message = consul::read(text).unwrap_err();
        assert!(message.contains(reason), "{text}\n{message}");
    }
}

#[test]
fn an_id_names_one_instance_and_errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.json", r#"{"service":{"name":"web","port":80}}"#);
    write("ignored.txt", "not a definition");
    let own = (Path::new("agent.toml").to_owned(), definition("name = \"db\""));
    let all = || super::super::services::all(vec![own.clone()], Some(dir.path())).unwrap();
    assert_eq!((all().services.len(), all().refused.len()), (2, 0));
    // The rest is used, and of a file with a mistake nothing.
    for (text, reason) in [
        (
            r#"{"services":[{"name":"fine"},{"name":"other","id":"db"}]}"#,
            "the id db is used already in agent.toml",
        ),
        ("{ nonsense", "key must be a string"),
    ] {
        write("b.json", text);
        let (file, error) = all().refused.pop_first().unwrap();
        assert!(file.ends_with("b.json") && error.contains("b.json") && error.contains(reason), "{error}");
        assert_eq!(all().services.len(), 2);
    }
}
