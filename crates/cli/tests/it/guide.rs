//! The README and the guide, followed by a machine: every shell block is run as it stands, on ports and in a home of its own.

use std::process::{Command, Output, Stdio};

use crate::place::{PROGRAM, free_ports, text};

/// The ports that documents name.
const KNOWN_PORTS: [&str; 18] = [
    "7420", "7421", "7430", "7440", "8600", "8500", "2379", "2380", "2389", "2390", "2399", "2400", "2381",
    "2382", "2383", "2391", "2392", "2393",
];

/// The shell blocks of a document, or of one section of it.
fn blocks(document: &str, direction: Option<&str>) -> String {
    let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let section = match direction {
        Some(direction) => text.split(direction).nth(1).unwrap().split("\n##").next().unwrap(),
        None => &text,
    };
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

/// Runs a script in a home of its own, with its well-known ports and places replaced by free ones. The first command that
/// fails ends it; whatever it started ends with it.
fn follow(script: &str, home: &tempfile::TempDir) -> Output {
    let here = home.path().display().to_string();
    // By marks, as a free port may have the digits of a well-known one in it.
    let marks: [String; KNOWN_PORTS.len()] = std::array::from_fn(|index| format!("<port {index}>"));
    let marked = KNOWN_PORTS.iter().zip(&marks);
    let script = marked.fold(script.to_owned(), |script, (port, mark)| script.replace(port, mark));
    let free = marks.iter().zip(free_ports::<18>());
    let script = free.fold(script, |script, (mark, free)| script.replace(mark, &free.to_string()));
    let script = script
        .replace("/tmp/bellwether-dev", &format!("{here}/dev"))
        .replace("/tmp/join-token", &format!("{here}/join-token"))
        .replace("/tmp/web-7", &format!("{here}/web-7"))
        .replace("/tmp/fleet", &format!("{here}/fleet"))
        .replace("/tmp/simulate", &format!("{here}/simulate"));
    let script = format!(
        "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\nmkdir -p \"$HOME/bellwether\"\n{script}"
    );
    let bin = std::path::Path::new(PROGRAM).parent().unwrap().display().to_string();
    let output = Command::new("timeout")
        .args(["-s", "TERM", "120", "bash", "-c", &script])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Starts `dev` as the README does, waits for its greeting, then runs the script.
fn follow_beside_dev(script: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    follow(&format!("{}{script}", dev()), &home)
}

/// Starts `dev` as the README does, and waits for its greeting, as a reader does.
fn dev() -> &'static str {
    r#"bellwether dev --data-dir /tmp/bellwether-dev --listen 127.0.0.1:7420 --plain 127.0.0.1:7421 --dns 127.0.0.1:8600 >"$HOME/greeting" &
until grep -qs Ctrl-C "$HOME/greeting"; do sleep 0.1; done
"#
}

fn dev_section() -> String {
    let script = blocks("README.md", Some("### A server and a node in one terminal"));
    assert!(script.starts_with("bellwether dev --data-dir /tmp/bellwether-dev\n"), "{script}");
    script.lines().skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_installation_in_the_readme_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let script = blocks("README.md", Some("### An installation"));
    assert!(script.contains("bellwether rollout start web broken"), "the section lost its point");
    let script = script.replace("bellwether server run ", "bellwether server run --listen 127.0.0.1:7420 ");
    let output = follow(&script, &home);
    let said = text(&output.stdout);
    assert!(said.contains("exit code 1"), "the broken version was not refused:\n{said}");
    let version = std::fs::read_to_string(home.path().join("bellwether/web.version")).unwrap();
    assert_eq!(version.trim(), "v1", "{said}");
}

#[test]
fn the_first_steps_in_the_readme_work_as_they_stand() {
    let said = text(&follow_beside_dev(&dev_section()).stdout);
    assert!(said.contains("v1 is last known good"), "{said}");
}

#[test]
fn the_page_on_rollouts_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/rollouts.md", None)).stdout);
    assert!(said.contains("v3 is last known good"), "{said}");
}

/// Follows a page that starts `dev` itself, after it wrote its configuration. Answers what was printed.
fn follow_around_dev(page: &str, home: &tempfile::TempDir) -> String {
    let script = blocks(page, None);
    let (before, after) = script.split_once("bellwether dev --data-dir /tmp/bellwether-dev\n").unwrap();
    text(&follow(&format!("{before}\n{}{after}", dev()), home).stdout)
}

#[test]
fn the_page_on_configuration_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let said = follow_around_dev("docs/guide/configuration.md", &home);
    assert!(said.contains("greeting@2 is last known good") && said.contains("exit code 6"), "{said}");
    assert!(said.contains(": not an integer"), "{said}");
    let hellos = std::fs::read_to_string(home.path().join("dev/etc/hellos")).unwrap();
    assert_eq!(hellos, "hello from dev-1\nhello from dev-1\n", "{said}");
    let file = std::fs::read_to_string(home.path().join("dev/etc/greeting.conf")).unwrap();
    assert_eq!(file, "# greeting@2 on dev-1\ngreeting = good day\nworkers = 16\n", "{said}");
}

