//! The testbed: an etcd, servers and agents, each on its own host.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bellwether_rt::tasks::Tasks;
use tempfile::TempDir;

use crate::network::Network;
use crate::options::Options;
use crate::part::Part;
use crate::proxy::Proxy;
use crate::shell::{output, sh};
use crate::{clock, texts, wait};

/// A running testbed. Dropping it stops and removes everything.
#[derive(Debug)]
pub struct Testbed {
    /// What it consists of.
    pub options: Options,
    /// The network of its hosts.
    pub network: Network,
    parts: Vec<Part>,
    proxies: Vec<Proxy>,
    mounts: Vec<PathBuf>,
    dir: TempDir,
}

impl Testbed {
    /// Starts everything and waits until every part answers. Needs a tokio runtime if it uses proxies.
    ///
    /// # Errors
    /// Without root, without etcd-server and etcd-client, or if a part does not start; the part's log says why.
    pub fn start(options: Options, tasks: &Tasks) -> Result<Self> {
        if options.etcd == 0 && options.servers != 1 {
            bail!("{} servers need an etcd: with none there is one server", options.servers);
        }
        let network = Network::new(options.etcd + options.servers + options.agents)?;
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let mut bed =
            Self { options, network, parts: Vec::new(), proxies: Vec::new(), mounts: Vec::new(), dir };
        bed.add_etcd()?;
        if bed.options.proxied {
            for member in 1..=bed.options.etcd {
                let target = format!("{}:{}", bed.address(&format!("etcd-{member}"))?, texts::ETCD_PORT);
                let outside = bed.network.outside();
                bed.proxies.push(Proxy::start(&outside, target, tasks)?);
            }
        }
        bed.add_servers()?;
        for agent in 1..=bed.options.agents {
            bed.add_agent(agent)?;
        }
        Ok(bed)
    }

    fn add(&mut self, name: String, argv: Vec<String>) -> Result<PathBuf> {
        let home = self.home(&name);
        std::fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let (host, log) = (self.parts.len() + 1, self.dir.path().join(format!("{name}.log")));
        self.parts.push(Part { name, host, log, argv, environment: Vec::new(), child: None });
        Ok(home)
    }

    fn add_etcd(&mut self) -> Result<()> {
        let names = (1..=self.options.etcd).map(|member| format!("etcd-{member}"));
        let all: Vec<(String, String)> =
            names.enumerate().map(|(at, name)| (name, self.network.address(at + 1))).collect();
        for (name, address) in &all {
            let argv = texts::etcd(&self.options, (name, address), &all, &self.home(name));
            let home = self.add(name.clone(), argv)?;
            if let Some(size) = self.options.disk_mib {
                sh(&format!("mount -t tmpfs -o size={size}m {name} {}", home.display()))?;
                self.mounts.push(home);
            }
            self.begin(name)?;
        }
        for (name, _) in &all {
            self.wait_until_ready(name)?;
        }
        Ok(())
    }

    fn add_servers(&mut self) -> Result<()> {
        for server in 1..=self.options.servers {
            let name = format!("server-{server}");
            let config = self.home(&name).join("server.toml");
            let program = self.options.program.display().to_string();
            let path = config.display().to_string();
            let argv = [&program, "server", "run", "--config", &path].map(str::to_owned).to_vec();
            let home = self.add(name.clone(), argv)?;
            let text = texts::server(&name, &self.address(&name)?, &self.endpoints()?, &home);
            std::fs::write(&config, text).with_context(|| format!("cannot write {path}"))?;
            if server == 1 {
                let mut init = Command::new(&self.options.program);
                output(
                    init.args(["server", "init", "--config", &path]).env_clear(),
                    "bellwether server init",
                )?;
            } else {
                let (first, pki) = (self.home("server-1").join("data/pki"), home.join("data/pki"));
                sh(&format!(
                    "umask 077 && mkdir -p {1} && cp {0}/ca.pem {0}/ca.key {1}",
                    first.display(),
                    pki.display()
                ))?;
            }
            self.begin(&name)?;
        }
        (1..=self.options.servers).try_for_each(|server| self.wait_until_ready(&format!("server-{server}")))
    }

