//! Templates of a real agent: rendered in processes of their own, which take neither its memory nor its processor time.

use crate::place::{Setup, text, wait_for};

/// Doubles a text until there is no memory for it.
const DOUBLING: &str = "{% set it = namespace(text='x' * 1000) %}{% for i in range(40) %}\
                        {% set it.text = it.text ~ it.text %}{% endfor %}{{ it.text | length }}";

/// Doubles it in one expression, without a loop.
const REPLACING: &str = "{{ ('x' * 90000000) | replace('x', 'xxxxxxxxxxxxxxxxxxxxxxxx') | length }}";

/// Most memory of the agent, in KiB: less than one of the texts.
const AGENT_KIB: u64 = 200 << 10;

/// The most memory that a process had, in KiB.
fn most_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn ok(place: &Setup, args: &[&str]) -> String {
    let done = place.run(args);
    assert!(done.status.success(), "{args:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_doubles_a_text_is_refused_and_takes_no_memory_of_the_agent() {
    let mut place = Setup::new().await;
    let (dir, template) = (place.dir.path().display().to_string(), place.path("app.j2"));
    std::fs::write(&template, DOUBLING).unwrap();
    let sections = format!("[[entity.web.file]]\npath = \"{dir}/app.conf\"\ntemplate = {template:?}\n");
    place.start_agent("web-1", &sections);
    ok(&place, &["profile", "set", "web", "word=one"]);
    ok(
        &place,
        &[
            "entity",
            "set",
            "web",
            "--selector",
            "all",
            "--profile",
            "web",
            "--soak",
            "0",
            "--on-failure",
            "pause",
        ],
    );
    for (source, round) in [(DOUBLING, "first"), (REPLACING, "second")] {
        std::fs::write(&template, source).unwrap();
        let set = format!("word={round}");
        ok(&place, &["profile", "set", "web", &set, "--rollout"]);
        wait_for(&format!("the {round} template is refused"), async || {
            let shown = ok(&place, &["why", "web-1"]);
            shown.contains("rendering takes more than 268435456 bytes of memory")
        })
        .await;
        assert!(!std::fs::exists(place.path("app.conf")).unwrap());
        ok(&place, &["rollout", "abort", "web"]);
    }
    let most = most_memory(place.agent_pid("web-1").as_raw_nonzero().get());
    assert!(most < AGENT_KIB, "the agent had {most} KiB");
    std::fs::write(&template, "{{ params.word }} {{ node.name }}\n").unwrap();
    ok(&place, &["profile", "set", "web", "word=third", "--rollout"]);
    wait_for("a template within the limits is rendered", async || {
        std::fs::read_to_string(place.path("app.conf")).is_ok_and(|read| read == "third web-1\n")
    })
    .await;
}
