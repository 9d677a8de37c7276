//! Puppet and the catalogue: a class takes the address of another machine's database through hiera from the file that the
//! agent writes, and waits for nothing else than that.

use crate::place::{Place, text, wait_for};

const HIERA: &str = "version: 5\ndefaults:\n  datadir: @here@\n  data_hash: yaml_data\nhierarchy:\n\
                     \x20 - name: ours\n    path: common.yaml\n\
                     \x20 - name: discovered\n    path: services.yaml\n";

/// The first of the addresses that the catalogue has for the database is the class's parameter.
const COMMON: &str = "app::database: \"%{lookup('services::mysql::eth0.0')}\"\n";

fn sections(place: &Place) -> String {
    let here = place.path("app-1");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::write(format!("{here}/hiera.yaml"), HIERA.replace("@here@", &here)).unwrap();
    std::fs::write(format!("{here}/common.yaml"), COMMON).unwrap();
    let manifest = format!(
        "class app(String $database) {{\n  file {{ '{here}/app.conf': content => \"database = ${{database}}\\n\" }}\n}}\n\
         include app\n"
    );
    std::fs::write(format!("{here}/site.pp"), manifest).unwrap();
    let dirs = ["confdir", "vardir", "publicdir", "rundir", "logdir"];
    let mut options = dirs.map(|dir| format!("\"--{dir}={here}/puppet/{dir}\"")).to_vec();
    options.push(format!("\"--hiera_config={here}/hiera.yaml\""));
    format!(
        "[[file]]\npath = \"{here}/services.yaml\"\nformat = \"hiera\"\nrequired = [\"mysql\"]\nbefore = [\"app\"]\n\
         debounce = \"100ms\"\n\n\
         [entity.app]\ndynamic = {{ puppet = \"{here}/site.pp\", modulepath = \"/nowhere\", options = [{}] }}\n\
         timeout = \"2m\"\n",
        options.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn puppet_takes_another_machines_address_from_the_file_the_agent_wrote() {
    let mut place = Place::new().await;
    let sections = sections(&place);
    place.start_agent("app-1", &sections);
    let set = place.run(&["entity", "set", "app", "--selector", "name=app-1", "--soak", "0s"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let started = place.run(&["rollout", "start", "app", "v1"]);
    assert!(started.status.success(), "{}", text(&started.stderr));

    // There is no database yet: the part that needs it waits, which is no failure.
    wait_for("puppet waits for the database", async || {
        let why = place.run(&["agent", "status", "--data-dir", &place.path("app-1/data")]);
        text(&why.stdout).contains("services.yaml: waits for 1 addressable of mysql: nobody ever offered it")
    })
    .await;
    assert!(place.run(&["get-failures"]).status.success());
    assert!(!std::fs::exists(place.path("app-1/app.conf")).unwrap());

    // It is registered, and does not serve yet: that is enough to be configured with its address.
    let database = "addresses = { eth0 = [\"10.7.0.5\"] }\n[[service]]\nname = \"mysql\"\nport = 3306\n\
                    [[service.check]]\nname = \"never\"\nexec = [\"false\"]\n";
    place.start_agent("db-1", database);
    wait_for("puppet wrote the address", async || {
        std::fs::read_to_string(place.path("app-1/app.conf"))
            .is_ok_and(|text| text == "database = 10.7.0.5\n")
    })
    .await;
    wait_for("the version is validated", async || {
        let version = place.run(&["local-version", "-e", "app", "--data-dir", &place.path("app-1/data")]);
        text(&version.stdout).trim() == "v1"
    })
    .await;
}
