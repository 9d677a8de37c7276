//! The disk of the primary of a real Redis is full: it takes no writes, which is said, and another member takes over that has all that was written.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::service::Instance;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_redis_ensemble::{NODES, complete, installed, installed_at, primary, spec, write};

/// A small file system for this directory of each node.
struct SmallDisks(Vec<PathBuf>);

impl SmallDisks {
    fn of(place: &Setup, directory: &str) -> Self {
        let dirs = (1..=NODES).map(|number| PathBuf::from(place.path(&format!("mem-{number}/{directory}"))));
        let mount = |dir: PathBuf| {
            std::fs::create_dir_all(&dir).unwrap();
            let mount = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=8m,mode=0700", "none"])
                .arg(&dir)
                .status();
            assert!(mount.unwrap().success(), "root may mount");
            dir
        };
        Self(dirs.map(mount).collect())
    }
}

impl Drop for SmallDisks {
    fn drop(&mut self) {
        self.0.iter().for_each(|dir| drop(Command::new("umount").arg("-l").arg(dir).status()));
    }
}

fn address(member: &EnsembleMember) -> String {
    member.peer_url.clone().unwrap().replace("redis://", "")
}

/// Fills the disk of a primary, until that takes no more writes; answers the file that does it.
async fn filled(place: &Setup, former: &EnsembleMember, directory: &str) -> String {
    let filler = place.path(&format!("{}/{directory}/filler", former.node));
    let mut file = std::fs::File::create(&filler).unwrap();
    let mut number = 1;
    wait_for("it takes no more writes", async || {
        // What is deleted elsewhere on that disk meanwhile is taken, too.
        while file.write_all(&[0; 4096]).is_ok() {}
        number += 1;
        write(&address(former), number).is_none()
    })
    .await;
    filler
}

async fn another_takes_writes(place: &Setup, former: &EnsembleMember) -> EnsembleMember {
    let mut next = None;
    wait_for("another member takes writes, and has those before", async || {
        let status = place.client().ensemble("default", "cache").await.unwrap().status.unwrap();
        let others = status.members.iter().filter(|member| member.number != former.number);
        next = others
            .filter(|member| member.peer_url.is_some())
            .find(|of| write(&address(of), 1_000).is_some())
            .cloned();
        next.is_some()
    })
    .await;
    next.unwrap()
}

/// Its agent can store no order to hand over: what it acknowledged is on its replicas, which leave it.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_whose_agent_is_on_the_full_disk_too_is_left_by_its_replicas() {
    let place = Setup::new().await;
    let _disks = SmallDisks::of(&place, "data");
    let place = installed_at(place);
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let former = primary(&members);
    wait_for("it takes writes", async || write(&address(&former), 1).is_some()).await;

    let filler = filled(&place, &former, "data").await;
    let next = another_takes_writes(&place, &former).await;
    let events = || done(&place, &["events", "--limit", "1000"]);
    wait_for("that is told", async || events().contains("takes over from")).await;
    assert!(!events().contains("has handed over to"), "{}", events());
    // Its agent still says that it is the primary, as it was ordered last.
    wait_for("clients find the new one alone", async || {
        let service = place.client().service("default", "cache", None, Duration::ZERO).await.unwrap();
        let is_primary = |instance: &&Instance| instance.tags.iter().any(|tag| tag == "primary");
        let found = service.instances.iter().filter(is_primary).map(|instance| &instance.node);
        service.instances.len() == 3 && found.eq([&next.node])
    })
    .await;
    let mut redis = RedisClient::connect(address(&next)).unwrap();
    assert_eq!(redis.ask("GET key-1").unwrap(), "1", "what it acknowledged is there");
    std::fs::remove_file(&filler).unwrap();
    let after = complete(&place, 3).await;
    assert_eq!(primary(&after).number, next.number);
    wait_for("the former one has what was written since", async || {
        let found = RedisClient::connect(address(&former)).and_then(|mut redis| redis.ask("GET key-1000"));
        found.is_ok_and(|found| found == "1000")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_on_a_full_disk_is_not_said_to_work_and_hands_over() {
    let place = installed().await;
    let _disks = SmallDisks::of(&place, "data/ensembles");
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let former = primary(&members);
    wait_for("it takes writes", async || write(&address(&former), 1).is_some()).await;

    let filler = filled(&place, &former, "data/ensembles").await;
    wait_for("that is said", async || {
        let why = text(&place.run(&["why", "ensemble/cache"]).stdout);
        let is_listed = done(&place, &["ensemble", "list"]).contains("0 of 3");
        is_listed && why.contains("cannot write to its disk: another one takes over if that is still so in")
    })
    .await;
    let status = done(&place, &["status"]);
    assert!(status.contains("0 of 3 members work"), "{status}");
    let damaged = place.path(&format!("{}/data/ensembles/cache/append-only-file-damaged", former.node));
    assert!(Path::new(&damaged).exists(), "the next agent has to know it, too");

    let next = another_takes_writes(&place, &former).await;
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("has handed over to") && !events.contains("takes over from"), "{events}");
    std::fs::remove_file(&filler).unwrap();
    let after = complete(&place, 3).await;
    assert_eq!(primary(&after).number, next.number);
    // What it wrote to a full disk cannot be read back, as Redis finds when it is started again.
    wait_for("it has written its data anew", async || !Path::new(&damaged).exists()).await;
    let restart = ["ensemble", "restart", "cache", "--yes"];
    done(&place, &restart);
    wait_for("all have loaded their data", async || {
        done(&place, &["events", "--limit", "1000"]).contains("ensemble.restarted")
    })
    .await;
    complete(&place, 3).await;
}
