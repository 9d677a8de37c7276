//! `debug bundle`: one archive of what a person needs to find a fault. Secrets are never in it.

mod masked;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bellwether_agent::config::Config;
use bellwether_agent::{status, support};
use serde::Serialize;

use super::doctor::{Present, look};
use crate::args::{DebugVerb, Global};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::Show;

/// Most events in an archive: some hours of a busy namespace.
const EVENTS: u32 = 1_000;

/// Most entities whose rollouts are in an archive.
const HISTORIES: usize = 100;

/// The name of everything in an archive begins with this.
const ROOT: &str = "bellwether-debug";

/// Files that are collected, in a directory for its owner alone; removed when this is dropped.
struct Collected {
    dir: PathBuf,
    /// What could not be collected.
    missing: Vec<String>,
    /// Texts of configurations that are masked, also in what is said of these.
    hidden: BTreeSet<String>,
}

pub(super) async fn run(global: &Global, verb: DebugVerb) -> CommandResult {
    let DebugVerb::Bundle { on, process_logs, file } = verb;
    let present = Present::find(global, &on)?;
    // Before anything is collected: an archive is never replaced.
    let archive = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let archive = archive.map_err(|error| unwritable(&file, &error))?;
    let mut collected = Collected::beside(&file).map_err(|error| unwritable(&file, &error))?;
    let packed = async {
        collected.add("version.txt", version().as_bytes())?;
        for config in present.server.iter().chain(&present.agent) {
            collected.hide(config);
        }
        let mut findings = look(global, &present).await;
        for finding in &mut findings {
            finding.detail = collected.masked(&finding.detail);
            finding.next = finding.next.as_ref().map(|next| collected.masked(next));
        }
        collected.json("doctor.json", &findings)?;
        for config in present.server.iter().chain(&present.agent) {
            collected.configuration(config)?;
        }
        if let Some(config) = &present.agent {
            collected.agent(config, process_logs)?;
        }
        if present.connection {
            collected.control_plane(global).await?;
        }
        collected.add("missing.txt", collected.masked(&collected.missing.join("\n")).as_bytes())?;
        pack(&collected.dir, archive).await
    };
    if let Err(error) = packed.await {
        drop(fs::remove_file(&file));
        return Err(unwritable(&file, &error));
    }
    let show = Show::new(global);
    for missing in &collected.missing {
        show.note(&format!("not in the archive: {missing}"));
    }
    show.changed(&format!("wrote {}; read it before you give it to somebody", file.display()));
    Ok(Exit::Yes)
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::local(LocalFault::Output, format!("write {}: {error}", file.display()))
}

/// A configuration file, and those of `conf.d` beside it.
fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
    let conf_d = path.parent().unwrap_or(Path::new(".")).join("conf.d");
    let more = fs::read_dir(conf_d).into_iter().flatten().flatten().map(|entry| entry.path());
    let more = more.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    std::iter::once(path.to_owned()).chain(more)
}

/// This program, and what it runs on.
fn version() -> String {
    let kernel = fs::read_to_string("/proc/version").unwrap_or_default();
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    format!("bellwether {}\n{kernel}{system}", env!("CARGO_PKG_VERSION"))
}

/// Packs the directory with `tar`, which every Debian has.
async fn pack(dir: &Path, archive: fs::File) -> io::Result<()> {
    let ended = tokio::process::Command::new("tar")
        .args(["--create", "--gzip", "--file", "-", "--directory"])
        .arg(dir)
        .arg(ROOT)
        .stdin(Stdio::null())
        .stdout(archive.try_clone()?)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?
        .wait_with_output()
        .await?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        return Err(io::Error::other(format!("tar: {}: {said}", ended.status)));
    }
    archive.sync_all()
}

