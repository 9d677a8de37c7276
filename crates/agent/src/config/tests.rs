use std::os::unix::fs::PermissionsExt;

use super::files::FileForm;
use super::recipe::{Probe, Runner, UnitAction};
use super::*;

const AGENT: &str = "[agent]\nname = \"web-1\"\nserver = \"https://cp:7420\"\n";

#[expect(clippy::unwrap_in_result, reason = "only the configuration may be refused here")]
fn load(text: &str) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path)
}

#[test]
fn a_configuration_that_others_can_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.toml");
    std::fs::write(&path, AGENT).unwrap();
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o666);
    let refused = Config::load(&path).unwrap_err().to_string();
    assert!(refused.ends_with("every user can write it (mode 0666): chmod o-w it"), "{refused}");
    mode(0o664);
    Config::load(&path).unwrap();
    let of_directory =
        |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    of_directory(0o777);
    let refused = Config::load(&path).unwrap_err().to_string();
    assert!(
        refused.contains("every user can write its directory") && refused.ends_with("o-w that"),
        "{refused}"
    );
    // Where nobody can replace the files of others, as in /tmp.
    of_directory(0o1777);
    Config::load(&path).unwrap();
    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        let link = dir.path().join("link.toml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Config::load(&link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
        let refused = Config::load(&link).unwrap_err().to_string();
        assert!(refused.contains("its owner is user 65534, neither root"), "{refused}");
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let refused = Config::load(&path).unwrap_err().to_string();
        assert!(refused.contains("its owner is user 65534, neither root"), "{refused}");
    }
}

#[test]
fn a_whole_configuration_reads() {
    let text = format!(
        "{AGENT}\n{}",
        r#"
        [entity.web]
        static = ["/bin/install", "a b"]
        dynamic = [["one"], { argv = ["two"], env = { A = "1" } }]
        validate = "/etc/validate.d"
        timeout = "1m"
        user = "app"
        env = { MODE = "x" }
        [entity.web.process]
        argv = ["/srv/web", "--version", "{version}"]
        user = "980"
        [[entity.web.check]]
        name = "health"
        http = "http://127.0.0.1:8080/health?deep=1"
        [[entity.web.check]]
        name = "port"
        tcp = "127.0.0.1:8080"
        interval = "1s"
        rise = 1
        "#
    );
    let config = load(&text).unwrap();
    let recipe = config.entities.values().next().unwrap();
    let user = |text: &str| crate::users::UserName::parse(text).ok();
    assert_eq!(
        (recipe.user.clone(), recipe.process.as_ref().unwrap().user.clone()),
        (user("app"), user("980"))
    );
    assert!(matches!(&recipe.statics[0], Runner::Exec(command) if command.argv == ["/bin/install", "a b"]));
    assert_eq!(recipe.dynamics.len(), 2);
    assert!(matches!(&recipe.dynamics[1], Runner::Exec(command) if command.env.len() == 2));
    assert!(matches!(&recipe.validation[0], Runner::Directory(dir) if dir.path.ends_with("validate.d")));
    assert_eq!(recipe.process.as_ref().unwrap().stop_timeout, recipe::DEFAULT_STOP_TIMEOUT);
    assert_eq!(recipe.validate_every, Some(recipe::DEFAULT_VALIDATE_EVERY));
    let health = &recipe.checks.values().next().unwrap().probe;
    let (authority, path) = ("127.0.0.1:8080".to_owned(), "/health?deep=1".to_owned());
    assert_eq!(*health, Probe::Http { authority, path, status: Some(200) });
    assert_eq!(config.services_on_exit, OnExit::Leave);
}

#[test]
fn a_node_name_is_used_in_lower_case_and_has_no_underscore() {
    let named = |name: &str| load(&AGENT.replace("web-1", name));
    assert_eq!(named("Web-1.Example.org").unwrap().name.as_str(), "web-1.example.org");
    let refusal = named("web_1").unwrap_err().to_string();
    assert!(refusal.contains("agent.name") && refusal.contains("use \"web-1\""), "{refusal}");
}

