//! A machine becomes a server: with a token of its own, once, and only where servers share a store.

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::{Join, JoinsAs, NewJoinToken};
use bellwether_api::v1::server_join::{JoinServer, NewServerToken};
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::join::{EtcdFiles, JoinRequest, join};
use bellwether_server::run::{Server, init};
use bellwether_server::secrets::keyring::{KEYRING_FILE, Keyring};
use bellwether_store::testing::etcd::TestEtcd;

use crate::harness::{Installation, SOON, problem};
use crate::rights::with;
use crate::several::config_on;

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, wait).await.is_ok(), "never saw that {what}");
}

/// The first server of an installation on an etcd.
async fn first(etcd: &TestEtcd, dir: &std::path::Path) -> (Server, Client) {
    let config = config_on(etcd, dir, "cp-1");
    let made = init(&config).await.unwrap();
    let server = Server::start(&config, Clock::system()).await.unwrap();
    let access = Access {
        server: format!("https://{}", server.address),
        ca: Some(server.ca_pem.clone()),
        identity: Identity::Token(made.token),
    };
    let client = Client::new(&access).unwrap();
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_joins_once_with_a_token_of_its_own_and_is_one_of_them() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (one, admin) = first(&etcd, dir.path()).await;
    until("the first is registered", async || !admin.control_plane().await.unwrap().servers.is_empty()).await;
    let token = admin.create_server_token(&NewServerToken::default()).await.unwrap().secret;
    let listed = admin.join_tokens().await.unwrap().items;
    assert_eq!(listed.iter().map(|token| token.joins_as).collect::<Vec<_>>(), [JoinsAs::Server]);

    let request = |name: &str| JoinRequest {
        from: format!("https://{}", one.address),
        token: Secret::new(token.clone()),
        name: name.parse().unwrap(),
        config_file: dir.path().join(format!("{name}.toml")),
        data_dir: dir.path().join(name),
        listen: "127.0.0.1:0".parse().unwrap(),
        address: None,
        etcd_files: EtcdFiles::default(),
    };
    let taken = JoinRequest { data_dir: dir.path().join("other"), ..request("cp-1") };
    let refused = join(&taken).await.unwrap_err().to_string();
    assert!(refused.contains("a live server has the name"), "{refused}");
    // A key that was added while the first one runs is sent too.
    Keyring::add_key(&dir.path().join("cp-1").join(KEYRING_FILE)).unwrap();
    let joined = join(&request("cp-2")).await.unwrap();
    assert!(joined.config_is_new && joined.missing_files.is_empty(), "{joined:?}");
    for file in ["pki/ca.pem", "pki/ca.key", KEYRING_FILE] {
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name).join(file)).unwrap();
        assert_eq!(read("cp-1"), read("cp-2"), "{file}");
        let path = dir.path().join("cp-2").join(file);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "{file} is its owner's alone");
    }

    let config = Config::load(Some(&joined.config_file)).unwrap();
    let two = Server::start(&config, Clock::system()).await.unwrap();
    until("both are servers", async || admin.control_plane().await.unwrap().servers.len() == 2).await;
    let again = join(&request("cp-3")).await.unwrap_err().to_string();
    assert!(again.contains("was used already") && again.contains("server join-token"), "{again}");
    let events = admin.events("default", Some(0), 100, std::time::Duration::ZERO).await.unwrap().items;
    let event = events.iter().find(|event| event.kind == "server.joined").unwrap();
    assert_eq!((event.subject.as_str(), event.actor.as_str()), ("server/cp-2", "server/cp-2"));
    assert!(event.cause.contains("join token of admin"), "{}", event.cause);
    assert!(!format!("{events:?}").contains("PRIVATE"), "no event has a key");
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_server_lets_no_node_in_and_that_of_a_node_no_server_and_both_end() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (one, admin) = first(&etcd, dir.path()).await;
    let for_server = admin.create_server_token(&NewServerToken::default()).await.unwrap().secret;
    let for_node = admin.create_join_token(&NewJoinToken::default()).await.unwrap().secret;
    let join_server = async |token: &str| {
        let request = JoinServer { token: token.to_owned(), name: "cp-2".to_owned() };
        problem(admin.join_server(&request).await.map(|joined| joined.installation))
    };
    let (code, detail) = join_server(&for_node).await;
    assert_eq!(code, Code::JoinToken);
    assert!(detail.contains("is for a node"), "{detail}");
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let node = Join {
        token: for_server.clone(),
        namespace: "default".to_owned(),
        node: "web-1".to_owned(),
        labels: Default::default(),
        certificate_request: request,
    };
    let (code, detail) = problem(admin.join(&node).await.map(|joined| joined.ca));
    assert_eq!(code, Code::JoinToken);
    assert!(detail.contains("is for a server"), "{detail}");

    let id =
        admin.join_tokens().await.unwrap().items.into_iter().find(|token| token.joins_as == JoinsAs::Server);
    admin.delete_join_token(&id.unwrap().id).await.unwrap();
    assert!(join_server(&for_server).await.1.contains("unknown or was revoked"));
    let brief = NewServerToken { expires_in: Some("1ms".to_owned()) };
    let brief = admin.create_server_token(&brief).await.unwrap().secret;
    let end = admin.join_tokens().await.unwrap().items.iter().map(|token| token.expires_at_ms).min().unwrap();
    until("it is over", async || admin.time(SOON).await.unwrap().now_ms > end).await;
    assert!(join_server(&brief).await.1.contains("has expired"));
    for wrong in ["0s", "61m"] {
        let request = NewServerToken { expires_in: Some(wrong.to_owned()) };
        let (code, _) = problem(admin.create_server_token(&request).await.map(|made| made.secret));
        assert_eq!(code, Code::Invalid, "{wrong}");
    }
    one.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_with_a_store_of_its_own_brings_in_no_other() {
    let installation = Installation::new().await;
    let refused = installation.admin().create_server_token(&NewServerToken::default()).await;
    let (code, detail) = problem(refused.map(|made| made.secret));
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("no other can use it"), "{detail}");
    let some = with(&installation, "some", &["get,update,delete token,server"]).await;
    let refused = some.create_server_token(&NewServerToken::default()).await;
    assert!(refused.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_may_do_everything_creates_the_token_of_a_server() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (one, admin) = first(&etcd, dir.path()).await;
    let new = bellwether_api::v1::role::RoleSpec {
        claims: vec![(&bellwether_core::access::Claim::parse("get,update,delete *").unwrap()).into()],
        description: String::new(),
    };
    admin.put_role("nearly", &new).await.unwrap();
    let token = bellwether_api::v1::access::NewToken {
        name: "nearly".to_owned(),
        roles: vec!["nearly".to_owned()],
        only_in: None,
        expires_in: None,
    };
    let secret = admin.create_token(&token).await.unwrap().secret;
    let access = Access {
        server: format!("https://{}", one.address),
        ca: Some(one.ca_pem.clone()),
        identity: Identity::Token(Secret::new(secret)),
    };
    let nearly = Client::new(&access).unwrap();
    let (code, detail) =
        problem(nearly.create_server_token(&NewServerToken::default()).await.map(|made| made.secret));
    assert_eq!(code, Code::Forbidden);
    assert!(detail.contains("every right"), "{detail}");
    one.stop().await.unwrap();
}
