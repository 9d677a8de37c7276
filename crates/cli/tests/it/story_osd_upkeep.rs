//! What is done with the OSDs of a Ceph that serves: all are restarted one after the other, the device of one is exchanged, and one is removed.

use bellwether_api::v1::ensemble::osds::{EnsembleOsd, OsdPhase};

use crate::place::{copied, done, text, wait_for};
use crate::story_osd::{NODES, Site, node, osds, programs, serving, why};

/// Each has another process afterwards, and a device that was there before.
pub(crate) async fn all_are_restarted(site: &Site) {
    let place = &site.place;
    let nodes: Vec<String> = (1..=NODES).map(node).collect();
    let before: Vec<Vec<String>> = nodes.iter().map(|node| programs(place, node)).collect();
    done(place, &["ensemble", "restart", "disks", "--yes", "--reason", "another release"]);
    let said = why(place);
    assert!(said.contains(", then OSDs 1, 2, 3, 4"), "{said}");
    wait_for("the members are restarted", async || why(place).contains("left are OSDs")).await;
    for (node, before) in nodes.iter().zip(&before) {
        wait_for(&format!("the OSD on {node} is restarted"), async || {
            let now = programs(place, node);
            now.len() == 1 && now != *before
        })
        .await;
    }
    wait_for("nothing is left", async || !why(place).contains("restarted one after the other")).await;
    osds(place, "all serve", |osds| serving(osds) == NODES).await;
    let told = done(place, &["events", "--about", "ensemble/disks", "--limit", "200"]);
    for number in 0..NODES {
        let restarted = format!("OSD {} (osd.{number}) with device d-{}", number + 1, number + 1);
        let is_told = |line: &str| line.contains("member_restarted") && line.contains(&restarted);
        assert!(told.lines().any(is_told), "{restarted}: {told}");
    }
}

/// What is recorded is that of before the OSD of the fourth host: it serves on, is named, and is recorded again once the newer records are back.
pub(crate) async fn one_that_is_newer_than_the_records_serves_on(site: &mut Site) {
    let place = &mut site.place;
    let (store, newer, config) = (place.path("server/store"), place.path("newer"), place.path("server.toml"));
    let before = programs(place, &node(4));
    assert_eq!(before.len(), 1, "{before:?}");
    place.kill_server();
    copied(&store, &newer);
    place.put_back().await;
    wait_for("it is named", async || why(place).contains("OSDs that are not recorded: osd.3;")).await;
    wait_for("the others are known to be as recorded", async || !why(place).contains("may be older")).await;
    let known = osds(place, "the others serve", |osds| serving(osds) == NODES - 1).await;
    assert!(known.iter().all(|osd| osd.node != node(4)), "{known:?}");
    assert_eq!(programs(place, &node(4)), before);
    let place = &mut site.place;
    place.kill_server();
    std::fs::remove_dir_all(&store).unwrap();
    copied(&newer, &store);
    done(place, &["server", "restore", "--in-place", "--config", &config]);
    place.start_server().await;
    osds(place, "it is recorded again", |osds| serving(osds) == NODES).await;
    assert!(!why(place).contains("not recorded"), "{}", why(place));
    assert_eq!(programs(place, &node(4)), before, "it was not touched");
}

/// The new device has the number in the store of the old one, which is empty by then.
pub(crate) async fn a_device_is_exchanged(site: &Site) {
    let place = &site.place;
    let replace =
        |device: &str| place.run(&["ensemble", "replace-osd", "disks", "osd.2", "--device", device, "--yes"]);
    let refused = replace("d-2");
    assert!(text(&refused.stderr).contains("OSD 2 has, or had, device d-2"), "{refused:?}");
    let refused = replace("sapre");
    assert!(text(&refused.stderr).contains("no node offers device sapre: check the name"), "{refused:?}");
    let refused = replace("used");
    assert!(text(&refused.stderr).contains("is not free: ext4"), "{refused:?}");
    let asked = replace("spare");
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    let said = why(place);
    assert!(said.contains("device spare is not taken: it takes the place of OSD 3"), "{said}");
    osds(place, "the old one is gone", |osds| {
        osds.iter().all(|osd| osd.number != 3 || osd.state == OsdPhase::Removed)
    })
    .await;
    let is_there = |osds: &[EnsembleOsd]| {
        let of = osds.iter().find(|osd| osd.number > 4);
        of.is_some_and(|osd| (osd.device.as_str(), osd.store_number) == ("spare", Some(2)))
            && serving(osds) == NODES
    };
    osds(place, "the new one has its number", is_there).await;
    assert_eq!(programs(place, "disk-3").len(), 1, "the old one is stopped");
    let shown = done(place, &["ensemble", "get", "disks"]);
    assert!(shown.contains("spare") && !shown.contains("d-3"), "{shown}");
    let listed = site.ceph("ceph", &["osd", "ls"]).unwrap();
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
}

/// The device of one that is removed has its label still, and is not taken again, whatever is on it.
pub(crate) async fn one_is_removed(site: &Site) {
    let place = &site.place;
    let missing = place.run(&["ensemble", "remove-osd", "disks", "osd.9", "--yes"]);
    assert!(text(&missing.stderr).contains("osd.9"), "{}", text(&missing.stderr));
    done(place, &["ensemble", "remove-osd", "disks", "osd.1", "--yes"]);
    let is_removed = |osds: &[EnsembleOsd]| {
        osds.iter().any(|osd| osd.number == 2 && osd.state == OsdPhase::Removed && osd.is_up.is_none())
    };
    osds(place, "it is removed", is_removed).await;
    wait_for("it is stopped", async || programs(place, &node(2)).is_empty()).await;
    let listed = site.ceph("ceph", &["osd", "ls"]).unwrap();
    assert_eq!(
        listed.split_whitespace().collect::<Vec<_>>(),
        ["0", "2", "3"],
        "the third one kept its number"
    );
    let said = why(place);
    assert!(said.contains("device d-2 is not taken: OSD 2, which had it, was removed"), "{said}");
}