impl Collected {
    fn beside(file: &Path) -> io::Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".partial");
        let dir = PathBuf::from(name);
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        let collected = Self { dir, missing: Vec::new(), hidden: BTreeSet::new() };
        fs::create_dir(collected.dir.join(ROOT))?;
        Ok(collected)
    }

    fn add(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.dir.join(ROOT).join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.dir))?;
        fs::write(path, bytes)
    }

    fn json<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        self.add(name, &serde_json::to_vec_pretty(value)?)
    }

    /// A text that may quote a configuration, without what is masked in that.
    fn masked(&self, text: &str) -> String {
        masked::without(text, &self.hidden)
    }

    /// Notes which texts of a configuration, and of those of `conf.d` beside it, are masked.
    fn hide(&mut self, path: &Path) {
        for path in files(path) {
            // One that cannot be read is missing, and says so.
            self.hidden.extend(masked::hidden(&fs::read_to_string(path).unwrap_or_default()));
        }
    }

    /// Adds an answer of the control plane; one that there is none of is missing.
    fn answer<T: Serialize, E: std::fmt::Display>(
        &mut self,
        name: &str,
        answer: Result<T, E>,
    ) -> io::Result<()> {
        match answer {
            Ok(value) => self.json(name, &value),
            Err(error) => {
                self.missing.push(format!("{name}: {error}"));
                Ok(())
            }
        }
    }

    /// Adds a configuration file, and those of `conf.d` beside it, without secrets.
    fn configuration(&mut self, path: &Path) -> io::Result<()> {
        for path in files(path) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("configuration");
            let dir = if path.parent().is_some_and(|dir| dir.ends_with("conf.d")) {
                "config/conf.d"
            } else {
                "config"
            };
            let name = format!("{dir}/{name}");
            let masked = fs::read_to_string(&path).map_err(|error| error.to_string());
            match masked.and_then(|text| masked::configuration(&text)) {
                Ok(text) => self.add(&name, text.as_bytes())?,
                Err(reason) => self.missing.push(format!("{name}: {reason}")),
            }
        }
        Ok(())
    }

    /// Adds the status and the logs of the agent.
    fn agent(&mut self, config: &Path, process_logs: bool) -> io::Result<()> {
        let data_dir = match Config::load(config) {
            Ok(config) => config.data_dir,
            Err(error) => {
                self.missing.push(format!("the agent's status and logs: cannot {error}"));
                return Ok(());
            }
        };
        self.answer("agent/status.json", status::read(&data_dir))?;
        match support::logs(&data_dir, process_logs) {
            Ok(logs) => logs.iter().try_for_each(|(name, text)| {
                self.add(&format!("agent/logs/{name}"), masked::log(text).as_bytes())
            }),
            Err(error) => {
                self.missing.push(format!("agent/logs: {error}"));
                Ok(())
            }
        }
    }

    /// Adds the entities, and the rollouts of each.
    async fn rollouts(&mut self, context: &Context) -> io::Result<()> {
        let (client, namespace) = (&context.client, &context.namespace);
        let entities = client.entities(namespace).await;
        let names = entities.iter().flat_map(|page| &page.items).map(|entity| entity.name.clone());
        let names: Vec<String> = names.collect();
        self.answer("control-plane/entities.json", entities)?;
        for name in names.iter().take(HISTORIES) {
            let file = format!("control-plane/rollouts/{name}.json");
            self.answer(&file, client.rollouts(namespace, name).await)?;
        }
        if let Some(left) = names.len().checked_sub(HISTORIES).filter(|left| *left > 0) {
            self.missing.push(format!("control-plane/rollouts: those of {left} more entities"));
        }
        Ok(())
    }

    /// Adds what the control plane says of itself and of the namespace.
    async fn control_plane(&mut self, global: &Global) -> io::Result<()> {
        let context = match Context::new(global) {
            Ok(context) => context,
            Err(failure) => {
                self.missing.push(format!("control-plane: {}", failure.message));
                return Ok(());
            }
        };
        let (client, namespace) = (&context.client, &context.namespace);
        self.answer("control-plane/status.json", client.overview(namespace).await)?;
        self.answer("control-plane/servers.json", client.control_plane().await)?;
        self.answer("control-plane/nodes.json", client.nodes(namespace, false).await)?;
        self.answer("control-plane/ensembles.json", client.ensembles(namespace).await)?;
        self.answer("control-plane/failures.json", client.failures(namespace).await)?;
        self.answer("control-plane/clusters.json", client.clusters(namespace).await)?;
        self.answer("control-plane/runs.json", client.runs(namespace).await)?;
        self.rollouts(&context).await?;
        self.answer("control-plane/events.json", client.events(namespace, None, EVENTS, Duration::ZERO).await)
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(path = %self.dir.display(), %error, "cannot remove what was collected");
        }
    }
}
