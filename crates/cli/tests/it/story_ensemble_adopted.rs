//! An etcd of three that was founded by hand is adopted: three members of ours join it, the three are removed one after the other, and the server is
//! killed meanwhile, under a client that keeps count of what was acknowledged. And what cannot be adopted, and what is waited for.

use std::process::{Child, Command, Stdio};

use bellwether_api::v1::ensemble::adoption::ForeignMember;
use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::status::EnsembleStatus;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensemble_restored::programs;
use crate::story_ensembles::{Writer, address, complete, etcds, node, nothing_is_lost, post};
use crate::story_redis_ensemble::kill;

/// Nodes.
const NODES: usize = 4;

/// An installation whose agents run the same etcd as is founded by hand.
async fn installed() -> Setup {
    let mut place = Setup::new().await;
    let (etcd, _) = programs();
    for number in 1..=NODES {
        let at = address(number);
        place.start_agent(
            &node(number),
            &format!("addresses = {{ lo = [{at:?}] }}\n\n[ensembles]\netcd = {etcd:?}\n"),
        );
    }
    place
}

/// An etcd that something else runs.
struct ByHand {
    /// By number, from 1.
    processes: Vec<Child>,
    host: u8,
    ports: [u16; 2],
}

impl ByHand {
    /// Founds a store of so many, on addresses that no agent has.
    async fn found(place: &Setup, host: u8, size: u8) -> Self {
        let mut store = Self { processes: Vec::new(), host, ports: free_ports() };
        let names: Vec<String> = (1..=size)
            .map(|number| format!("infra{number}=http://{}", store.at(number, store.ports[1])))
            .collect();
        for number in 1..=size {
            store.start(place, number, &names.join(","));
        }
        for number in 1..=size {
            let client = store.client(number);
            wait_for("the store serves", async || {
                post(&client, "/v3/kv/range", r#"{"key": "AAAA"}"#).is_some()
            })
            .await;
        }
        store
    }

    fn start(&mut self, place: &Setup, number: u8, initial: &str) {
        let (client, peer) = (self.at(number, self.ports[0]), self.at(number, self.ports[1]));
        let [client, peer] = [client, peer].map(|at| format!("http://{at}"));
        let (name, host) = (format!("infra{number}"), self.host);
        let data = place.path(&format!("by-hand-{host}-{number}"));
        let log = std::fs::File::create(place.path(&format!("by-hand-{host}-{number}.log"))).unwrap();
        let mut etcd = Command::new("etcd");
        etcd.args(["--name", &name, "--data-dir", &data, "--initial-cluster-state", "new"]);
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", initial, "--initial-cluster-token", &format!("by-hand-{host}")]);
        self.processes.push(etcd.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn at(&self, number: u8, port: u16) -> String {
        format!("127.0.{}.{number}:{port}", self.host)
    }

    fn client(&self, number: u8) -> String {
        self.at(number, self.ports[0])
    }

    fn endpoint(&self, number: u8) -> String {
        format!("http://{}", self.client(number))
    }

    fn endpoints(&self) -> String {
        let numbers = (1..).take(self.processes.len());
        numbers.map(|number| self.endpoint(number)).collect::<Vec<_>>().join(",")
    }

    /// kill -9.
    fn kill(&mut self, number: usize) {
        let process = self.processes.get_mut(number - 1).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        for process in &mut self.processes {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// Creates an ensemble that adopts what is at these endpoints; the command's exit code, and what it says.
fn adopt(
    place: &Setup,
    name: &str,
    (endpoints, size): (&str, &str),
    [client, peer]: [u16; 2],
) -> (i32, String) {
    let [client, peer] = [client, peer].map(|port| port.to_string());
    let said = place.run(
        &[
            &[
                "ensemble", "create", name, "--adopt", endpoints, "--filter", "all", "--size", size, "--tls",
                "false",
            ][..],
            &[
                "--client-port",
                &client,
                "--peer-port",
                &peer,
                "--failover-after",
                "30s",
                "--join-within",
                "1m",
            ][..],
        ]
        .concat(),
    );
    (code(&said), format!("{}{}", text(&said.stdout), text(&said.stderr)))
}

fn why(place: &Setup, name: &str) -> String {
    text(&place.run(&["why", &format!("ensemble/{name}")]).stdout)
}

async fn status(place: &Setup, name: &str) -> EnsembleStatus {
    let ensemble = place.client().ensemble("default", name).await;
    ensemble.ok().and_then(|of| of.status).unwrap_or_default()
}

/// Asks that a member is removed, and waits until the store does not have it.
async fn remove(place: &Setup, foreign: &ForeignMember) {
    done(place, &["ensemble", "remove-foreign-member", "store", &foreign.id, "--yes"]);
    wait_for("it is removed", async || {
        status(place, "store").await.foreign.iter().all(|of| of.id != foreign.id)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_something_else_founded_is_adopted_without_losing_what_it_acknowledged() {
    let mut place = installed().await;
    let (mut store, ports) = (ByHand::found(&place, 41, 3).await, free_ports());
    let own = (1..=NODES).map(|number| format!("{}:{}", address(number), ports[0]));
    let writer = Writer::start((1..=3).map(|number| store.client(number)).chain(own).collect());
    let (created, said) = adopt(&place, "store", (&store.endpoints(), "3"), ports);
    assert_eq!(created, 0, "{said}");
    wait_for("the first has joined", async || status(&place, "store").await.voting > 0).await;
    place.kill_server();
    place.start_server().await;
    let members = complete(&place, 3).await;
    let foreign = status(&place, "store").await.foreign;
    assert!(foreign.len() == 3 && foreign.iter().all(|of| of.votes && of.answers), "{foreign:?}");
    let shown = done(&place, &["ensemble", "get", "store"]);
    assert!(foreign.iter().all(|of| shown.contains(&of.id) && shown.contains(&of.peer_url)), "{shown}");
    assert!(done(&place, &["ensemble", "list"]).contains("3 of 3, 3 foreign"));

    // Nothing is asked that would be refused.
    let deleted = place.run(&["ensemble", "delete", "store"]);
    let said = text(&deleted.stderr);
    assert!(
        code(&deleted) != 0 && said.contains("its store has members that something else runs (3)"),
        "{said}"
    );

    // The leader among them, and the server dies meanwhile.
    for (index, of) in foreign.iter().enumerate() {
        if index == 1 {
            place.kill_server();
            place.start_server().await;
        }
        remove(&place, of).await;
    }
    for process in &mut store.processes {
        wait_for("it ends as one that was removed", async || process.try_wait().unwrap().is_some()).await;
    }
    assert_eq!(complete(&place, 3).await, members);
    nothing_is_lost(writer, &members.iter().map(|of| client_of(of, ports[0])).collect::<Vec<_>>());
    for member in &members {
        let listed = post(&client_of(member, ports[0]), "/v3/cluster/member/list", "{}").unwrap();
        assert_eq!(listed.matches("peerURLs").count(), 3, "{listed}");
    }
    assert!(!why(&place, "store").contains("foreign"));
    assert!(
        done(&place, &["events", "--limit", "1000"]).contains("ensemble.foreign_member_removal_requested")
    );
}

fn client_of(member: &EnsembleMember, port: u16) -> String {
    let peer = member.peer_url.clone().unwrap();
    format!("{}:{port}", peer.trim_start_matches("http://").split(':').next().unwrap())
}

/// The ensemble says this in `why` once its first node has looked.
async fn says(place: &Setup, name: &str, what: &str) -> String {
    let mut said = String::new();
    wait_for(&format!("why says {what}"), async || {
        said = why(place, name);
        said.contains(what)
    })
    .await;
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_store_that_can_be_adopted_is_told_and_nobody_joins_it() {
    let place = installed().await;
    let (store, other) = (ByHand::found(&place, 42, 1).await, ByHand::found(&place, 43, 1).await);
    let (refused, said) = adopt(&place, "store", ("https://127.0.42.1:2379", "1"), free_ports());
    assert!(refused != 0 && said.contains("adopt.endpoints") && said.contains("--from-snapshot"), "{said}");
    let with_tls = ["ensemble", "create", "store", "--adopt", &store.endpoint(1), "--filter", "all"];
    let said = text(&place.run(&with_tls).stderr);
    assert!(said.contains("service.etcd.tls") && said.contains("--tls false"), "{said}");

    // Two stores in one list, one that does not answer: nobody joins.
    let both = format!("{},{}", store.endpoint(1), other.endpoint(1));
    let (created, said) = adopt(&place, "store", (&both, "1"), free_ports());
    assert_eq!(created, 0, "{said}");
    let said = says(&place, "store", "endpoints of one store").await;
    assert!(said.contains(&store.endpoint(1)) && said.contains(&other.endpoint(1)), "{said}");
    let silent = format!("http://127.0.42.9:{}", store.ports[0]);
    done(
        &place,
        &["ensemble", "set", "store", "--adopt", &format!("{},{silent}", store.endpoint(1)), "--yes"],
    );
    let said = says(&place, "store", "which does not answer").await;
    assert!(said.contains(&silent), "{said}");
    for of in [&store, &other] {
        let listed = post(&of.client(1), "/v3/cluster/member/list", "{}").unwrap();
        assert_eq!(listed.matches("peerURLs").count(), 1, "{listed}");
    }

    // The same store twice, and by an endpoint that nobody has named.
    done(&place, &["ensemble", "set", "store", "--adopt", &store.endpoint(1), "--yes"]);
    let own = complete(&place, 1).await;
    let (refused, said) = adopt(&place, "twice", (&store.endpoint(1), "1"), free_ports());
    assert!(
        refused != 0 && said.contains("is of the store of ensemble store in namespace default"),
        "{said}"
    );
    let known = own.first().unwrap().peer_url.clone().unwrap();
    assert!(known.starts_with("http://127.0.31."), "{known}");
    let proxied = format!("http://localhost:{}", relay(store.client(1)));
    let (created, said) = adopt(&place, "twice", (&proxied, "1"), free_ports());
    assert_eq!(created, 0, "{said}");
    says(&place, "twice", "is that of ensemble store already").await;
    let listed = post(&store.client(1), "/v3/cluster/member/list", "{}").unwrap();
    assert_eq!(listed.matches("peerURLs").count(), 2, "{listed}");
}

/// A port at which another one is reached, as through a load balancer.
fn relay(to: String) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(other) = std::net::TcpStream::connect(&to) else { continue };
            for (from, into) in [(&stream, &other), (&other, &stream)] {
                let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                std::thread::spawn(move || {
                    let copied = std::io::copy(&mut from, &mut into);
                    drop(into.shutdown(std::net::Shutdown::Both));
                    copied
                });
            }
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_member_that_is_gone_for_good_keeps_others_from_joining_until_it_is_removed() {
    let place = installed().await;
    let (mut store, ports) = (ByHand::found(&place, 44, 3).await, free_ports());
    let (created, said) = adopt(&place, "store", (&store.endpoints(), "1"), ports);
    assert_eq!(created, 0, "{said}");
    complete(&place, 1).await;
    store.kill(2);
    wait_for("it is known to be silent", async || {
        status(&place, "store").await.foreign.iter().any(|of| !of.answers)
    })
    .await;
    done(&place, &["ensemble", "scale", "store", "3", "--yes"]);
    let said = says(&place, "store", "the store takes no other member meanwhile").await;
    let gone = status(&place, "store").await.foreign.into_iter().find(|of| !of.answers).unwrap();
    assert!(said.contains(&format!("remove-foreign-member store {}", gone.id)), "{said}");
    assert_eq!(gone.name, "infra2");
    remove(&place, &gone).await;
    complete(&place, 3).await;
    // Fewer than a quorum are never left by our hand.
    let left = status(&place, "store").await.foreign;
    assert_eq!(left.len(), 2);
    let none = place.run(&["ensemble", "remove-foreign-member", "store", "1f"]);
    let said = text(&none.stderr);
    assert!(said.contains("cannot find foreign member 1f") && !said.contains("left"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_lost_after_the_former_store_is_gone_is_replaced_through_the_others() {
    let mut place = installed().await;
    let (mut store, ports) = (ByHand::found(&place, 45, 1).await, free_ports());
    let own: Vec<String> = (1..=NODES).map(|number| format!("{}:{}", address(number), ports[0])).collect();
    let writer = Writer::start([store.client(1)].into_iter().chain(own.iter().cloned()).collect());
    let (created, said) = adopt(&place, "store", (&store.endpoints(), "3"), ports);
    assert_eq!(created, 0, "{said}");
    let members = complete(&place, 3).await;
    for foreign in status(&place, "store").await.foreign {
        remove(&place, &foreign).await;
    }
    for process in &mut store.processes {
        wait_for("it ends as one that was removed", async || process.try_wait().unwrap().is_some()).await;
    }
    assert_eq!(post(&store.client(1), "/v3/kv/range", r#"{"key": "AAAA"}"#), None, "nobody is there");
    assert_eq!(complete(&place, 3).await, members);

    // Its node is gone, with the agent and the member.
    let lost = members.first().unwrap().clone();
    place.kill_agent(&lost.node);
    kill(&etcds(&place, &lost.node));
    wait_for("another one votes in its place", async || {
        let status = status(&place, "store").await;
        let joined = status.members.iter().find(|member| member.number == 4);
        status.working == 3 && joined.is_some_and(|member| member.state == MemberPhase::Voting)
    })
    .await;

    // A server and an agent that begin anew know the store without the former endpoints, and so does the node that is back.
    let joined = status(&place, "store").await.members.pop().unwrap();
    place.kill_agent(&joined.node);
    place.kill_server();
    place.start_server().await;
    place.resume_agent(&joined.node);
    place.resume_agent(&lost.node);
    let left = complete(&place, 3).await;
    assert_eq!(left.iter().map(|member| member.number).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(etcds(&place, &lost.node).is_empty() && status(&place, "store").await.foreign.is_empty());
    let listed = post(&client_of(&joined, ports[0]), "/v3/cluster/member/list", "{}").unwrap();
    assert_eq!(listed.matches("peerURLs").count(), 3, "{listed}");
    nothing_is_lost(writer, &own);
}
