//! Puppet and the catalogue: a class takes the address of another machine's service through hiera from the file that the
//! agent writes, and waits for nothing else than that: whichever machine comes first, and also when both wait for each other.

use crate::place::{Setup, text, wait_for};

const HIERA: &str = "version: 5\ndefaults:\n  datadir: @here@\n  data_hash: yaml_data\nhierarchy:\n\
                     \x20 - name: ours\n    path: common.yaml\n\
                     \x20 - name: discovered\n    path: services.yaml\n";

/// A database that is registered and never serves: that is enough to be configured with its address.
const DATABASE: &str = "addresses = { eth0 = [\"10.7.0.5\"] }\n[[service]]\nname = \"mysql\"\nport = 3306\n\
                        [[service.check]]\nname = \"never\"\nexec = [\"false\"]\n";

/// A machine whose entity is configured by Puppet with the address of another's service.
struct Machine {
    name: &'static str,
    entity: &'static str,
    /// The service whose address its class takes.
    wants: &'static str,
}

const APP: Machine = Machine { name: "app-1", entity: "app", wants: "mysql" };

impl Machine {
    /// Writes what Puppet reads, and answers the agent's sections, with `more` for the entity.
    fn sections(&self, place: &Setup, more: &str) -> String {
        let (here, entity, wants) = (place.path(self.name), self.entity, self.wants);
        std::fs::create_dir_all(&here).unwrap();
        std::fs::write(format!("{here}/hiera.yaml"), HIERA.replace("@here@", &here)).unwrap();
        // The first of the addresses that the catalogue has for the service is the class's parameter.
        let common = format!("{entity}::peer: \"%{{lookup('services::{wants}::eth0.0')}}\"\n");
        std::fs::write(format!("{here}/common.yaml"), common).unwrap();
        let manifest = format!(
            "class {entity}(String $peer) {{\n\
             \x20 file {{ '{here}/{entity}.conf': content => \"{wants} = ${{peer}}\\n\" }}\n}}\n\
             include {entity}\n"
        );
        std::fs::write(format!("{here}/site.pp"), manifest).unwrap();
        let base = format!(
            "file {{ '{here}/{entity}.base': content => \"${{facts['bellwether_version']}}\\n\" }}\n"
        );
        std::fs::write(format!("{here}/base.pp"), base).unwrap();
        format!(
            "[[file]]\npath = \"{here}/services.yaml\"\nformat = \"hiera\"\nrequired = [\"{wants}\"]\n\
             before = [\"{entity}\"]\ndebounce = \"100ms\"\n\n\
             [entity.{entity}]\nstatic = {}\ndynamic = {}\ntimeout = \"2m\"\n{more}",
            puppet(&here, "base"),
            puppet(&here, "site")
        )
    }

    /// Has the machine carry version v1 of its entity.
    fn roll_out(&self, place: &Setup) {
        let selector = format!("name={}", self.name);
        for args in [
            &["entity", "set", self.entity, "--selector", &selector, "--soak", "0s", "--deadline", "5m"][..],
            &["rollout", "start", self.entity, "v1"][..],
        ] {
            let done = place.run(args);
            assert!(done.status.success(), "{}", text(&done.stderr));
        }
    }

    /// What its agent says of itself.
    fn status(&self, place: &Setup) -> String {
        let data = place.path(&format!("{}/data", self.name));
        text(&place.run(&["agent", "status", "--data-dir", &data]).stdout)
    }

    fn written(&self, place: &Setup) -> Option<String> {
        std::fs::read_to_string(place.path(&format!("{}/{}.conf", self.name, self.entity))).ok()
    }

    /// Waits until Puppet wrote the other's address and the version was validated; nothing failed on the way.
    async fn is_configured_with(&self, place: &Setup, address: &str) {
        let expected = format!("{} = {address}\n", self.wants);
        wait_for(&format!("puppet on {} wrote the address", self.name), async || {
            self.written(place).as_ref() == Some(&expected)
        })
        .await;
        wait_for(&format!("{} has validated it", self.name), async || {
            let data = place.path(&format!("{}/data", self.name));
            let version = place.run(&["local-version", "-e", self.entity, "--data-dir", &data]);
            text(&version.stdout).trim() == "v1"
        })
        .await;
        // The check of an instance may never pass: what is configured must not have failed.
        let failures = text(&place.run(&["get-failures"]).stdout);
        let mut failed = failures.lines().skip(1).filter(|line| !line.contains("service/"));
        assert_eq!(failed.next(), None, "{failures}");
    }
}

