//! A place where a story happens: a directory, a server process, agent processes, and the command line.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::rollout::RolloutView;
pub(crate) use bellwether_rt::free_ports::{free_port, free_ports};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a story waits for something that should happen within seconds on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bellwether");

pub(crate) struct Setup {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) port: u16,
    host: String,
    server: Option<Child>,
    agents: BTreeMap<String, Child>,
}

impl Setup {
    /// A fresh installation whose server runs.
    pub(crate) async fn new() -> Self {
        Self::at("127.0.0.1").await
    }

    /// One whose server is reached at this address.
    pub(crate) async fn at(host: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = format!(
            "data_dir = {:?}\nlisten = \"{host}:{port}\"\nsuspect_after = \"1s\"\nunreachable_after = \"3s\"\n\
             reconnect_within = \"3s\"\n",
            dir.path().join("server").display().to_string(),
        );
        std::fs::write(dir.path().join("server.toml"), config).unwrap();
        let mut place = Self { dir, port, host: host.to_owned(), server: None, agents: BTreeMap::new() };
        let config = place.path("server.toml");
        let made = place.run(&["server", "init", "--config", &config]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        place.start_server().await;
        place
    }

    /// The certificates of the authorities that clients trust.
    pub(crate) fn ca(&self) -> PathBuf {
        let several = self.dir.path().join("server/pki/trusted.pem");
        if several.exists() { several } else { self.dir.path().join("server/pki/ca.pem") }
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> String {
        format!("https://{}:{}", self.host, self.port)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    pub(crate) async fn start_server(&mut self) {
        self.start_server_with(&[]).await;
    }

    /// With these variables in its environment.
    pub(crate) async fn start_server_with(&mut self, variables: &[(&str, &str)]) {
        self.begin_server(variables);
        let client = self.client();
        wait_for("the server answers", async || client.ready().await.is_ok()).await;
    }

    /// Starts it, and does not wait until it answers.
    pub(crate) fn begin_server(&mut self, variables: &[(&str, &str)]) {
        let config = self.path("server.toml");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log("server")).unwrap();
        let mut command = self.command(&["server", "run", "--config", &config]);
        command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(log);
        self.server = Some(command.spawn().unwrap());
    }

    /// Waits until the server has ended by itself, and answers its exit code.
    pub(crate) async fn server_ended(&mut self) -> Option<i32> {
        let mut server = self.server.take().unwrap();
        wait_for("the server ends", async || server.try_wait().unwrap().is_some()).await;
        server.wait().unwrap().code()
    }

    /// Asks the server to stop, and answers its exit code.
    pub(crate) async fn stop_server(&mut self) -> Option<i32> {
        let pid = Pid::from_child(self.server.as_ref().unwrap());
        kill_process(pid, Signal::TERM).unwrap();
        self.server_ended().await
    }

    /// Waits until an agent has ended by itself, and answers its exit code.
    pub(crate) async fn agent_ended(&mut self, name: &str) -> Option<i32> {
        let mut agent = self.agents.remove(name).unwrap();
        wait_for("the agent ends", async || agent.try_wait().unwrap().is_some()).await;
        agent.wait().unwrap().code()
    }

    /// kill -9; of one that does not run, nothing.
    pub(crate) fn kill_server(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// Takes a backup of the store, the only one of this place, and goes on.
    pub(crate) async fn back_up(&mut self) {
        self.kill_server();
        let (config, file) = (self.path("server.toml"), self.path("all.backup"));
        done(self, &["server", "backup", "--config", &config, &file]);
        self.start_server().await;
    }

    /// Restores that backup, in place of all that was recorded since.
    pub(crate) async fn put_back(&mut self) {
        self.kill_server();
        let (config, file) = (self.path("server.toml"), self.path("all.backup"));
        std::fs::remove_dir_all(self.path("server/store")).unwrap();
        done(self, &["server", "restore", "--config", &config, &file]);
        self.start_server().await;
    }

    /// Joins a node and starts its agent with these entity sections.
    pub(crate) fn start_agent(&mut self, name: &str, sections: &str) {
        self.start_agent_on(&[], name, sections);
    }

    /// Joins a node and starts its agent, by way of a command that runs others elsewhere.
    pub(crate) fn start_agent_on(&mut self, on: &[String], name: &str, sections: &str) {
        let home = self.dir.path().join(name);
        std::fs::create_dir_all(&home).unwrap();
        let token = self.run(&["join-token", "create", "--node", name, "--label", "role=web"]);
        assert!(token.status.success(), "{}", text(&token.stderr));
        std::fs::write(home.join("join-token"), &token.stdout).unwrap();
        let data = home.join("data").display().to_string();
        let server = self.url();
        let config =
            format!("[agent]\nname = {name:?}\nserver = {server:?}\ndata_dir = {data:?}\n{sections}\n");
        std::fs::write(home.join("agent.toml"), config).unwrap();
        let token = home.join("join-token").display().to_string();
        let join = [
            "agent",
            "join",
            "--server",
            &server,
            "--token-file",
            &token,
            "--name",
            name,
            "--data-dir",
            &data,
        ];
        let joined = self.command_on(on, &join).output().unwrap();
        assert!(joined.status.success(), "{}", text(&joined.stderr));
        self.run_agent(on, name);
    }

    /// Starts the agent of a node that has joined.
    pub(crate) fn resume_agent(&mut self, name: &str) {
        self.run_agent(&[], name);
    }

    /// The same, by way of a command that runs others elsewhere.
    pub(crate) fn resume_agent_on(&mut self, on: &[String], name: &str) {
        self.run_agent(on, name);
    }

    fn run_agent(&mut self, on: &[String], name: &str) {
        let config = self.path(&format!("{name}/agent.toml"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log(name)).unwrap();
        let mut command = self.command_on(on, &["agent", "run", "--config", &config]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.agents.insert(name.to_owned(), child);
    }

    /// The command line, by way of a command that runs others elsewhere, if there is one.
    fn command_on(&self, on: &[String], args: &[&str]) -> Command {
        let plain = self.command(args);
        let Some((program, words)) = on.split_first() else { return plain };
        let mut command = Command::new(program);
        command.args(words).arg(plain.get_program()).args(plain.get_args()).stdin(Stdio::null());
        command
    }

    /// kill -9; its services live on.
    pub(crate) fn kill_agent(&mut self, name: &str) {
        let mut agent = self.agents.remove(name).unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// SIGTERM, and waits for its end; its services live on.
    pub(crate) fn stop_agent(&mut self, name: &str) {
        let mut agent = self.agents.remove(name).unwrap();
        kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
        assert!(agent.wait().unwrap().success(), "{name} did not end in order");
    }

    /// SIGHUP.
    pub(crate) fn hang_up_agent(&self, name: &str) {
        kill_process(Pid::from_child(self.agents.get(name).unwrap()), Signal::HUP).unwrap();
    }

    /// The process number of an agent.
    pub(crate) fn agent_pid(&self, name: &str) -> Pid {
        Pid::from_child(self.agents.get(name).unwrap())
    }

    pub(crate) fn client(&self) -> Client {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap();
        let token = Secret::new(read("server/admin-token").trim());
        let access = Access {
            server: self.url(),
            ca: Some(std::fs::read_to_string(self.ca()).unwrap()),
            identity: Identity::Token(token),
        };
        Client::new(&access).unwrap()
    }

    /// Runs the command line as the admin.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the command line with something on stdin.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Output {
        use std::io::Write;
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        let token = std::fs::read_to_string(self.dir.path().join("server/admin-token")).unwrap_or_default();
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("BELLWETHER_SERVER", self.url())
            .env("BELLWETHER_CA", self.ca())
            .env("BELLWETHER_TOKEN", token.trim())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// Waits until the rollout of `web` looks as `holds` wants it.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&RolloutView) -> bool) -> RolloutView {
        let client = self.client();
        let looking = async {
            let mut index = None;
            loop {
                // A server that is away for a moment is part of some stories.
                let Ok(view) = client.current_rollout("default", "web", index, Duration::from_secs(1)).await
                else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                if holds(&view) {
                    return view;
                }
                index = Some(view.revision);
            }
        };
        match tokio::time::timeout(SOON, looking).await {
            Ok(view) => view,
            Err(_) => panic!("never saw that {what}: {}", text(&self.run(&["rollout", "get", "web"]).stdout)),
        }
    }

    pub(crate) async fn ended(&self) -> RolloutView {
        self.until("the rollout ended", |view| view.rollout.as_ref().is_some_and(|r| r.ended_ms.is_some()))
            .await
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // Agents take their services with them only when told to, so whatever lives below this directory is killed too.
        for child in self.agents.values_mut().chain(self.server.as_mut()) {
            drop(child.kill());
            drop(child.wait());
        }
        for pid in below(self.dir.path()) {
            let killed = kill_process_group(pid, Signal::KILL).or_else(|_| kill_process(pid, Signal::KILL));
            eprintln!("killed what was left, {pid:?}: {killed:?}");
        }
        if std::thread::panicking() {
            for entry in std::fs::read_dir(self.dir.path()).unwrap().flatten() {
                if entry.path().extension().is_some_and(|end| end == "log") {
                    let log = std::fs::read_to_string(entry.path()).unwrap();
                    let tail: Vec<&str> = log.lines().rev().take(15).collect();
                    eprintln!("--- {}", entry.path().display());
                    tail.iter().rev().for_each(|line| eprintln!("{line}"));
                }
            }
        }
    }
}

/// Processes whose command line names this directory.
pub(crate) fn below(dir: &Path) -> Vec<Pid> {
    let needle = dir.display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        // A service is told its place by its environment, everything else by its arguments.
        let mut said = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        said.extend(std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default());
        let own = u32::try_from(pid).is_ok_and(|pid| pid == std::process::id());
        (!own && text(&said).contains(&needle)).then(|| Pid::from_raw(pid))?
    });
    found.collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit code of a command; -1 if a signal ended it.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Runs it, and answers its stdout; it must succeed.
pub(crate) fn done(place: &Setup, args: &[&str]) -> String {
    let output = place.run(args);
    assert_eq!(code(&output), 0, "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Copies a directory with all that is in it.
pub(crate) fn copied(from: &str, to: &str) {
    assert!(std::process::Command::new("cp").args(["-a", from, to]).status().unwrap().success());
}

/// Asks again and again, a little apart, until it holds.
pub(crate) async fn wait_for(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, asking).await.is_ok(), "never saw that {what}");
}

/// What a page on loopback says: its status and body.
pub(crate) async fn page(port: u16) -> Option<(u16, String)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: story\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split_whitespace().nth(1)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n")?.1.trim().to_owned();
    Some((status, body))
}
