//! Files rendered from a profile: all or none, reloaded or restored, and with every kind of invalid input.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::{OnFailure, Policy};
use bellwether_api::v1::profile::{Params, ParamsSpec};
use bellwether_api::v1::rollout::NewRollout;
use serde_json::json;

use crate::bench::{Bench, NS};
use crate::child;

impl Bench {
    /// Writes the next revision of profile `web`.
    async fn params(&self, params: serde_json::Value) {
        let params: Params = serde_json::from_value(params).unwrap();
        let spec = ParamsSpec { params, ..ParamsSpec::default() };
        self.client.set_profile(NS, "web", &spec).await.unwrap();
    }

    /// Requests a revision of profile `web` on all nodes; a failure pauses and nothing is rolled back.
    pub(crate) async fn roll_profile(&self, version: &str) {
        let policy = Policy {
            soak: Some("0".into()),
            deadline: Some("5m".into()),
            on_failure: Some(OnFailure::Pause),
            batch: Some("100%".into()),
            ..Policy::default()
        };
        let profile = Some("web".into());
        let spec = EntitySpec { selector: "all".into(), profile, policy, ..EntitySpec::default() };
        self.client.set_entity(NS, "web", &spec).await.unwrap();
        let new = NewRollout { version: Some(version.into()), ..NewRollout::default() };
        self.client.start_rollout(NS, "web", &new).await.unwrap();
    }

    fn app_file(&self, name: &str, text: &str, more: &str) -> String {
        let path = self.path("app").join(name);
        format!("[[entity.web.file]]\npath = {path:?}\ntext = {text:?}\n{more}\n")
    }

    fn app_text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path("app").join(name)).ok()
    }

    fn app_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("app")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A reload that writes what it read to the trace, and fails for `bad`.
    fn reload(&self, name: &str) -> String {
        let script = format!(
            "cat {} >> {}; ! grep -q bad {}",
            self.path("app").join(name).display(),
            self.path("trace").display(),
            self.path("app").join(name).display()
        );
        format!("reload = [\"/bin/sh\", \"-c\", {script:?}]\n")
    }
}