    fn add_agent(&mut self, agent: usize) -> Result<()> {
        let name = format!("agent-{agent}");
        let home = self.home(&name);
        let program = self.options.program.display().to_string();
        let (config, data) =
            (home.join("agent.toml").display().to_string(), home.join("data").display().to_string());
        let argv = [&program, "agent", "run", "--config", &config].map(str::to_owned).to_vec();
        self.add(name.clone(), argv)?;
        // Each agent starts with another server, to spread them.
        let mut servers: Vec<String> =
            (1..=self.options.servers).map(|server| self.url(server)).collect::<Result<_>>()?;
        servers.rotate_left(agent % self.options.servers.max(1));
        if let Some(only) = self.options.agents_know {
            servers = vec![self.url(only)?];
        }
        let write = |path: &str, text: &str| {
            std::fs::write(path, text).with_context(|| format!("cannot write {path}"))
        };
        write(&config, &texts::agent(&self.options, &name, &servers, &home))?;
        let first = servers.first().context("agents need a server")?;
        let token = output(
            &mut self.command(1, &["join-token", "create", "--node", &name, "--label", "role=web"])?,
            "join-token create",
        )?;
        let token_file = home.join("join-token").display().to_string();
        write(&token_file, &token)?;
        let mut join = self.command(1, &["agent", "join", "--server", first, "--token-file", &token_file])?;
        output(join.args(["--name", &name, "--data-dir", &data]), "agent join")?;
        self.begin(&name)
    }

    /// Addresses at which servers reach the members.
    fn endpoints(&self) -> Result<Vec<String>> {
        if !self.proxies.is_empty() {
            return Ok(self.proxies.iter().map(|proxy| format!("http://{}", proxy.address())).collect());
        }
        let of =
            |member| Ok(format!("http://{}:{}", self.address(&format!("etcd-{member}"))?, texts::ETCD_PORT));
        (1..=self.options.etcd).map(of).collect()
    }

    /// The proxy of a member, counted from 1, if there is one.
    #[must_use]
    pub fn proxy(&self, member: usize) -> Option<&Proxy> {
        self.proxies.get(member.checked_sub(1)?)
    }

    /// A part by name.
    ///
    /// # Errors
    /// If no part has that name.
    pub fn part(&mut self, name: &str) -> Result<&mut Part> {
        let part = self.parts.iter_mut().find(|part| part.name == name);
        part.with_context(|| format!("there is no {name}: parts are etcd-N, server-N and agent-N"))
    }