/// A manifest of a machine as a runner: with directories of its own, so that machines share nothing.
fn puppet(here: &str, manifest: &str) -> String {
    let dirs = ["confdir", "vardir", "publicdir", "rundir", "logdir"];
    let options = dirs.map(|dir| format!("\"--{dir}={here}/puppet/{dir}\""));
    format!(
        "{{ puppet = \"{here}/{manifest}.pp\", modulepath = \"/nowhere\", hiera_config = \"{here}/hiera.yaml\", \
         options = [{}] }}",
        options.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn puppet_waits_for_a_database_that_comes_later_and_takes_its_address_then() {
    let mut place = Setup::new().await;
    let sections = APP.sections(&place, "");
    place.start_agent(APP.name, &sections);
    APP.roll_out(&place);

    // There is no database yet: the part that needs it waits, which is no failure. The other part has run.
    wait_for("puppet waits for the database", async || {
        APP.status(&place)
            .contains("services.yaml: waiting for 1 addressable of mysql: no node ever registered it")
    })
    .await;
    assert!(place.run(&["get-failures"]).status.success());
    assert_eq!(std::fs::read_to_string(place.path("app-1/app.base")).unwrap(), "v1\n");
    assert_eq!(APP.written(&place), None);

    place.start_agent("db-1", DATABASE);
    APP.is_configured_with(&place, "10.7.0.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn puppet_waits_for_nothing_when_the_database_was_there_before() {
    let mut place = Setup::new().await;
    place.start_agent("db-1", DATABASE);
    wait_for("the database is registered", async || {
        text(&place.run(&["service", "get", "mysql"]).stdout).contains("10.7.0.5")
    })
    .await;
    let sections = APP.sections(&place, "");
    place.start_agent(APP.name, &sections);
    APP.roll_out(&place);
    APP.is_configured_with(&place, "10.7.0.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_whose_puppet_wants_each_others_address_are_both_configured() {
    let mut place = Setup::new().await;
    let machines = [
        (Machine { name: "lb-1", entity: "lb", wants: "shop" }, "10.7.0.1"),
        (Machine { name: "shop-1", entity: "shop", wants: "lb" }, "10.7.0.2"),
    ];
    for (machine, address) in &machines {
        let (here, entity, wants) = (place.path(machine.name), machine.entity, machine.wants);
        // Each is registered when its own base was laid, and serves only once it knows the other.
        let more = format!(
            "needs = [{{ service = \"{wants}\", level = \"addressable\" }}]\n\
             [[service]]\nname = \"{entity}\"\nentity = \"{entity}\"\nport = 80\n[[service.check]]\nname = \"configured\"\n\
             exec = [\"test\", \"-e\", \"{here}/{entity}.conf\"]\ninterval = \"100ms\"\nfall = 1\nrise = 1\n"
        );
        let sections =
            format!("addresses = {{ eth0 = [\"{address}\"] }}\n{}", machine.sections(&place, &more));
        place.start_agent(machine.name, &sections);
    }
    let [(lb, lb_at), (shop, shop_at)] = machines;
    lb.roll_out(&place);
    wait_for("the load balancer waits for the shop, and is there itself", async || {
        lb.status(&place).contains("1 addressable of shop: no node ever registered it")
            && text(&place.run(&["service", "get", "lb"]).stdout).contains(lb_at)
    })
    .await;
    assert_eq!(lb.written(&place), None);

    // Neither serves before it is configured, and each is configured with the address of the other.
    shop.roll_out(&place);
    lb.is_configured_with(&place, shop_at).await;
    shop.is_configured_with(&place, lb_at).await;
    for service in ["lb", "shop"] {
        let served = place.run(&["wait", "--service", service, "--functional", "1", "--timeout", "60s"]);
        assert!(served.status.success(), "{}", text(&served.stderr));
    }
    let events = text(&place.run(&["events", "-o", "json"]).stdout);
    assert!(!events.contains("wait.cycle_started"), "{events}");
}