#[test]
fn the_page_on_files_works_as_it_stands() {
    let script = blocks("docs/guide/files.md", None);
    let (before, after) = script.split_once("bellwether dev --data-dir /tmp/bellwether-dev\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&format!("{before}\n{}{after}", dev()), &home).stdout);
    for part in
        ["waiting for 1 functional of shop: no node ever registered it", "; # dev-1", "services::shop::"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(said.contains("SERVICE_SHOP_COUNT=1"), "{said}");
    let reloads = std::fs::read_to_string(home.path().join("dev/etc/reloads")).unwrap();
    assert_eq!(reloads, "read\n", "{said}");
}

#[test]
fn the_page_on_apply_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/apply.md", None)).stdout);
    for part in [
        "exit code 1: there are differences",
        "entity/app created, rollout to v1 requested",
        "entity/app unchanged",
        "version: v1 → v2",
        "v2 is last known good",
        "slot/reboot pruned",
        "nothing differs",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn the_page_on_freezes_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/freezes.md", None)).stdout);
    for part in [
        "frozen is last known good",
        "smoke in the server room",
        "exit code 4: it waits for a person",
        "approved is last known good",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn the_page_on_discovery_works_as_it_stands() {
    let script = blocks("docs/guide/discovery.md", None);
    let (before, after) = script.split_once("bellwether dev --data-dir /tmp/bellwether-dev\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&format!("{before}\n{}{after}", dev()), &home).stdout).to_lowercase();
    for part in ["{\"control\":[\"dev\"]}", "x-consul-index: "] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(said.matches("\"__meta_bellwether_tag_dev\":\"true\"").count() == 2, "{said}");
}

#[test]
fn the_page_on_secrets_works_as_it_stands() {
    let script = blocks("docs/guide/secrets.md", None);
    let (before, after) = script.split_once("bellwether dev --data-dir /tmp/bellwether-dev\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&format!("{before}\n{}{after}", dev()), &home).stdout);
    assert!(said.contains("requirepass correct horse") && said.contains("-rw-------"), "{said}");
    assert!(said.contains("***") && said.contains("used by      profile/redis/db"), "{said}");
    assert!(said.lines().any(|line| line == "battery staple 2"), "{said}");
    assert!(said.contains("active"), "{said}");
}

#[test]
fn the_page_on_workflows_works_as_it_stands() {
    let output = follow_beside_dev(&blocks("docs/guide/workflows.md", None));
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("would run 1 task on 1 node"), "{told}");
    assert!(said.contains("succeeded  1 of 1"), "{said}");
}

#[test]
fn the_page_on_clusters_works_as_it_stands() {
    let output = follow_beside_dev(&blocks("docs/guide/clusters.md", None));
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("cluster shop: created, revision 1, 1 member, profile shop"), "{told}");
    assert!(said.contains("dev-1 has led for"), "{said}");
}

#[test]
fn the_page_of_clusters_by_example_works_as_it_stands() {
    let output = follow_beside_dev(&blocks("docs/guide/cluster-examples.md", None));
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("cluster k3s: created, revision 1, 20 members"), "{told}");
    let joined = said.lines().find(|line| line.contains("joined https://n-")).unwrap_or_default();
    assert!(joined.trim_start().starts_with("19 "), "all workers joined one leader: {said}");
    let numbers: Vec<&str> = said.lines().map(str::trim).filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(
        numbers.get(..3),
        Some(&["19", "1", "19"][..]),
        "the jobs of the workers, who won and who lost: {said}"
    );
    assert_eq!(said.lines().filter(|line| line.contains(", started, n-")).count(), 3, "{said}");
}

#[test]
fn the_page_on_filters_works_as_it_stands() {
    let output = follow_beside_dev(&blocks("docs/guide/filters.md", None));
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(
        said.matches("@young and not cordoned").count() == 2 && said.contains("machines of this year"),
        "{said}"
    );
    assert!(!said.contains("rolled_back"), "{said}");
    // By its name with one, by what it lacks with the other.
    assert_eq!(said.lines().filter(|line| line.starts_with("dev-1")).count(), 2, "{said}");
    assert!(noted.contains("filter ready: revision 1") && noted.contains("dev-1"), "{noted}");
}

#[test]
fn the_page_on_slots_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/slots.md", None)).stdout);
    let refused = "\"value\":\"cannot give slot reboot to machine-2: 1 of 1 held, by machine-1\"}status 409";
    assert!(said.contains(refused), "{said}");
    assert!(said.matches("status 200").count() == 3 && said.contains("its disk is broken"), "{said}");
}

#[test]
fn the_page_on_locks_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/locks.md", None)).stdout);
    for line in
        ["migrate, number 1", "exit code 7", "exit code 3: not now", "exit code 6: its command was stopped"]
    {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
}

#[test]
fn the_page_on_nodes_works_as_it_stands() {
    let script = format!("{}\n{}", dev_section(), blocks("docs/guide/nodes.md", None));
    let said = text(&follow_beside_dev(&script).stdout);
    assert!(said.contains("web-7") && said.contains("disk is full"), "{said}");
}

#[test]
fn the_page_on_access_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/access.md", None)).stdout);
    for part in [
        "update:/start rollout/web-* in shop",
        "token ci has deployer; it may:",
        "yes: role deployer has the claim",
        "no: no claim of this token allows update:/abort rollout/web-1 in shop\nexit code 1: no",
        "built in",
        "POST /v1/tokens (update token): status 200",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_page_on_facts_works_as_it_stands() {
    let output = follow_beside_dev(&blocks("docs/guide/facts.md", None));
    let (said, notes) = (text(&output.stdout), text(&output.stderr));
    assert!(
        said.contains("fact      cpus=") && notes.contains("node dev-1: rescan 1 requested"),
        "{said}{notes}"
    );
}

#[test]
fn the_page_on_data_stores_works_as_it_stands() {
    let said = follow_around_dev("docs/guide/probes.md", &tempfile::tempdir().unwrap());
    for part in ["shard 0: primary dev-1", "store     db up since", "store.up"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_page_on_reactions_works_as_it_stands() {
    let said = follow_around_dev("docs/guide/reactions.md", &tempfile::tempdir().unwrap());
    for part in ["started run repair-", "reaction.fired"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_page_on_sinks_works_as_it_stands() {
    let said = follow_around_dev("docs/guide/sinks.md", &tempfile::tempdir().unwrap());
    for part in
        ["delivered after", "bellwether.filter.changed filter/databases", "filter/caches", "undelivered"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_page_on_the_api_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/api.md", None)).stdout);
    assert!(said.contains("\"code\":\"not_found\""), "{said}");
}

#[test]
fn the_page_on_external_targets_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/external.md", None)).stdout);
    let answer = "{\"targets\":[{\"name\":\"eu/shop-1\",\"version\":\"v1\",\"assignment\":1},{\"name\":\"eu/shop-2\"}],\"status\":{\"state\":\"in_progress\"},\"rolling\":\"v1\"}";
    assert!(said.contains(answer), "{said}");
    assert!(said.contains("\"running\":\"v1\"") && !said.contains("problem"), "{said}");
}

#[test]
fn the_page_on_managers_of_your_own_works_as_it_stands() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/");
    let script = blocks("docs/guide/outside-managers.md", None).replace("docs/examples/", examples);
    let said = text(&follow_beside_dev(&script).stdout);
    let lines =
        ["wrote with number 1: the primary is dev-1, was None", "/fence is 1, not 0", "released the lock"];
    assert!(lines.iter().all(|line| said.contains(line)), "{said}");
}

#[test]
fn the_page_on_services_works_as_it_stands() {
    let said = text(&follow_beside_dev(&blocks("docs/guide/services.md", None)).stdout);
    for part in ["no update yet", "the shop is open", "127.0.0.1", "out of bread", "exit code 3: not in time"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert_eq!(
        said.matches("\n127.0.0.1\n").count(),
        1,
        "it is found while it serves, and not after:\n{said}"
    );
}

#[test]
fn the_page_on_the_server_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let script = blocks("docs/guide/server.md", None);
    let script = script.replace("bellwether server run ", "bellwether server run --listen 127.0.0.1:7420 ");
    let said = text(&follow(&script, &home).stdout);
    assert!(said.contains("bellwether_is_leader 1"), "{said}");
}

#[test]
fn the_page_on_upgrading_agents_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&blocks("docs/guide/upgrade-agents.md", None), &home).stdout);
    assert!(said.contains("v1 is last known good") && said.contains("v2 is last known good"), "{said}");
    let running = said.lines().find(|line| line.starts_with("running: ")).unwrap();
    assert!(running.ends_with("/fleet/node/v2/bellwether"), "{running}");
    assert!(said.contains("exit code 1") && said.contains("rollout.rolled_back"), "{said}");
    let (_, after) = said.split_once("service.passing").unwrap();
    assert!(!after.contains("service.") && !said.contains("node.unreachable"), "{said}");
}

#[test]
fn the_page_on_several_servers_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&blocks("docs/guide/servers.md", None), &home).stdout);
    for part in
        ["v1 is last known good", "v2 is last known good", "v3 is last known good", "store      etcd 3."]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let running = std::fs::read_to_string(home.path().join("bellwether/web.version")).unwrap();
    assert_eq!(running.trim(), "v3", "{said}");
}

#[test]
fn the_page_on_simulate_works_as_it_stands_and_shows_what_it_draws() {
    let home = tempfile::tempdir().unwrap();
    let said = text(&follow(&blocks("docs/guide/simulate.md", None), &home).stdout);
    assert!(said.contains("patient") && said.contains("rolled back"), "{said}");
    let drawn = std::fs::read_to_string(home.path().join("simulate.svg")).unwrap();
    let shown = format!("{}/../../docs/guide/simulate.svg", env!("CARGO_MANIFEST_DIR"));
    let shown = std::fs::read_to_string(shown).unwrap();
    assert!(drawn == shown, "docs/guide/simulate.svg is not what the page's command draws; draw it again");
}
