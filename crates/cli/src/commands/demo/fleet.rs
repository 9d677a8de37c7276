//! The demo's fleet: directories, ports, a server and agents as child processes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::access::NewJoinToken;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use rustix::process::Pid;
use tokio::process::{Child, Command};

use super::processes::{adopt_orphans, kill_all, kill_tree};
use crate::args::{Demo, Global};
use crate::context::Context;
use crate::exit::{Exit, Failure, LocalFault};
use crate::show::Show;

/// The entity that the demo rolls out.
pub(super) const ENTITY: &str = "web";

/// Longest time for the server and all agents to start.
const START: Duration = Duration::from_secs(30);

/// Longest time for processes to stop by themselves before they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// The demo's processes and their directory.
pub(super) struct Fleet {
    directory: PathBuf,
    program: PathBuf,
    server: SocketAddr,
    /// Node names with the ports of their services.
    ports: BTreeMap<String, u16>,
    children: BTreeMap<String, Child>,
    context: Option<Context>,
}

impl Fleet {
    /// Names, ports and an empty directory; nothing runs yet.
    pub(super) fn new(args: &Demo) -> Result<Self, Failure> {
        adopt_orphans().map_err(|error| Failure::ours(format!("look after child processes: {error}")))?;
        let program =
            std::env::current_exe().map_err(|error| Failure::ours(format!("find this program: {error}")))?;
        let directory = std::env::temp_dir().join(format!("bellwether-demo-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&directory).map_err(|error| {
            Failure::local(LocalFault::Output, format!("make {}: {error}", directory.display()))
        })?;
        let mut free = free_ports(usize::from(args.nodes) + 1)?.into_iter();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, free.next().unwrap_or_default()));
        let names = (1..=args.nodes).map(|number| format!("web-{number:02}"));
        Ok(Self {
            directory,
            program,
            server,
            ports: names.zip(free).collect(),
            children: BTreeMap::new(),
            context: None,
        })
    }

    /// The connection to the server.
    pub(super) fn context(&self) -> Result<Context, Failure> {
        self.context.clone().ok_or_else(|| Failure::ours("use the fleet before it is started"))
    }

    /// Starts the server, joins and starts every agent, and waits until all are up.
    pub(super) async fn start(&mut self, global: &Global) -> Result<(), Failure> {
        let config = self.directory.join("server.toml");
        let data = self.directory.join("server");
        let text = format!(
            "data_dir = {:?}\nlisten = \"{}\"\nsuspect_after = \"1s\"\nunreachable_after = \"2s\"\n",
            data.display().to_string(),
            self.server
        );
        write(&config, &text)?;
        let config = config.display().to_string();
        self.run(&["server", "init", "--config", &config]).await?;
        self.spawn("server", &["server", "run", "--die-with-parent", "--config", &config])?;
        let access = Access {
            server: format!("https://{}", self.server),
            ca: Some(read(&data.join("pki/ca.pem"))?),
            identity: Identity::Token(Secret::new(read(&data.join("admin-token"))?.trim())),
        };
        let client = Client::new(&access)?;
        let (namespace, show) = ("default".to_owned(), Show::new(global));
        let context = Context { client, namespace, namespace_is_said: false, show };
        wait_until("the server answers", async || context.client.ready().await.is_ok()).await?;
        self.context = Some(context.clone());
        for (name, port) in self.ports.clone() {
            self.start_agent(&context, &name, port).await?;
        }
        let spec = EntitySpec { selector: "role=web".to_owned(), ..EntitySpec::default() };
        context.client.set_entity("default", ENTITY, &spec).await?;
        let all = u64::from(u16::try_from(self.ports.len()).unwrap_or(u16::MAX));
        wait_until("every agent is up", async || {
            let overview = context.client.overview("default").await;
            overview.is_ok_and(|overview| {
                overview.nodes.get(&bellwether_api::v1::node::PresenceState::Up) == Some(&all)
            })
        })
        .await
    }

    async fn start_agent(&mut self, context: &Context, name: &str, port: u16) -> Result<(), Failure> {
        let home = self.directory.join(name);
        std::fs::create_dir(&home).map_err(|error| {
            Failure::local(LocalFault::Output, format!("make {}: {error}", home.display()))
        })?;
        let request = NewJoinToken {
            node: Some(name.to_owned()),
            expires_in: Some("5m".to_owned()),
            labels: vec!["role=web".to_owned()],
            ..NewJoinToken::default()
        };
        let token = context.client.create_join_token(&request).await?;
        let token_file = home.join("join-token");
        write(&token_file, &token.secret)?;
        let (data, config) = (home.join("data"), home.join("agent.toml"));
        write(&config, &self.agent_config(name, port, &data))?;
        let text = |path: &Path| path.display().to_string();
        let server = format!("https://{}", self.server);
        self.run(&[
            "agent",
            "join",
            "--server",
            &server,
            "--token-file",
            &text(&token_file),
            "--name",
            name,
            "--data-dir",
            &text(&data),
        ])
        .await?;
        self.spawn(name, &["agent", "run", "--die-with-parent", "--config", &text(&config)])
    }

    fn agent_config(&self, name: &str, port: u16, data: &Path) -> String {
        format!(
            r#"[agent]
name = "{name}"
server = "https://{server}"
data_dir = {data:?}
services_on_exit = "stop"
tasks = "allow"
hosts_logical = true

[entity.{ENTITY}]
timeout = "3s"

[entity.{ENTITY}.process]
argv = [{program:?}, "demo-service", "--port", "{port}", "--version-served", "{{version}}"]
stop_timeout = "2s"

[[entity.{ENTITY}.check]]
name = "health"
http = "http://127.0.0.1:{port}/health"
interval = "300ms"
timeout = "1s"
"#,
            server = self.server,
            data = data.display().to_string(),
            program = self.program.display().to_string(),
        )
    }

    /// Sets the entity's policy.
    pub(super) async fn set_policy(&self, policy: Policy) -> Result<(), Failure> {
        let spec = EntitySpec { selector: "role=web".to_owned(), policy, ..EntitySpec::default() };
        self.context()?.client.set_entity("default", ENTITY, &spec).await?;
        Ok(())
    }

    /// A node of the second half, drawn by the seed: it has not been updated yet when it is lost.
    pub(super) fn draw_victim(&self, seed: u64) -> String {
        let half = self.ports.len() / 2;
        let late: Vec<&String> = self.ports.keys().skip(half).collect();
        let drawn = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let index = usize::try_from(drawn).unwrap_or(0).checked_rem(late.len()).unwrap_or(0);
        late.get(index).map_or_else(String::new, |name| (*name).clone())
    }

    /// Kills a node's agent and everything that it runs, at once.
    pub(super) fn power_off(&mut self, name: &str) {
        if let Some(pid) = self.children.remove(name).and_then(|child| pid(&child)) {
            kill_tree(pid);
        }
    }

    /// The version on each node's page, asked over HTTP; `None` where nothing answers.
    pub(super) async fn pages(&self) -> BTreeMap<String, Option<String>> {
        let mut pages = BTreeMap::new();
        for (name, port) in &self.ports {
            let access =
                Access { server: format!("http://127.0.0.1:{port}"), ca: None, identity: Identity::Nobody };
            let page = match Client::new(&access) {
                Ok(client) => client.text("/", Duration::from_secs(2)).await.ok(),
                Err(_) => None,
            };
            pages.insert(name.clone(), page.map(|text| text.trim().to_owned()));
        }
        pages
    }

    /// Commands to inspect a fleet that was kept.
    pub(super) fn how_to_look(&self) -> Result<String, Failure> {
        let data = self.directory.join("server");
        let token = read(&data.join("admin-token"))?;
        Ok(format!(
            "\nit runs on until Ctrl-C; in another terminal:\n  export BELLWETHER_SERVER=https://{} BELLWETHER_CA={} \
             BELLWETHER_TOKEN={}\n",
            self.server,
            data.join("pki/ca.pem").display(),
            token.trim()
        ))
    }

    /// Stops everything, waits, kills what is left, and removes the directory.
    pub(super) async fn take_down(&mut self) {
        for child in self.children.values() {
            if let Some(pid) = pid(child) {
                let asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                tracing::debug!(?asked, "asked a process to stop");
            }
        }
        let ended = async {
            for child in self.children.values_mut() {
                drop(child.wait().await);
            }
        };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::debug!("killing what did not stop in time");
        }
        // A process that ends leaves its children to this one, so it takes a few rounds.
        let killed = wait_until("nothing is left", async || !kill_all()).await;
        if let Err(failure) = killed {
            crate::show::tell(&failure.message);
        }
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            crate::show::tell(&format!("cannot remove {}: {error}", self.directory.display()));
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs one command of this program to its end.
    async fn run(&self, args: &[&str]) -> Result<(), Failure> {
        let output = self.command(args).output().await;
        let output = output.map_err(|error| Failure::ours(format!("run {}: {error}", args.join(" "))))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(Exit::No, format!("run `{}`: {}", args.join(" "), said.trim())))
    }

    /// Starts one process of this program; its output goes to a log in the demo's directory.
    fn spawn(&mut self, name: &str, args: &[&str]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::ours(format!("start {name}: {error}"));
        let log = std::fs::File::create(self.directory.join(format!("{name}.log"))).map_err(failed)?;
        let mut command = self.command(args);
        // A process group of its own: the demo itself handles Ctrl-C.
        command.process_group(0).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(failed)?;
        self.children.insert(name.to_owned(), child);
        Ok(())
    }
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Ports that are free now, all different.
fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners: Result<Vec<TcpListener>, _> = (0..count).map(bind).collect();
    let ports = listeners.and_then(|all| all.iter().map(|one| Ok(one.local_addr()?.port())).collect());
    ports.map_err(|error: std::io::Error| {
        Failure::local(LocalFault::Listen, format!("find free ports: {error}"))
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::local(LocalFault::Output, format!("write {}: {error}", path.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::local(LocalFault::DataDirectory, format!("read {}: {error}", path.display()))
    })
}

/// Polls at short intervals until the condition holds or [`START`] is over.
async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Result<(), Failure> {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let asked = tokio::time::timeout(START, asking).await;
    asked.map_err(|_| Failure::new(Exit::Timeout, format!("see that {what} within {} s", START.as_secs())))
}
