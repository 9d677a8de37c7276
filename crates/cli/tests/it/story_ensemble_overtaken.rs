//! A backup of the control plane that is older than the members of a real Redis: nothing is done to those that run, no empty one takes the place of
//! one with data, and once the newer records are back all goes on as if nothing had been.

use std::collections::BTreeSet;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::replication::MemberRole;

use crate::place::{Setup, code, copied, done, free_ports, text, wait_for};
use crate::story_redis_ensemble::{
    Writer, another_is_primary, are_instances_of_a_service, complete, installed, kill, primary, programs,
    spec,
};

/// A Redis of three members that serve, with its port.
pub(crate) async fn founded() -> (Setup, u16, Vec<EnsembleMember>) {
    let place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    (place, port, members)
}

/// The host and port of a member.
pub(crate) fn address_of(member: &EnsembleMember) -> String {
    member.peer_url.clone().unwrap().replace("redis://", "")
}

fn numbers(members: &[EnsembleMember]) -> BTreeSet<u64> {
    members.iter().map(|member| member.number).collect()
}

/// Others have the places of all members.
async fn all_replaced(place: &Setup, before: &[EnsembleMember]) -> Vec<EnsembleMember> {
    let mut members = before.to_vec();
    for member in before {
        let number = member.number.to_string();
        done(place, &["ensemble", "replace", "cache", &number, "--yes"]);
        wait_for(&format!("member {number} is replaced"), async || {
            members = complete(place, 3).await;
            !numbers(&members).contains(&member.number)
        })
        .await;
    }
    members
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_older_than_the_members_of_a_redis_change_nothing_and_newer_ones_mend_all() {
    let (mut place, port, before) = founded().await;
    let addresses: Vec<String> = (1..=5).map(|number| format!("127.0.34.{number}:{port}")).collect();
    let writer = Writer::start(addresses);
    let (store, newer, config) = (place.path("server/store"), place.path("newer"), place.path("server.toml"));
    place.back_up().await;
    let members = all_replaced(&place, &before).await;
    let running = || members.iter().map(|member| programs(port, member)).collect::<Vec<_>>();
    let pids = running();
    assert!(pids.iter().all(|pids| pids.len() == 1), "{pids:?}");

    place.kill_server();
    copied(&store, &newer);
    place.put_back().await;
    let why = || done(&place, &["why", "ensemble/cache"]);
    let newer_are_known =
        async || why().contains("which is not recorded") && why().contains("a newer backup");
    wait_for("it is known that its members are newer", newer_are_known).await;
    assert!(done(&place, &["status"]).contains("cache: held after a restore"));
    writer.goes_on().await;
    let listed = place.client().ensemble("default", "cache").await.unwrap().status.unwrap().members;
    assert_eq!(numbers(&listed), numbers(&before), "no other one is chosen");
    assert_eq!(running(), pids, "those that serve are left alone");

    place.kill_server();
    std::fs::remove_dir_all(&store).unwrap();
    copied(&newer, &store);
    done(&place, &["server", "restore", "--in-place", "--config", &config]);
    place.start_server().await;
    assert_eq!(numbers(&complete(&place, 3).await), numbers(&members));
    assert!(done(&place, &["events", "--limit", "1000"]).contains("ensemble.resumed"));
    are_instances_of_a_service(&place, &complete(&place, 3).await).await;
    assert_eq!(running(), pids, "they were never stopped");
    let address = address_of(&primary(&members));
    writer.all_is_at(&address, "after a restore of older records").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_that_was_made_after_the_backup_stays_though_the_one_before_comes_back() {
    let (mut place, port, members) = founded().await;
    let former = primary(&members);
    place.back_up().await;
    done(&place, &["ensemble", "failover", "cache"]);
    let present = primary(&another_is_primary(&place, 3, &former).await);
    place.kill_server();
    place.kill_agent(&former.node);
    kill(&programs(port, &former));
    let address = address_of(&present);
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;

    place.put_back().await;
    place.resume_agent(&former.node);
    let why = || done(&place, &["why", "ensemble/cache"]);
    let said = format!("member {} is a primary, and not a replica, as is recorded", present.number);
    wait_for("it is known who the primary is", async || why().contains(&said)).await;
    wait_for("the former one runs again", async || programs(port, &former).len() == 1).await;
    writer.goes_on().await;
    let refused = place.run(&["ensemble", "resume", "cache", "--yes"]);
    assert!(code(&refused) != 0 && text(&refused.stderr).contains(&said), "{}", text(&refused.stderr));
    wait_for("clients find it by name", async || {
        let found = place.client().service("default", "cache", None, std::time::Duration::ZERO).await;
        let all = found.map(|service| service.instances).unwrap_or_default();
        let tagged = all.iter().filter(|instance| instance.tags.iter().any(|tag| tag == "primary"));
        tagged.map(|instance| &instance.node).eq([&present.node])
    })
    .await;
    writer.all_is_at(&address, "after a restore of records of before a failover").await;
}

/// Nobody has told the server that its data are older. Its nodes follow later orders, and say so before anything is ordered.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_older_data_orders_no_roles_and_the_primary_takes_writes_all_the_time() {
    let (mut place, _, members) = founded().await;
    let former = primary(&members);
    let (store, older) = (place.path("server/store"), place.path("older"));
    place.kill_server();
    copied(&store, &older);
    place.start_server().await;
    done(&place, &["ensemble", "failover", "cache"]);
    let present = primary(&another_is_primary(&place, 3, &former).await);
    let address = address_of(&present);
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;

    place.kill_server();
    std::fs::remove_dir_all(&store).unwrap();
    copied(&older, &store);
    place.start_server().await;
    // So that the term of its leader is above that of before for certain: orders of an older one are refused by the nodes, which is another story.
    place.kill_server();
    place.start_server().await;
    let why = || done(&place, &["why", "ensemble/cache"]);
    let said = format!("member {} is a primary, and not a replica, as is recorded", present.number);
    let is_known = async || why().contains("follows an order that is later") && why().contains(&said);
    wait_for("it is known that the data are older", is_known).await;
    for _ in 0..5 {
        writer.goes_on().await;
    }
    assert!(done(&place, &["status"]).contains("cache: held"), "{}", done(&place, &["status"]));
    done(&place, &["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    let now = complete(&place, 3).await;
    assert_eq!(now.iter().filter(|member| member.number > 3).count(), 0, "{now:?}");
    assert_eq!(primary(&now).number, present.number);
    writer.all_is_at(&address, "on a server with records of before a failover").await;
}

/// The primary is the one that is recorded, and its replicas are not: it lets them go on following it.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_whose_replicas_are_newer_than_the_backup_takes_writes_all_the_time() {
    let (mut place, _, before) = founded().await;
    place.back_up().await;
    let own = primary(&before);
    let replicas: Vec<_> = before.into_iter().filter(|member| member.number != own.number).collect();
    all_replaced(&place, &replicas).await;
    let address = address_of(&own);
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;

    place.put_back().await;
    let why = || done(&place, &["why", "ensemble/cache"]);
    wait_for("its replicas are told of", async || why().matches("which is not recorded").count() >= 2).await;
    for _ in 0..5 {
        writer.goes_on().await;
    }
    let asked = place.run(&["ensemble", "resume", "cache", "--yes"]);
    assert!(text(&asked.stderr).contains("which is not recorded"), "{}", text(&asked.stderr));
    done(&place, &["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    let now = complete(&place, 3).await;
    assert!(now.iter().all(|member| member.number == own.number || member.number > 3), "{now:?}");
    assert_eq!(primary(&now).number, own.number);
    writer.all_is_at(&address, "after a restore of records of before the replicas").await;
}

/// The control plane knows nothing of it: those nodes tell that have it, and nothing takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_an_ensemble_that_is_newer_than_the_backup_are_told_of_and_in_nobodys_way() {
    let mut place = installed().await;
    place.back_up().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let address = address_of(&primary(&members));
    let writer = Writer::start(vec![address.clone()]);
    let running = || members.iter().map(|member| programs(port, member)).collect::<Vec<_>>();
    let pids = running();

    place.put_back().await;
    wait_for("its nodes tell of them", async || {
        done(&place, &["status"]).contains("cache: 3 members are not recorded")
    })
    .await;
    let (first, own) = (&members[0], members[0].number);
    place.kill_agent(&first.node);
    place.resume_agent(&first.node);
    let failures = text(&place.run(&["get-failures"]).stdout);
    assert_eq!(failures.matches("is not recorded: it runs").count(), 3, "{failures}");
    let described = done(&place, &["node", "get", &first.node]);
    let said = format!("member {own} of ensemble cache on node {} is not recorded: it runs", first.node);
    assert!(described.contains(&said), "{described}");
    let refused = place.run(&["node", "decommission", &first.node, "--yes"]);
    assert!(code(&refused) != 0 && text(&refused.stderr).contains("which runs and is not recorded"));
    let drained = place.run(&["node", "drain", &first.node]);
    assert!(text(&drained.stderr).contains(&said), "{}", text(&drained.stderr));
    done(&place, &["node", "uncordon", &first.node]);
    let events = done(&place, &["events", "--limit", "1000"]);
    assert_eq!(events.matches("ensemble.member_unrecorded").count(), 3, "each is told of once: {events}");

    let refused = place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap_err();
    assert!(refused.to_string().contains("have members of an ensemble cache that is not recorded"));
    writer.goes_on().await;
    assert_eq!(running(), pids, "those that serve are left alone");
    writer.all_is_at(&address, "after a restore of records from before it").await;

    // Its owner has what it needs of it.
    kill(&pids.concat());
    for member in &members {
        let dir = place.path(&format!("{}/data/ensembles/cache", member.node));
        std::fs::rename(&dir, format!("{dir}.kept")).unwrap();
    }
    wait_for("nothing of it is left", async || !done(&place, &["status"]).contains("not recorded")).await;
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    complete(&place, 3).await;
}

/// A node that is newer than the backup joins anew, and tells of the member that it has had all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_anew_after_a_restore_tells_of_its_member_and_keeps_it() {
    let mut place = Setup::new().await;
    place.back_up().await;
    let [port] = free_ports();
    let sections = "addresses = { lo = [\"127.0.34.9\"] }\n\n[ensembles]\n";
    place.start_agent("late-1", sections);
    place.client().set_ensemble("default", "cache", &spec(1, port, false)).await.unwrap();
    let members = complete(&place, 1).await;
    let (member, pids) = (&members[0], programs(port, &members[0]));

    place.kill_server();
    place.kill_agent("late-1");
    place.put_back().await;
    let token = done(&place, &["join-token", "create", "--node", "late-1"]);
    let (token_file, data) = (place.path("late-1/join-token"), place.path("late-1/data"));
    std::fs::write(&token_file, token).unwrap();
    let server = place.url();
    let join = ["agent", "join", "--force", "--name", "late-1", "--server", &server];
    done(&place, &[&join[..], &["--token-file", &token_file, "--data-dir", &data]].concat());
    place.resume_agent("late-1");
    let told = format!("member {} of ensemble cache on node late-1 is not recorded: it runs", member.number);
    let node = async || text(&place.run(&["node", "get", "late-1"]).stdout);
    wait_for("it is told of", async || node().await.contains(&told)).await;
    assert_eq!(programs(port, member), pids, "it was not touched");
}

/// All were started anew after the restore, and nobody says who the primary is: the one that is recorded lacks what was written since the backup, so that
/// a person names one before all take its data.
#[tokio::test(flavor = "multi_thread")]
async fn the_primary_of_a_redis_that_was_started_anew_is_named_before_it_goes_on() {
    let (mut place, port, members) = founded().await;
    let former = primary(&members);
    place.back_up().await;
    done(&place, &["ensemble", "failover", "cache"]);
    let members = another_is_primary(&place, 3, &former).await;
    let present = primary(&members);
    place.kill_server();
    place.kill_agent(&former.node);
    kill(&programs(port, &former));
    let address = address_of(&present);
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;
    let others: Vec<_> = members.iter().filter(|member| member.node != former.node).collect();
    for member in &others {
        place.kill_agent(&member.node);
    }
    for member in &others {
        kill(&programs(port, member));
    }

    place.put_back().await;
    for member in &members {
        place.resume_agent(&member.node);
    }
    let why = || done(&place, &["why", "ensemble/cache"]);
    wait_for("all of them run, and their keys are known", async || {
        let said = why();
        let is_counted = |member: &EnsembleMember| {
            let line = said.lines().find(|line| line.contains(&format!("member {} on node", member.number)));
            line.is_some_and(|line| line.contains("; it has "))
        };
        members.iter().all(is_counted) && said.contains("name the one whose data are to be kept")
    })
    .await;
    assert!(why().contains(&format!("member {} is recorded as the primary", former.number)), "{}", why());
    let refused = place.run(&["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    assert!(
        text(&refused.stderr).contains("no member can say which one is the primary"),
        "{}",
        text(&refused.stderr)
    );
    let to = present.number.to_string();
    done(&place, &["ensemble", "failover", "cache", "--to", &to, "--accept-data-loss", "--yes"]);
    let resumed = place.run(&["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    assert!(text(&resumed.stderr).contains("goes on with members 1, 2, 3"), "{}", text(&resumed.stderr));
    assert_eq!(primary(&complete(&place, 3).await).number, present.number);
    writer.all_is_at(&address, "after all were started anew").await;
}

/// None of the recorded members is there any more, and the one that took over is not recorded: a person names it, and it takes writes all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_all_of_whose_members_were_replaced_goes_on_with_the_one_that_is_named() {
    let (mut place, _, before) = founded().await;
    place.back_up().await;
    let present = primary(&all_replaced(&place, &before).await);
    let address = address_of(&present);
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;

    place.put_back().await;
    let why = || done(&place, &["why", "ensemble/cache"]);
    let told = format!("member {} on node {} is not recorded: redis-cli", present.number, present.node);
    wait_for("it may be named", async || why().contains(&told)).await;
    let resume = ["ensemble", "resume", "cache", "--accept-data-loss", "--yes"];
    let refused = place.run(&resume);
    assert!(
        text(&refused.stderr).contains("name the one whose data are to be kept"),
        "{}",
        text(&refused.stderr)
    );
    let to = present.number.to_string();
    done(&place, &["ensemble", "failover", "cache", "--to", &to, "--accept-data-loss", "--yes"]);
    done(&place, &resume);
    wait_for("it is recorded as the primary", async || {
        let members = place.client().ensemble("default", "cache").await.unwrap().status.unwrap().members;
        let own = members.iter().find(|member| member.number == present.number);
        own.is_some_and(|own| own.role == Some(MemberRole::Primary) && own.node == present.node)
    })
    .await;
    for _ in 0..5 {
        writer.goes_on().await;
    }
    writer.all_is_at(&address, "with the member that was named").await;
}
