//! The control plane that is measured: server processes of the program as it is built, on loopback, with a store of their own
//! or an etcd that they share.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use rustix::process::{Pid, Signal, kill_process};

use super::crowd::until;

/// The namespace of everything.
pub(crate) const NAMESPACE: &str = "default";

/// How long anything may take to start.
const BOUND: Duration = Duration::from_secs(60);

/// Servers, and what they keep everything in.
pub(crate) struct Setup {
    dir: tempfile::TempDir,
    program: PathBuf,
    pub(crate) servers: Vec<Server>,
    etcd: Option<Child>,
}

/// A server, running or not.
pub(crate) struct Server {
    pub(crate) name: String,
    port: u16,
    process: Option<Child>,
}

impl Drop for Setup {
    fn drop(&mut self) {
        let servers = self.servers.iter_mut().filter_map(|server| server.process.take());
        for mut child in servers.chain(self.etcd.take()) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Server {
    /// Where agents and people call it.
    pub(crate) fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

impl Setup {
    /// An installation of `program` with so many servers, none of them running.
    pub(crate) async fn make(program: &Path, servers: usize, etcd: bool) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let named =
            |index: usize| Ok(Server { name: format!("s{index}"), port: free_port()?, process: None });
        let servers = (1..=servers).map(named).collect::<Result<Vec<Server>>>()?;
        let mut place = Self { dir, program: program.to_owned(), servers, etcd: None };
        let endpoint = if etcd { Some(place.start_etcd().await?) } else { None };
        for server in &place.servers {
            let mut config = format!(
                "name = {:?}\ndata_dir = {:?}\nlisten = \"127.0.0.1:{}\"\n",
                server.name,
                place.path(&server.name),
                server.port
            );
            if let Some(endpoint) = &endpoint {
                config.push_str(&format!("[etcd]\nendpoints = [{endpoint:?}]\n"));
            }
            std::fs::write(place.path(&format!("{}.toml", server.name)), config)?;
        }
        let made = place.command(&["server", "init", "--config", &place.path("s1.toml")]).output()?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for server in place.servers.iter().skip(1) {
            let pki = format!("{}/pki", place.path(&server.name));
            std::fs::create_dir_all(&pki)?;
            for file in ["ca.pem", "ca.key"] {
                std::fs::copy(format!("{}/{file}", place.path("s1/pki")), format!("{pki}/{file}"))?;
            }
        }
        Ok(place)
    }

    async fn start_etcd(&mut self) -> Result<String> {
        let (client, peer) = (free_port()?, free_port()?);
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let mut command = Command::new("etcd");
        command.args(["--data-dir", &self.path("etcd"), "--advertise-client-urls", &client]);
        command.args(["--listen-client-urls", &client, "--listen-peer-urls", &peer, "--log-level", "error"]);
        command.args([
            "--initial-advertise-peer-urls",
            &peer,
            "--initial-cluster",
            &format!("default={peer}"),
        ]);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.etcd = Some(started.context("cannot start etcd: install etcd-server and etcd-client")?);
        until("etcd is ready", BOUND, async || {
            let mut asked = Command::new("etcdctl");
            asked.env("ETCDCTL_API", "3").args(["--endpoints", &client, "endpoint", "health"]);
            asked.output().is_ok_and(|answer| answer.status.success())
        })
        .await?;
        Ok(client)
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().env("HOME", self.dir.path()).stdin(Stdio::null());
        command
    }

    /// The CA's certificate.
    pub(crate) fn ca(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.path("s1/pki/ca.pem"))?)
    }

    /// A person with every right, calling this server.
    pub(crate) fn person(&self, server: usize) -> Result<Access> {
        let token = std::fs::read_to_string(self.path("s1/admin-token"))?;
        let identity = Identity::Token(Secret::new(token.trim()));
        Ok(Access { server: self.server(server)?.address(), ca: Some(self.ca()?), identity })
    }

    pub(crate) fn client(&self, server: usize) -> Result<Client> {
        Ok(Client::new(&self.person(server)?)?)
    }

    /// The addresses of all servers.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(Server::address).collect()
    }

    fn server(&self, index: usize) -> Result<&Server> {
        self.servers.get(index).context("there is no such server")
    }

    /// Starts a server. It serves once this returns.
    pub(crate) fn start(&mut self, index: usize) -> Result<()> {
        let name = self.server(index)?.name.clone();
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.path(&format!("{name}.log")))?;
        let config = self.path(&format!("{name}.toml"));
        let mut command = self.command(&["--log", "warn", "server", "run", "--config", &config]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn()?;
        let said = BufReader::new(child.stdout.take().context("its output was asked for")?).lines().next();
        let server = self.servers.get_mut(index).context("there is no such server")?;
        server.process = Some(child);
        let said = said.transpose()?.unwrap_or_default();
        ensure!(said.starts_with("serving on"), "{name} does not serve: {}", self.log(&name));
        Ok(())
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    /// Its process.
    pub(crate) fn pid(&self, index: usize) -> Result<u32> {
        Ok(self.server(index)?.process.as_ref().context("the server does not run")?.id())
    }

    /// Kills a server with SIGKILL.
    pub(crate) fn kill(&mut self, index: usize) -> Result<()> {
        let server = self.servers.get_mut(index).context("there is no such server")?;
        let mut process = server.process.take().context("the server does not run")?;
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Asks a server to stop.
    pub(crate) fn ask_to_stop(&self, index: usize) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid(index)?)?).context("a process has a number")?;
        Ok(kill_process(pid, Signal::TERM)?)
    }

    /// Waits until a server that was asked to stop has.
    pub(crate) async fn gone(&mut self, index: usize) -> Result<()> {
        let server = self.servers.get_mut(index).context("there is no such server")?;
        let mut process = server.process.take().context("the server does not run")?;
        until("the server stopped", BOUND, async || process.try_wait().is_ok_and(|ended| ended.is_some()))
            .await?;
        Ok(())
    }

    /// How many nodes hold sessions with the servers that run, each as it counts them itself.
    pub(crate) async fn sessions(&self) -> Result<usize> {
        let mut sum = 0;
        for (index, server) in self.servers.iter().enumerate() {
            if server.process.is_some() {
                let page = self.client(index)?.text("/metrics", BOUND).await?;
                let line = page.lines().find_map(|line| line.strip_prefix("bellwether_sessions "));
                sum += line.context("the metrics count sessions")?.trim().parse::<usize>()?;
            }
        }
        Ok(sum)
    }
}

/// What a process has cost so far: processor time, and the memory it has now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) processor: Duration,
    pub(crate) resident_kib: u64,
    /// The most memory it had.
    pub(crate) peak_kib: u64,
}

/// What a process has cost so far.
pub(crate) fn cost(pid: u32) -> Result<Cost> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit(") ").next().context("the kernel says how a process is")?;
    let ticks = after.split(' ').skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let memory = |key: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(key));
        let value = value.context("a process that runs has memory")?;
        anyhow::Ok(value.trim().trim_end_matches(" kB").parse()?)
    };
    // A tick is 10 ms wherever Linux runs.
    let processor = Duration::from_millis(ticks * 10);
    Ok(Cost { processor, resident_kib: memory("VmRSS:")?, peak_kib: memory("VmHWM:")? })
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
