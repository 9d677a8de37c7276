//! A member that is independent of the others: a program of this node, a unit of systemd, or executables that run something.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use bellwether_core::records::ensemble::{IndependentSettings, Workload};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::time::Span;

use super::delegate::{Delegate, DelegateOrder, EXECUTABLES, unusable};
use super::program::lack;
use crate::apply::CommandFacts;
use crate::check;
use crate::config::ensembles::EnsembleSettings;
use crate::config::recipe::{Command, Probe};

/// Longest time for one answer.
const PATIENCE: Span = Span::from_secs(5);

/// A member at the address of its node.
#[derive(Debug, Clone)]
pub(super) struct Independent {
    settings: IndependentSettings,
    ensemble: EnsembleName,
    number: MemberNumber,
    address: IpAddr,
}

impl Independent {
    pub(super) fn new(
        (ensemble, number): (&EnsembleName, MemberNumber),
        settings: &IndependentSettings,
        address: IpAddr,
    ) -> Self {
        Self { settings: settings.clone(), ensemble: ensemble.clone(), number, address }
    }

    /// Where it serves clients; with port 0 if it does not.
    pub(super) fn client(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.settings.port.unwrap_or_default())
    }

    /// URL at which others reach it; empty if it has no port.
    pub(super) fn peer_url(&self) -> String {
        if self.settings.port.is_some() { format!("tcp://{}", self.client()) } else { String::new() }
    }

    /// Whether something else than its agent starts and stops it.
    pub(super) const fn is_delegated(&self) -> bool {
        match self.settings.workload {
            Workload::Process(_) => false,
            Workload::Systemd(_) | Workload::Exec(_) => true,
        }
    }

    /// What is missing for a start, in words that fit after "waits for "; `None` if nothing is. Not for the runtime's threads.
    pub(super) fn lack(&self, settings: &EnsembleSettings, runs: bool) -> Option<String> {
        let listens = if runs || self.settings.port.is_none() { Vec::new() } else { vec![self.client()] };
        match &self.settings.workload {
            Workload::Process(name) => match settings.programs.get(name) {
                None => Some(format!("program {name}, which is not in [ensembles.programs] of its agent")),
                Some(recipe) => {
                    let program = recipe.command.argv.first().map_or("", String::as_str);
                    lack(&[(&format!("programs.{name}"), program)], &listens)
                }
            },
            Workload::Systemd(unit) if !settings.units.contains(unit) => {
                Some(format!("unit {unit}, which is not in units of [ensembles] of its agent"))
            }
            // A unit that is active already has its port.
            Workload::Systemd(_) => lack(&[("systemctl", "systemctl")], &[]),
            Workload::Exec(name) => {
                let dir = settings.service_agents.join(name.as_str());
                EXECUTABLES.iter().find_map(|name| unusable(&dir.join(name))).or_else(|| lack(&[], &listens))
            }
        }
    }

    /// The command of a program; `None` if the node does not have it, or it is none.
    pub(super) fn command(&self, settings: &EnsembleSettings, data: &Path, node: &str) -> Option<Command> {
        let Workload::Process(name) = &self.settings.workload else { return None };
        let mut command = settings.programs.get(name)?.command.clone();
        let values = [
            ("{listen}", self.client().to_string()),
            ("{address}", self.address.to_string()),
            ("{port}", self.settings.port.unwrap_or_default().to_string()),
            ("{data}", data.display().to_string()),
            ("{member}", self.number.to_string()),
            ("{ensemble}", self.ensemble.to_string()),
            ("{node}", node.to_owned()),
        ];
        let filled = |text: &String| {
            values.iter().fold(text.clone(), |text, (placeholder, value)| text.replace(placeholder, value))
        };
        command.argv = command.argv.iter().map(filled).collect();
        command.env = command.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
        if command.workdir.as_os_str().is_empty() {
            command.workdir = data.to_owned();
        }
        Some(command)
    }

    /// Why a program that runs does not serve, or what it warns of if it does.
    pub(super) async fn ask(&self, settings: &EnsembleSettings, facts: &CommandFacts) -> Result<(), String> {
        let Workload::Process(name) = &self.settings.workload else { return self.connect(facts).await };
        let http = settings.programs.get(name).and_then(|recipe| recipe.http.clone());
        let Some(path) = http.filter(|_| self.settings.port.is_some()) else {
            return self.connect(facts).await;
        };
        let probe = Probe::Http { authority: self.client().to_string(), path, status: None };
        check::ask(&probe, facts, PATIENCE).await.map(drop).map_err(|failure| failure.message)
    }

    /// Whether it takes connections, if it has a port.
    pub(super) async fn connect(&self, facts: &CommandFacts) -> Result<(), String> {
        if self.settings.port.is_none() {
            return Ok(());
        }
        let probe = Probe::Tcp { authority: self.client().to_string() };
        check::ask(&probe, facts, PATIENCE).await.map(drop).map_err(|failure| failure.message)
    }

    /// What is kept of it for the one who starts and stops it.
    pub(super) fn order(&self, settings: &EnsembleSettings, identity: &str, data: &Path) -> DelegateOrder {
        let delegate = match &self.settings.workload {
            Workload::Systemd(unit) => {
                Delegate::Systemd { unit: unit.of_instance(&format!("{}-{}", self.ensemble, self.number)) }
            }
            Workload::Process(name) | Workload::Exec(name) => {
                Delegate::Exec { dir: settings.service_agents.join(name.as_str()) }
            }
        };
        DelegateOrder {
            ensemble: self.ensemble.to_string(),
            identity: identity.to_owned(),
            member: self.number.get(),
            address: self.address,
            port: self.settings.port,
            data: data.to_owned(),
            delegate,
        }
    }
}