    /// The names of all parts.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.name.clone()).collect()
    }

    /// The host of a part, counted from 1.
    ///
    /// # Errors
    /// If no part has that name.
    pub fn host(&self, name: &str) -> Result<usize> {
        let part = self.parts.iter().find(|part| part.name == name);
        part.map(|part| part.host)
            .with_context(|| format!("there is no {name}: parts are etcd-N, server-N and agent-N"))
    }

    /// The IP address of a part's host.
    ///
    /// # Errors
    /// If no part has that name.
    pub fn address(&self, name: &str) -> Result<String> {
        Ok(self.network.address(self.host(name)?))
    }

    /// The directory of all files. Logs are `NAME.log` in it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A part's data directory.
    #[must_use]
    pub fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The URL of a server, counted from 1.
    ///
    /// # Errors
    /// If there is no such server.
    pub fn url(&self, server: usize) -> Result<String> {
        // Fixed before servers start, because agents are configured with all of them.
        if server == 0 || server > self.options.servers {
            bail!("there are {} servers, and no {server}", self.options.servers);
        }
        Ok(format!("https://{}:{}", self.network.address(self.options.etcd + server), texts::SERVER_PORT))
    }

    /// Environment variables for the command line to reach a server, counted from 1, as the admin.
    ///
    /// # Errors
    /// If there is no such server.
    pub fn environment(&self, server: usize) -> Result<Vec<(String, String)>> {
        let data = self.home("server-1").join("data");
        let token = std::fs::read_to_string(data.join("admin-token")).context("cannot read the token")?;
        let pairs = [
            ("HOME", self.dir.path().display().to_string()),
            ("BELLWETHER_SERVER", self.url(server)?),
            ("BELLWETHER_CA", data.join("pki/ca.pem").display().to_string()),
            ("BELLWETHER_TOKEN", token.trim().to_owned()),
        ];
        Ok(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    /// The command line as the admin of a server.
    ///
    /// # Errors
    /// If there is no such server.
    pub fn command(&self, server: usize, args: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.options.program);
        command.args(args).env_clear().envs(self.environment(server)?);
        Ok(command)
    }

    /// Runs etcdctl against a member and returns its output.
    ///
    /// # Errors
    /// If etcdctl fails.
    pub fn etcdctl(&self, member: usize, args: &[&str]) -> Result<String> {
        let endpoint = format!("http://{}:{}", self.address(&format!("etcd-{member}"))?, texts::ETCD_PORT);
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &endpoint, "--command-timeout", "3s"])
            .args(args);
        output(&mut command, "etcdctl")
    }

    fn begin(&mut self, name: &str) -> Result<()> {
        let on = self.network.on(self.host(name)?)?;
        self.part(name)?.start(&on)
    }

    /// Starts a stopped part and waits until it answers.
    ///
    /// # Errors
    /// If it is running already, or does not answer in time.
    pub fn start_part(&mut self, name: &str) -> Result<()> {
        self.begin(name)?;
        self.wait_until_ready(name)
    }

    /// Starts a stopped part with an additional environment variable `NAME=VALUE`, this time only. Does not wait, because it
    /// may be meant to die at once.
    ///
    /// # Errors
    /// If it is running already.
    pub fn start_part_with(&mut self, name: &str, variable: &str) -> Result<()> {
        self.part(name)?.environment.push(variable.to_owned());
        let begun = self.begin(name);
        self.part(name)?.environment.pop();
        begun
    }

    /// Starts several parts that need each other and waits until all answer.
    ///
    /// # Errors
    /// If one is running already, or does not answer in time.
    pub fn start_parts(&mut self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| self.begin(name))?;
        names.iter().try_for_each(|name| self.wait_until_ready(name))
    }

    /// Restarts a part with its wall clock shifted by `offset`, such as `+1h`; `+0` restores the machine's clock.
    ///
    /// # Errors
    /// If it is not running. An etcd cannot be shifted: it reads the clock from the kernel.
    pub fn set_clock(&mut self, name: &str, offset: &str) -> Result<()> {
        if name.starts_with("etcd") {
            bail!("{name} cannot be shown another time: it is not linked to what is replaced");
        }
        let environment = clock::environment(offset)?;
        let part = self.part(name)?;
        part.stop()?;
        part.environment = environment;
        self.start_part(name)
    }

    /// Fills the disk of a part to the last byte, or frees it again.
    ///
    /// # Errors
    /// If the part has no disk of its own.
    pub fn fill(&self, name: &str, full: bool) -> Result<()> {
        let home = self.home(name);
        if !self.mounts.contains(&home) {
            bail!("{name} has no disk of its own: say --disk-mib");
        }
        let filler = home.join("filler").display().to_string();
        let fill = format!(
            "dd if=/dev/zero of={filler} bs=64k 2>/dev/null; dd if=/dev/zero of={filler}-2 bs=1 2>/dev/null; :"
        );
        sh(&if full { fill } else { format!("rm -f {filler} {filler}-2") }).map(drop)
    }

    fn wait_until_ready(&mut self, name: &str) -> Result<()> {
        if name.starts_with("agent") {
            return Ok(());
        }
        let address = self.address(name)?;
        let check = match name.strip_prefix("etcd-") {
            Some(_) => format!(
                "ETCDCTL_API=3 etcdctl --endpoints http://{address}:{} endpoint health",
                texts::ETCD_PORT
            ),
            None => format!("curl -skf -m 2 https://{address}:{}/readyz", texts::SERVER_PORT),
        };
        wait::until(&format!("{name} answers"), || {
            if !self.part(name)?.runs() {
                let log = std::fs::read_to_string(&self.part(name)?.log).unwrap_or_default();
                bail!("{name} ended: {log}");
            }
            Ok(sh(&check).is_ok())
        })
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.parts.clear();
        for mount in &self.mounts {
            drop(sh(&format!("umount -l {}", mount.display())));
        }
    }
}
