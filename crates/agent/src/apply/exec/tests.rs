use super::*;

fn shell(script: &str) -> Command {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Command { argv, workdir: "/".into(), env: [("EXTRA".to_owned(), "1".to_owned())].into(), stdin: None }
}

async fn end(script: &str, deadline: Duration) -> CommandResult {
    let facts = CommandFacts { version: "v1".into(), ..CommandFacts::default() };
    run(&shell(script), &facts, deadline, None).await
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn exit_codes_signals_and_missing_programs_are_distinguished() {
    assert_eq!(end("exit 0", LONG).await.exit, CommandExit::Success);
    assert_eq!(end("exit 75", LONG).await.exit, CommandExit::NotYet);
    assert_eq!(end("echo out; echo err >&2; exit 3", LONG).await.exit, CommandExit::Code(3));
    assert_eq!(end("kill -9 $$", LONG).await.exit, CommandExit::Signal(9));
    let missing =
        Command { argv: vec!["/no/such".into()], workdir: "/".into(), env: Default::default(), stdin: None };
    let ended = run(&missing, &CommandFacts::default(), LONG, None).await;
    assert!(matches!(ended.exit, CommandExit::NotStarted(reason) if reason.starts_with("/no/such: ")));
}

#[tokio::test]
async fn the_environment_has_only_the_documented_variables() {
    let ended = end("/usr/bin/env", LONG).await;
    let mut names: Vec<&str> =
        ended.tail.lines().filter_map(|line| line.split('=').next()).filter(|n| *n != "PWD").collect();
    names.sort_unstable();
    let ours =
        ["COMMAND", "ENTITY", "NODE", "PREVIOUS", "RUN", "VERSION"].map(|name| format!("BELLWETHER_{name}"));
    let mut wanted: Vec<&str> = ours.iter().map(String::as_str).chain(["EXTRA", "PATH"]).collect();
    wanted.sort_unstable();
    names.retain(|name| !["_", "SHLVL", "OLDPWD"].contains(name));
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn a_hanging_command_is_killed_with_its_children_at_the_deadline() {
    let ended = end("sleep 600 & echo $!; wait", Duration::from_millis(300)).await;
    assert_eq!(ended.exit, CommandExit::TimedOut(Duration::from_millis(300)));
    gone(&ended.tail).await;
}

/// Waits until a process is gone.
async fn gone(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    let gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    tokio::time::timeout(LONG, async {
        while !gone() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

/// A command that starts a program in a session of its own, which writes its number, and goes on from there.
fn escaping(dir: &std::path::Path, then: &str) -> Command {
    let (script, fifo) = (dir.join("escape"), dir.join("fifo"));
    let (script, fifo) = (script.display(), fifo.display());
    let escape = format!("echo $$; echo > {fifo}; exec sleep 600 >/dev/null 2>&1");
    std::fs::write(dir.join("escape"), escape).unwrap();
    shell(&format!("mkfifo {fifo}; setsid sh {script} & read line < {fifo}; {then}"))
}

#[tokio::test]
async fn what_left_the_process_group_of_a_check_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let ended = probe(&escaping(dir.path(), "exit 3"), &CommandFacts::default(), LONG).await;
    assert_eq!(ended.exit, CommandExit::Code(3), "{}", ended.tail);
    gone(&ended.tail).await;
}

#[tokio::test]
async fn what_left_the_process_group_of_a_command_ends_at_its_deadline_and_stays_after_its_end() {
    let (dir, facts) = (tempfile::tempdir().unwrap(), CommandFacts::default());
    let limit = Duration::from_secs(1);
    let ended = run(&escaping(dir.path(), "sleep 600"), &facts, limit, None).await;
    assert_eq!(ended.exit, CommandExit::TimedOut(limit), "{}", ended.tail);
    gone(&ended.tail).await;
    let dir = tempfile::tempdir().unwrap();
    let ended = run(&escaping(dir.path(), "exit 0"), &facts, LONG, None).await;
    let pid = Pid::from_raw(ended.tail.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn all_output_is_read_and_only_its_end_is_kept() {
    let ended = end("yes flood | head -c 20000000; echo; echo end", LONG).await;
    assert_eq!(ended.exit, CommandExit::Success);
    assert!(ended.tail.len() <= 2_048 && ended.tail.ends_with("end\n"));
}

#[tokio::test]
async fn a_check_leaves_nothing_running() {
    let script = "sleep 600 >/dev/null 2>&1 & echo $!; exit 3";
    let ended = probe(&shell(script), &CommandFacts::default(), LONG).await;
    assert_eq!(ended.exit, CommandExit::Code(3));
    gone(&ended.tail).await;
}

#[tokio::test]
async fn a_command_runs_as_its_user_and_no_other() {
    let own = rustix::process::geteuid();
    let run_as = async |user: &str| {
        let user = Some(crate::users::UserName::parse(user).unwrap());
        let facts = CommandFacts { user, ..CommandFacts::default() };
        run(&shell("id -u; id -g; id -G"), &facts, LONG, None).await
    };
    let ended = run_as(&own.as_raw().to_string()).await;
    assert_eq!(
        (ended.exit, ended.tail.lines().next()),
        (CommandExit::Success, Some(&*own.as_raw().to_string()))
    );
    let refused = |exit: CommandExit, with: &str| matches!(exit, CommandExit::NotStarted(reason) if reason.contains(with));
    assert!(refused(run_as("no-such-user").await.exit, "does not list it"));
    if own.is_root() {
        // Neither root's groups nor any other.
        assert_eq!(run_as("nobody").await.tail, "65534\n65534\n65534\n");
        assert!(refused(run_as("987654").await.exit, "does not list its group"));
    } else {
        assert!(refused(run_as("root").await.exit, "does not run as root"));
    }
}

#[tokio::test]
async fn a_program_left_running_does_not_delay_the_end_of_its_command() {
    let started = std::pin::pin!(end("sleep 600 & echo $!", LONG));
    let ended = tokio::time::timeout(Duration::from_secs(10), started).await.unwrap();
    assert_eq!(ended.exit, CommandExit::Success);
    let pid = Pid::from_raw(ended.tail.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}