async fn bench() -> Bench {
    let bench = Bench::new().await;
    fs::create_dir(bench.path("app")).unwrap();
    bench
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_follow_the_profile_and_are_reloaded_only_when_they_change() {
    let mut bench = bench().await;
    fs::write(bench.path("app/app.conf"), "by hand\n").unwrap();
    fs::set_permissions(bench.path("app/app.conf"), fs::Permissions::from_mode(0o640)).unwrap();
    let (reload, other) = (bench.reload("app.conf"), bench.reload("fixed"));
    let text = "{{ version }} {{ params.word }} on {{ node.name }}\n";
    let sections = format!(
        "{}{}",
        bench.app_file("app.conf", text, &reload),
        bench.app_file("fixed", "always {{ entity }}\n", &format!("mode = \"0600\"\n{other}"))
    );
    bench.params(json!({"word": "one"})).await;
    bench.params(json!({"word": "two"})).await;
    let agent = bench.agent(&sections).await;
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    assert_eq!(bench.app_text("app.conf").as_deref(), Some("web@1 one on web-1\n"));
    let mode = |name: &str| fs::metadata(bench.path("app").join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("app.conf"), mode("fixed")), (0o640, 0o600));
    bench.roll_profile("web@2").await;
    bench.runs("web@2").await;
    assert_eq!(bench.trace(), ["web@1 one on web-1", "always web", "web@2 two on web-1"]);
    assert_eq!(bench.app_names(), ["app.conf", "fixed"]);
    agent.stop().await;

    // Params that were fetched are available without a control plane: another agent, an unhealthy host, and it still recovers.
    bench.stop_server().await;
    let agent = bench.agent_again(&sections);
    bench.says("the agent", |status| status.alive && status.entities.contains_key("web")).await;
    agent.stop().await;
    assert_eq!(bench.trace().len(), 3);
    assert!(bench.data_dir().join("ledger/params/web/1.json").exists());
    bench.start_server().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_does_not_render_or_pass_its_check_replaces_nothing() {
    let bench = bench().await;
    let loops = "{% if params.n == 3 %}{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}{% endif %}";
    let grows = "{% if params.n == 4 %}{% for a in range(90000) %}{{ 'x' * 100 }}{% endfor %}{% endif %}";
    let check = "check = [\"/bin/sh\", \"-c\", \"! grep -n refused {path}\"]\n";
    let sections = format!(
        "{}{}",
        bench.app_file("a", "a {{ params.n }}\n", &bench.reload("a")),
        bench.app_file("b", &format!("{{{{ params.word }}}}{loops}{grows}\n"), check),
    );
    for params in [
        json!({"n": 1, "word": "good"}),
        json!({"n": 2}),
        json!({"n": 3, "word": "loops"}),
        json!({"n": 4, "word": "grows"}),
        json!({"n": 5, "word": "refused"}),
        json!({"n": 6, "word": "better"}),
    ] {
        bench.params(params).await;
    }
    let agent = bench.agent(&sections).await;
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    for (version, says) in [
        ("web@2", "line 1: `params.word` is undefined"),
        ("web@3", "rendering takes more than 2000000 steps"),
        ("web@4", "the rendered text has more than 4194304 bytes"),
        ("web@5", "check of "),
    ] {
        bench.roll_profile(version).await;
        let target = bench
            .until(version, async || {
                let target = bench.target().await.filter(|target| target.phase == "failed")?;
                (target.assigned.as_deref() == Some(version)).then_some(target)
            })
            .await;
        let evidence = target.evidence.unwrap();
        assert!(evidence.summary.contains(says), "{version}: {}", evidence.summary);
        assert!(evidence.summary.contains("app/b"), "{version}: {}", evidence.summary);
        assert_eq!(bench.app_text("a").as_deref(), Some("a 1\n"), "{version}");
        assert_eq!(bench.app_names(), ["a", "b"], "{version}");
    }
    let evidence = bench.target().await.unwrap().evidence.unwrap();
    assert_eq!((evidence.exit_code, evidence.tail.as_str()), (Some(1), "1:refused\n"));
    bench.roll_profile("web@6").await;
    bench.runs("web@6").await;
    assert_eq!((bench.app_text("a").as_deref(), bench.trace().len()), (Some("a 6\n"), 2));
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_whose_reload_fails_are_restored_and_reloaded() {
    let bench = bench().await;
    let sections = format!(
        "{}{}",
        bench.app_file("a", "a {{ params.word }}\n", &bench.reload("b")),
        bench.app_file("b", "b {{ params.word }}\n", &bench.reload("b")),
    );
    bench.params(json!({"word": "good"})).await;
    bench.params(json!({"word": "bad"})).await;
    let agent = bench.agent(&sections).await;
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    bench.roll_profile("web@2").await;
    let evidence = bench.failure().await;
    let wanted = "reload: exit code 1; the previous files were restored and reloaded";
    assert_eq!(evidence.summary, wanted);
    assert_eq!(
        (bench.app_text("a"), bench.app_text("b")),
        (Some("a good\n".into()), Some("b good\n".into()))
    );
    assert_eq!(bench.trace().get(..3), Some(["b good", "b bad", "b good"].map(String::from).as_slice()));
    assert_eq!(bench.node().await.running["web"], "web@1");
    assert_eq!(bench.app_names(), ["a", "b"]);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_files_that_were_not_reloaded_are_reloaded_by_the_next_apply() {
    let bench = bench().await;
    let (broken, trace) = (bench.path("broken"), bench.path("trace"));
    let script = format!(
        "test -e {} && exit 4; cat {} >> {}",
        broken.display(),
        bench.path("app/a").display(),
        trace.display()
    );
    let reload = format!("reload = [\"/bin/sh\", \"-c\", {script:?}]\n");
    bench.params(json!({"word": "one"})).await;
    bench.params(json!({"word": "two"})).await;
    let agent = bench.agent(&bench.app_file("a", "{{ params.word }}\n", &reload)).await;
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    fs::write(&broken, "").unwrap();
    bench.roll_profile("web@2").await;
    let evidence = bench.failure().await;
    let wanted = "reload: exit code 4; the previous files were restored, and then reload: exit code 4";
    assert_eq!(evidence.summary, wanted);
    // The file is as before, and the service must still read it: it is unknown what it read last.
    bench.roll_profile("web@1").await;
    let reports_failure = |status: &bellwether_agent::status::AgentStatus| {
        let web = status.entities.get("web");
        web.is_some_and(|web| web.line.contains("assigned web@1: reload: exit code 4"))
    };
    bench.says("the reload failing for web@1 too", reports_failure).await;
    fs::remove_file(&broken).unwrap();
    bench.until("web@1 read again", async || (bench.trace() == ["one", "one"]).then_some(())).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_that_cannot_be_written_are_reported_and_left_unchanged() {
    let bench = bench().await;
    fs::write(bench.path("app/real"), "kept\n").unwrap();
    symlink(bench.path("app/real"), bench.path("app/link")).unwrap();
    fs::create_dir(bench.path("open")).unwrap();
    fs::set_permissions(bench.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(bench.path("app"), bench.path("way")).unwrap();
    let [open, linked] = ["open/file", "way/file"].map(|name| bench.path(name).display().to_string());
    bench.params(json!({"word": "new"})).await;
    bench.join().await.unwrap();
    for (name, says) in [
        ("link", "it is a link to"),
        (&open, "users other than its owner can write the directory"),
        (&linked, "way is a link to"),
        ("missing/file", "cannot write to the directory"),
        ("real/file", "Not a directory"),
        ("/proc/bellwether", "cannot write /proc/.bellwether.bellwether-new"),
    ] {
        let first = bench.app_file("a", "a {{ params.word }}\n", "");
        let agent = bench.agent_again(&format!("{first}{}", bench.app_file(name, "x", "")));
        if name == "link" {
            bench.roll_profile("web@1").await;
        }
        let said = |node: &bellwether_api::v1::node::NodeView| {
            node.statuses.get("configure").is_some_and(|status| status.reason.contains(says))
        };
        bench.sees(says, said).await;
        agent.stop().await;
        assert_eq!(bench.app_names(), ["link", "real"], "{name}");
    }
    assert_eq!(bench.app_text("real").as_deref(), Some("kept\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipe_of_another_kind_is_reported_and_nothing_is_done() {
    let bench = bench().await;
    bench.params(json!({"word": "new"})).await;
    let agent = bench.agent("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", \"exit 0\"]\n").await;
    bench.roll_profile("web@1").await;
    let evidence = bench.failure().await;
    let wanted = "this node's recipe for web is for versions, and the entity is for a profile";
    assert_eq!(evidence.summary, wanted);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_vanishes_is_rendered_again_without_the_control_plane() {
    let mut bench = bench().await;
    let path = bench.path("app/a");
    let check = format!(
        "[[entity.web.check]]\nname = \"file\"\nexec = [\"test\", \"-e\", {:?}]\ninterval = \"100ms\"\nfall = 1\nrise = 1\n",
        path.display().to_string()
    );
    let sections = format!("{}{check}", bench.app_file("a", "a {{ params.word }}\n", &bench.reload("a")));
    bench.params(json!({"word": "one"})).await;
    let agent = bench.agent(&sections).await;
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    bench.stop_server().await;
    fs::remove_file(&path).unwrap();
    bench
        .says("the file again", |status| {
            bench.app_text("a").is_some()
                && status.entities.get("web").is_some_and(|web| web.healthy_since_ms.is_some())
        })
        .await;
    assert_eq!((bench.app_text("a").as_deref(), bench.trace().len()), (Some("a one\n"), 2));
    agent.stop().await;
    bench.start_server().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_while_it_restores_files_continues_with_that() {
    let bench = bench().await;
    bench.join().await.unwrap();
    // Treats a bad file as an error, and then takes long for the restored good one.
    let (file, trace, go) = (bench.path("app/a"), bench.path("trace"), bench.path("go"));
    let (file, trace, go) = (file.display(), trace.display(), go.display());
    let script = format!(
        "cat {file} >> {trace}; grep -q bad {file} && exit 3; test $(grep -c . {trace}) -lt 3 && exit 0; \
         while ! test -e {go}; do sleep 0.05; done"
    );
    let reload = format!("reload = [\"/bin/sh\", \"-c\", {script:?}]\n");
    let config = bench.configure(&bench.app_file("a", "a {{ params.word }}\n", &reload));
    bench.params(json!({"word": "good"})).await;
    bench.params(json!({"word": "bad"})).await;
    let mut first = child::agent(&config);
    bench.roll_profile("web@1").await;
    bench.runs("web@1").await;
    bench.roll_profile("web@2").await;
    bench.until("the good one read again", async || (bench.trace().len() == 3).then_some(())).await;
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(bench.app_text("a").as_deref(), Some("a good\n"));
    std::fs::write(bench.path("go"), "").unwrap();
    let mut second = child::agent(&config);
    let evidence = bench.failure().await;
    let wanted = "reload: failed before the agent was stopped; the previous files were restored and reloaded";
    assert_eq!(evidence.summary, wanted);
    assert_eq!(bench.node().await.running["web"], "web@1");
    second.kill().unwrap();
    second.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_between_the_move_and_the_reload_reloads_when_it_is_back() {
    let bench = bench().await;
    bench.join().await.unwrap();
    let (pids, go) = (bench.path("pids"), bench.path("go"));
    let script = format!(
        "cat {} >> {}; echo $$ >> {}; while ! test -e {}; do sleep 0.05; done",
        bench.path("app/a").display(),
        bench.path("trace").display(),
        pids.display(),
        go.display()
    );
    let reload = format!("reload = [\"/bin/sh\", \"-c\", {script:?}]\n");
    let config = bench.configure(&bench.app_file("a", "a {{ params.word }}\n", &reload));
    bench.params(json!({"word": "one"})).await;
    let mut first = child::agent(&config);
    bench.roll_profile("web@1").await;
    // The file is in place, and its reload has not succeeded yet.
    bench.until("the reload running", async || (crate::bench::lines(&pids).len() == 1).then_some(())).await;
    assert_eq!(bench.app_text("a").as_deref(), Some("a one\n"));
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(&go, "").unwrap();
    let mut second = child::agent(&config);
    bench.runs("web@1").await;
    assert_eq!(bench.trace(), ["a one", "a one"]);
    second.kill().unwrap();
    second.wait().unwrap();
    assert_eq!(bench.app_names(), ["a"]);
}
