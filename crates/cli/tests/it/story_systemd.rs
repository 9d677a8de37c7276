//! An ensemble of instances of a unit of a real systemd, which runs in namespaces of its own: its agent has systemd start them, start them again
//! where they failed, and stop them once the ensemble is deleted.

use std::process::{Child, Command, Output, Stdio};

use crate::place::{Setup, below, done, free_ports, text, wait_for};
use crate::story_independent::serving;
use rustix::process::Pid;

/// Its configuration: control groups of its own, whatever the machine has mounted, units that need nothing of the machine, and none that
/// cleans directories of it.
const BOOT: &str = "umount --recursive /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && cp \"$1\"/* /run/systemd/system/ && \
    ln -s /dev/null /run/systemd/system/sysinit.target && ln -s /dev/null /run/systemd/system/systemd-tmpfiles-setup.service && \
    exec /lib/systemd/systemd --system --unit=story.target --log-target=console";

/// A systemd, as the first process of namespaces.
struct Systemd {
    outside: Child,
    log: String,
}

impl Systemd {
    fn start(units: &str, log: String) -> Self {
        let within = [
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--cgroup",
            "sh",
            "-c",
            BOOT,
            "sh",
        ];
        let mut command = Command::new("unshare");
        let written = std::fs::File::create(&log).unwrap();
        command
            .args(within)
            .arg(units)
            .stdin(Stdio::null())
            .stdout(written.try_clone().unwrap())
            .stderr(written);
        Self { outside: command.spawn().unwrap(), log }
    }

    /// The command that runs others in its namespaces.
    fn on(&self) -> Vec<String> {
        let children = below_of(Pid::from_child(&self.outside));
        let first = children.first().map(|pid| pid.as_raw_nonzero().to_string()).unwrap_or_default();
        ["nsenter", "--target", &first, "--mount", "--pid", "--"].map(str::to_owned).into()
    }

    fn systemctl(&self, args: &[&str]) -> Output {
        let on = self.on();
        let (program, words) = on.split_first().unwrap();
        Command::new(program).args(words).arg("systemctl").args(args).output().unwrap()
    }

    fn state(&self, unit: &str) -> String {
        text(&self.systemctl(&["is-active", unit]).stdout).trim().to_owned()
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        drop(self.outside.kill());
        drop(self.outside.wait());
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// The children of a process.
fn below_of(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    let found = Command::new("pgrep").args(["-P", &parent]).output().unwrap();
    let pids = text(&found.stdout);
    pids.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_of_a_unit_are_started_again_outlive_their_agent_and_are_stopped() {
    let [port] = free_ports::<1>();
    let mut place = Setup::new().await;
    let units = place.path("units");
    std::fs::create_dir(&units).unwrap();
    let quiet = "DefaultDependencies=no\n";
    let service = format!(
        "[Unit]\n{quiet}[Service]\nStandardOutput=null\nStandardError=null\n\
         ExecStart=/usr/bin/python3 -m http.server {port} --bind 127.0.38.1 --directory {units}\n"
    );
    std::fs::write(format!("{units}/web@.service"), service).unwrap();
    std::fs::write(format!("{units}/story.target"), format!("[Unit]\n{quiet}")).unwrap();
    let systemd = Systemd::start(&units, place.path("systemd.log"));
    wait_for("systemd runs", async || systemd.state("story.target") == "active").await;
    let sections = "addresses = { lo = [\"127.0.38.1\"] }\n\n[ensembles]\nunits = [\"web@.service\"]\n";
    place.start_agent_on(&systemd.on(), "n-1", sections);

    let port = port.to_string();
    let create = |place: &Setup, name: &str, unit: &str| {
        let flags =
            ["--service", "systemd", "--unit", unit, "--port", &port, "-l", "all", "--failover-after", "30s"];
        let args: Vec<&str> = ["ensemble", "create", name].iter().chain(&flags).copied().collect();
        done(place, &args)
    };
    create(&place, "web", "web@.service");
    let members = serving(&place, "web", 1).await;
    assert_eq!(systemd.state("web@web-1.service"), "active", "{members:?}");

    let main =
        || text(&systemd.systemctl(&["show", "--property=MainPID", "--value", "web@web-1.service"]).stdout);
    let before = main();
    assert!(systemd.systemctl(&["kill", "--signal=KILL", "web@web-1.service"]).status.success());
    wait_for("the unit is started again", async || {
        systemd.state("web@web-1.service") == "active" && main() != before
    })
    .await;
    serving(&place, "web", 1).await;

    let before = main();
    place.kill_agent("n-1");
    for agent in below(std::path::Path::new(&place.path("n-1"))) {
        // One may have ended with another.
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).ok();
    }
    place.resume_agent_on(&systemd.on(), "n-1");
    serving(&place, "web", 1).await;
    assert_eq!(main(), before, "the unit outlives the agent");

    let why = async |what: &str, reason: &str| {
        wait_for(what, async || text(&place.run(&["why", "ensemble/other"]).stdout).contains(reason)).await;
    };
    create(&place, "other", "sshd.service");
    why("it waits for the port", &format!("a member of ensemble web on it has port {port}")).await;
    done(&place, &["ensemble", "delete", "web", "--yes"]);
    wait_for("the unit is stopped", async || systemd.state("web@web-1.service") == "inactive").await;
    let reason = "unit sshd.service, which is not in units of [ensembles] of its agent";
    why("it is said why the node gets none", reason).await;
}