#[test]
fn limits_read_and_a_quota_that_cannot_be_enforced_is_refused() {
    let (there, not_there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(there.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
    let with = |dir: &std::path::Path, limits: &str| {
        load(&format!("{AGENT}cgroup = \"{}/runs\"\n[entity.web]\nstatic = [\"x\"]\n{limits}", dir.display()))
    };
    let all = "memory_max = \"1G\"\ncpu_quota = \"50%\"\nnofile = 4096";
    let config = with(there.path(), all).unwrap();
    let limits = config.entities.values().next().unwrap().limits.clone().unwrap();
    assert_eq!((limits.memory_max_bytes, limits.cpu_quota_percent), (Some(1 << 30), Some(50)));
    assert_eq!((limits.nofile, limits.cgroup), (Some(4_096), there.path().join("runs")));
    let refusal = with(not_there.path(), all).unwrap_err().to_string();
    assert!(
        refusal.contains("entity.web.cpu_quota") && refusal.contains("there is no cgroup v2 at"),
        "{refusal}"
    );
    for (wrong, reason) in [
        ("memory_max = \"1.5G\"", "is not a size like"),
        ("cpu_quota = \"half\"", "is not a share of one processor"),
        ("nofile = 3", "less than 16"),
    ] {
        let refusal = with(there.path(), wrong).unwrap_err().to_string();
        assert!(refusal.contains(reason) && refusal.contains("entity.web."), "{wrong}: {refusal}");
    }
    // The memory and the files of one process can be limited everywhere.
    let config = with(not_there.path(), "memory_max = \"1G\"\nnofile = 4096").unwrap();
    assert!(config.entities.values().next().unwrap().limits.is_some());
    assert_eq!(with(there.path(), "").unwrap().entities.values().next().unwrap().limits, None);
}

#[test]
fn an_invalid_probe_is_refused_with_its_file_and_key() {
    let cases = [
        ("[probe.db]", "use probe.db in"),
        ("[probe.db]\nredis = \"a:1\"\netcd = \"http://a:1\"", "name one of etcd, redis"),
        ("[probe.Db]\nredis = \"a:1\"", "use probe.Db in"),
        ("[probe.db]\nredis = \"a\"", "is not HOST:PORT"),
        ("[probe.db]\nredis = \"a:1\"\ncolour = 1", "unknown field `colour`"),
        ("[probe.db]\nredis = \"a:1\"\ninterval = \"1ms\"", "at least 100ms"),
        ("[probe.db]\nredis = \"a:1\"\nca_file = \"/a\"", "a probe of this store does not read it"),
        ("[probe.db]\nredis = \"a:1\"\npassword_file = \"a\"", "does not begin with /"),
        ("[probe.db]\netcd = \"a:1\"", "write an address like"),
        ("[probe.db]\netcd = \"http://a:1\"\nuser = \"a\"", "a probe of etcd does not read it"),
        ("[probe.db]\netcd = \"http://a:1\"\nca_file = \"/a\"", "write https"),
        ("[probe.db]\netcd = \"https://a:1\"", "name the file of the authority to trust"),
        ("[probe.db]\netcd = \"https://a:1\"\nca_file = \"/a\"\ncert_file = \"/b\"", "belong together"),
        ("[probe.db]\nexec = []", "a command needs a program"),
        ("[probe.db]\nzookeeper = \"a:1\"\nuser = \"a\"", "does not read it"),
        ("[probe.db]\nzookeeper = \"a:1\"\nhandover = true", "a probe of zookeeper cannot hand over"),
        ("[probe.db]\npostgresql = \"a:1\"\nhandover = true", "use probe.db.handover in"),
        ("[probe.db]\nexec = [\"a\"]\nhandover = true", "only those of etcd and redis can"),
        ("[probe.db]\nsentinel = \"a:1\"\nhandover = true", "a probe of sentinel cannot hand over"),
        ("[probe.db]\nredis = \"a:1\"\nhandover = \"yes\"", "expected a boolean"),
    ];
    for (text, reason) in cases {
        let refusal = load(&format!("{AGENT}{text}\n")).unwrap_err().to_string();
        assert!(refusal.contains(reason) && refusal.contains("agent.toml"), "{text}: {refusal}");
    }
}

#[test]
fn an_invalid_value_is_refused_with_its_file_and_key() {
    let cases = [
        ("nme = 1", "unknown field `nme`"),
        ("namespace = \"A\"", "use agent.namespace in"),
        ("data_dir = \"here\"", "does not begin with /"),
        ("services_on_exit = \"kill\"", "neither \"leave\" nor \"stop\""),
        ("[entity.web]\nstatc = []", "unknown field `statc`"),
        ("[entity.Web]", "use entity.Web in"),
        ("[entity.web]\nstatic = \"make install\"", "there is no shell"),
        ("[entity.web]\nstatic = []", "use entity.web.static in"),
        ("[entity.web]\ndynamic = [[\"./run\"]]", "relative path"),
        ("[entity.web]\ndynamic = [{ argv = [\"a\"], cwd = \"/\" }]", "unknown key \"cwd\""),
        ("[entity.web]\ntimeout = \"5\"", "use entity.web.timeout in"),
        ("[entity.web]\ntimeout = \"0\"", "longer than zero"),
        ("[entity.web]\nvalidate_every = \"1m\"", "the entity has no validate"),
        ("[entity.web]\nenv = { BELLWETHER_NODE = \"x\" }", "set by the agent itself"),
        ("[[entity.web.check]]\nname = \"a\"", "name one of exec, http or tcp"),
        ("[[entity.web.check]]\nname = \"a\"\ntcp = \"x:1\"\nexec = [\"x\"]", "name only one of"),
        ("[[entity.web.check]]\nname = \"a\"\nhttp = \"https://x/\"", "without TLS"),
        ("[[entity.web.check]]\nname = \"a\"\ntcp = \"x\"", "is not host:port"),
        ("[[entity.web.check]]\nname = \"a\"\ntcp = \"x:1\"\nfall = 0", "is not from 1 to 100"),
        ("[[entity.web.check]]\nname = \"a\"\ntcp = \"x:1\"\nstatus = 200", "only an http check"),
    ];
    for (text, reason) in cases {
        let refusal = load(&format!("{AGENT}{text}\n")).unwrap_err().to_string();
        assert!(refusal.contains(reason) && refusal.contains("agent.toml"), "{text}: {refusal}");
    }
    let files = [
        ("path = \"etc/a\"\ntext = \"x\"", "does not begin with /"),
        ("path = \"/etc/../a\"\ntext = \"x\"", "without .. in it"),
        ("path = \"/etc/\"\ntext = \"x\"", "without .. in it"),
        ("path = \"/etc/a\"", "name one of template or text"),
        ("path = \"/etc/a\"\ntext = \"x\"\ntemplate = \"/t\"", "name only one of"),
        ("path = \"/etc/a\"\ntemplate = \"t\"", "does not begin with /"),
        ("path = \"/etc/a\"\ntext = \"x\"\nmode = \"rw\"", "write it in octal"),
        ("path = \"/etc/a\"\ntext = \"x\"\nreload = []", "a command needs a program"),
        (
            "path = \"/etc/a\"\ntext = \"x\"\n[[entity.db.file]]\npath = \"/etc/a\"\ntext = \"\"",
            "writes this file already",
        ),
    ];
    for (text, reason) in files {
        let refusal = load(&format!("{AGENT}[[entity.web.file]]\n{text}\n")).unwrap_err().to_string();
        assert!(refusal.contains(reason) && refusal.contains("entity."), "{text}: {refusal}");
    }
    let actions = [
        ("[entity.web]\naction = \"restart\"", "there is no [action.restart]; there are:"),
        ("[action.restart]\nrun = []", "use action.restart.run in"),
        (
            "[action.restart]\nrun = [\"a\"]\n[entity.web]\naction = \"restart\"\nstatic = [\"a\"]",
            "no other keys",
        ),
    ];
    for (text, reason) in actions {
        let refusal = load(&format!("{AGENT}{text}\n")).unwrap_err().to_string();
        assert!(refusal.contains(reason), "{text}: {refusal}");
    }
    let refusal = load("[agent]\nname = \"a\"\nserver = \"http://x\"").unwrap_err().to_string();
    assert!(refusal.contains("does not begin with https://"), "{refusal}");
    assert!(load("").unwrap_err().to_string().contains("the section is missing"));
}

#[test]
fn runners_are_named_by_their_first_key() {
    let text = format!(
        "{AGENT}\n{}",
        r#"
        [entity.web]
        static = { puppet = "/etc/site.pp", modulepath = ["/a", "/b"], hiera_config = "/h.yaml", noop = true, options = ["--vardir=/v"] }
        dynamic = [["one"], { systemd = "nginx.service", action = "reload" }]
        validate = [{ directory = "/etc/validate.d", env = { A = "1" } }, { systemd = "nginx" , action = "active" }]
        "#
    );
    let config = load(&text).unwrap();
    let recipe = config.entities.values().next().unwrap();
    let Runner::Puppet(puppet) = &recipe.statics[0] else { panic!("{recipe:?}") };
    let wanted = "puppet apply --detailed-exitcodes --color=false --modulepath=/a:/b --hiera_config=/h.yaml --noop \
                  --vardir=/v /etc/site.pp";
    assert_eq!(puppet.argv.join(" "), wanted);
    let Runner::Systemd(unit) = &recipe.dynamics[1] else { panic!("{recipe:?}") };
    assert_eq!((unit.name.as_str(), unit.action), ("nginx.service", UnitAction::Reload));
    assert!(matches!(&recipe.validation[0], Runner::Directory(dir) if dir.env.len() == 1));
    assert!(matches!(&recipe.validation[1], Runner::Systemd(unit) if unit.action == UnitAction::Active));
    let cases = [
        ("static = { puppet = \"site.pp\" }", "does not begin with /"),
        ("static = { puppet = \"/s.pp\", module_path = \"/a\" }", "unknown key \"module_path\""),
        ("static = { puppet = \"/s.pp\", noop = 1 }", "noop has the wrong type"),
        ("static = { puppet = \"/s.pp\", modulepath = \"/a:/b\" }", "write several directories as an array"),
        ("static = { systemd = \"nginx\" }", "set action for nginx"),
        ("static = { systemd = \"nginx\", action = \"kill\" }", "start, stop, restart, reload, active"),
        ("static = { systemd = \"--help\", action = \"stop\" }", "is not a valid unit name"),
        ("static = { systemd = \"a b\", action = \"stop\" }", "is not a valid unit name"),
        ("validate = { directory = \"validate.d\" }", "does not begin with /"),
        ("validate = { directry = \"/validate.d\" }", "argv, puppet, systemd or directory"),
        ("static = { argv = [\"a\"], puppet = \"/s.pp\" }", "unknown key"),
    ];
    for (text, reason) in cases {
        let refusal = load(&format!("{AGENT}[entity.web]\n{text}\n")).unwrap_err().to_string();
        assert!(refusal.contains(reason) && refusal.contains("use entity.web."), "{text}: {refusal}");
    }
}

#[test]
fn conf_d_adds_sections_and_a_section_in_two_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.toml");
    std::fs::write(&path, format!("{AGENT}[entity.web]\n")).unwrap();
    std::fs::create_dir(dir.path().join("conf.d")).unwrap();
    std::fs::write(dir.path().join("conf.d/db.toml"), "[entity.db]\n").unwrap();
    assert_eq!(Config::load(&path).unwrap().entities.len(), 2);
    std::fs::write(dir.path().join("conf.d/zz.toml"), "[entity.web]\n").unwrap();
    let refusal = Config::load(&path).unwrap_err().to_string();
    assert!(refusal.contains("entity.web") && refusal.contains("is already in"), "{refusal}");
}

#[test]
fn a_catalogue_file_has_one_content_and_its_defaults() {
    use bellwether_core::catalogue::need::RequiredState;
    use files::Format;
    let file = |more: &str| load(&format!("{AGENT}[entity.web]\n[[file]]\npath = \"/a/b\"\n{more}"));
    let hiera = file("format = \"hiera\"\nrequired = [\"db\"]").unwrap().files.remove(0);
    assert_eq!(
        (hiera.form, hiera.selection.level),
        (FileForm::Known(Format::Hiera), RequiredState::Addressable)
    );
    assert_eq!((hiera.debounce, hiera.mode), (files::DEFAULT_DEBOUNCE, None));
    let text = file("text = \"a\"\nmode = \"0640\"\ndebounce = \"0\"").unwrap().files.remove(0);
    assert_eq!(
        (text.selection.level, text.mode, text.debounce.as_millis()),
        (RequiredState::Functional, Some(0o640), 0)
    );
    for (more, reason) in [
        ("", "name one of format, template or text"),
        ("format = \"yaml\"", "\"yaml\" is not \"hiera\", \"json\" or \"env\""),
        ("format = \"json\"\ntext = \"a\"", "name only one of format"),
        ("text = \"a\"\nlevel = \"best\"", "neither \"functional\" nor \"addressable\""),
        ("text = \"a\"\nservices = [\"A\"]", "use file./a/b.services in"),
        ("text = \"a\"\nrequired = [\"0 of db\"]", "the count is 0"),
        ("text = \"a\"\nbefore = [\"db\"]", "there is no [entity.db]"),
        ("text = \"a\"\ndebounce = \"2h\"", "longer than an hour"),
        ("text = \"a\"\nreload = []", "a command needs a program"),
        ("text = \"a\"\nowner = \"a b\"", "\"a b\" is not the name or the number of a user"),
        ("text = \"a\"\n[[file]]\npath = \"/a/b\"\ntext = \"b\"", "file./a/b writes this file already"),
        (
            "text = \"a\"\n[[entity.db.file]]\npath = \"/a/b\"\ntext = \"b\"",
            "entity.db.file./a/b writes this file already",
        ),
    ] {
        let message = file(more).unwrap_err().to_string();
        assert!(message.contains(reason), "{more}: {message}");
    }
    let message = load(&format!("{AGENT}[[file]]\npath = \"a\"\ntext = \"b\"")).unwrap_err().to_string();
    assert!(message.contains("does not begin with /"), "{message}");
}

#[test]
fn needs_are_texts_or_tables_and_name_each_service_once() {
    let config = load(&format!(
        "{AGENT}[entity.web]\nneeds = [\"2 of db\", {{ service = \"lb\", level = \"addressable\", timeout = \"1m\", \
         on_timeout = \"wait\" }}]\n"
    ));
    let needs = &config.unwrap().entities.values().next().unwrap().needs.clone();
    let message: Vec<String> = needs.iter().map(ToString::to_string).collect();
    assert_eq!(message, ["2 functional of db", "1 addressable of lb"]);
    for (needs, reason) in [
        ("[\"0 of db\"]", "the count is 0"),
        ("[7]", "write texts like"),
        ("[\"db\", \"2 of db\"]", "db is named twice"),
        ("[{ service = \"db\", level = \"up\" }]", "\"up\" is not functional or addressable"),
        ("[{ service = \"db\", timeout = \"0s\" }]", "longer than zero"),
        ("[{ service = \"db\", on_timeout = \"wait\" }]", "set timeout as well"),
        ("[{ service = \"db\", on_timeout = \"panic\", timeout = \"1s\" }]", "is not fail or wait"),
        ("[{ servise = \"db\" }]", "servise"),
    ] {
        let error = load(&format!("{AGENT}[entity.web]\nneeds = {needs}\n")).unwrap_err().to_string();
        assert!(error.contains("entity.web.needs") && error.contains(reason), "{needs}: {error}");
    }
}
