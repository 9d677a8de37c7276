//! What is measured, each from a fleet at rest to a fleet at rest.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_api::client::Client;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;
use tokio::task::AbortHandle;

use super::crowd::{Agent, Crowd, join, now, until};
use super::people::{Look, People};
use super::place::{NAMESPACE, Setup, cost};

/// How long anything may take that is waited for: far longer than it does.
pub(crate) const BOUND: Duration = Duration::from_secs(180);

/// The one entity, of which every node is a target.
const ENTITY: &str = "app";

/// A fleet that is measured.
pub(crate) struct Fleet {
    pub(crate) place: Setup,
    pub(crate) crowd: Crowd,
    pub(crate) agents: usize,
    /// All of them.
    pub(crate) joined: Vec<Agent>,
    /// The agent whose cable can be cut.
    one: (String, Cable, AbortHandle),
    /// Memory of all servers before any agent called.
    before_kib: u64,
}

/// What it cost to do nothing for a while.
#[derive(Debug)]
pub(crate) struct Rest {
    /// Writes to the store meanwhile.
    pub(crate) writes: u64,
    /// Processor time of all servers, as a share of one core.
    pub(crate) core: f64,
    /// Memory of all servers.
    pub(crate) resident_kib: u64,
    /// How much of that came with the agents, for each of them.
    pub(crate) kib_per_agent: f64,
}

/// How a restart went.
#[derive(Debug)]
pub(crate) struct Herd {
    /// From the servers' first answer until every agent held a session again.
    pub(crate) back: Duration,
    /// Looks of people meanwhile.
    pub(crate) looks: Vec<Look>,
    /// Nodes that somebody took for gone, or that came back, meanwhile.
    pub(crate) flaps: u64,
}

/// How long until a figure is reached by half, by 99 of 100 and by all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) all: Duration,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Result<Self> {
        times.sort();
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
        let nothing = "nothing was measured";
        Ok(Self {
            half: *at(50).context(nothing)?,
            most: *at(99).context(nothing)?,
            all: *at(100).context(nothing)?,
        })
    }
}

impl Fleet {
    /// So many agents, joined and connected: all but one by the shortest way; that one's cable can be cut.
    pub(crate) async fn gather(mut place: Setup, agents: usize) -> Result<Self> {
        place.start(0)?;
        let joined = join(&place.client(0)?, &place.ca()?, agents).await?;
        // Memory is counted from a server that remembers nothing of the joining.
        place.ask_to_stop(0)?;
        place.gone(0).await?;
        for index in 0..place.servers.len() {
            place.start(index)?;
        }
        let mut before_kib = 0;
        for index in 0..place.servers.len() {
            before_kib += cost(place.pid(index)?)?.resident_kib;
        }
        let (mut crowd, servers) = (Crowd::default(), place.addresses());
        let cable = Cable::lay(servers.first().context("there is a server")?)?;
        let mut calling = joined.clone().into_iter();
        let first = calling.next().context("there is an agent")?;
        let name = first.name.clone();
        let handle = crowd.add(first, vec![cable.address.clone()]);
        for agent in calling {
            crowd.add(agent, servers.clone());
        }
        let fleet = Self { place, crowd, agents, joined, one: (name, cable, handle), before_kib };
        fleet.connected().await?;
        fleet.make_entity().await?;
        fleet.quiet().await?;
        Ok(fleet)
    }

    pub(crate) fn person(&self) -> Result<Client> {
        self.place.client(0)
    }

    /// Waits until every agent holds a session, and everybody knows.
    async fn connected(&self) -> Result<Duration> {
        let begun = now();
        until("all agents are connected", BOUND, async || {
            self.place.sessions().await.is_ok_and(|sessions| sessions >= self.agents)
        })
        .await?;
        let connected = begun.elapsed();
        let person = self.person()?;
        let agents = u64::try_from(self.agents)?;
        until("all agents are up", BOUND, async || {
            person.overview(NAMESPACE).await.is_ok_and(|seen| {
                seen.nodes.get(&bellwether_api::v1::node::PresenceState::Up) == Some(&agents)
            })
        })
        .await?;
        Ok(connected)
    }

    /// Waits until nothing is written for a whole second.
    pub(crate) async fn quiet(&self) -> Result<()> {
        let person = self.person()?;
        let mut last = None;
        for _ in 0..BOUND.as_secs() {
            let revision = person.control_plane().await?.revision;
            if last.replace(revision) == Some(revision) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        anyhow::bail!("the fleet does not come to rest")
    }

    /// The processes of all servers.
    pub(crate) fn pids(&self) -> Result<Vec<u32>> {
        (0..self.place.servers.len()).map(|index| self.place.pid(index)).collect()
    }

    /// Does nothing for so long.
    pub(crate) async fn rest(&self, time: Duration) -> Result<Rest> {
        let person = self.person()?;
        let pids = self.pids()?;
        let costs = || pids.iter().map(|pid| cost(*pid)).collect::<Result<Vec<_>>>();
        let (before, first, begun) = (person.control_plane().await?.revision, costs()?, now());
        tokio::time::sleep(time).await;
        let (after, then) = (costs()?, begun.elapsed());
        let writes = person.control_plane().await?.revision - before;
        let busy =
            first.iter().zip(&after).map(|(first, after)| after.processor.saturating_sub(first.processor));
        let core = busy.sum::<Duration>().as_secs_f64() / then.as_secs_f64();
        let resident_kib: u64 = after.iter().map(|cost| cost.resident_kib).sum();
        let came = u32::try_from(resident_kib.saturating_sub(self.before_kib))?;
        Ok(Rest {
            writes,
            core,
            resident_kib,
            kib_per_agent: f64::from(came) / f64::from(u32::try_from(self.agents)?),
        })
    }

    /// Makes the entity whose targets are all nodes, each of which may change at once.
    async fn make_entity(&self) -> Result<()> {
        let policy = Policy {
            batch: Some("100%".to_owned()),
            soak: Some("1s".to_owned()),
            deadline: Some("300s".to_owned()),
            ..Policy::default()
        };
        let spec = EntitySpec { selector: "all".to_owned(), policy, ..EntitySpec::default() };
        self.person()?.set_entity(NAMESPACE, ENTITY, &spec).await?;
        Ok(())
    }

    /// Asks for a version: how long until each agent had its order.
    pub(crate) async fn fan_out(&self, version: &str) -> Result<Spread> {
        let (person, dispatched, begun) = (self.person()?, &self.crowd.dispatched, now());
        let new = NewRollout {
            version: Some(version.to_owned()),
            reason: "measured".to_owned(),
            ..NewRollout::default()
        };
        person.start_rollout(NAMESPACE, ENTITY, &new).await?;
        until("every agent has its order", BOUND, async || dispatched.orders(version).len() >= self.agents)
            .await?;
        let times = dispatched.orders(version).into_iter().map(|at| at.saturating_duration_since(begun));
        let spread = Spread::of(times.collect())?;
        until("the rollout is done", BOUND, async || {
            let view = person.current_rollout(NAMESPACE, ENTITY, None, Duration::ZERO).await;
            view.is_ok_and(|view| view.progress.last_known_good.as_deref() == Some(version))
        })
        .await?;
        Ok(spread)
    }

    /// Cuts the cable of one agent, which is not told of it: how long until it is `unreachable`, and how many others were
    /// declared unreachable meanwhile.
    pub(crate) async fn silent(&self) -> Result<(Duration, u64)> {
        let ((one, cable, agent), person) = (&self.one, self.person()?);
        let (before, begun) = (person.overview(NAMESPACE).await?.last_event, now());
        cable.cut();
        until("the silent node is found", BOUND, async || {
            person.node(NAMESPACE, one).await.is_ok_and(|node| node.presence.state == "unreachable")
        })
        .await?;
        let took = begun.elapsed();
        agent.abort();
        Ok((took, self.flaps(before, Some(one)).await?))
    }

    /// Events of nodes' contact after this one, of others than `but`.
    async fn flaps(&self, mut after: u64, but: Option<&str>) -> Result<u64> {
        let (person, mut flaps) = (self.person()?, 0);
        loop {
            let page = person.events(NAMESPACE, Some(after), 1_000, Duration::ZERO).await?;
            let Some(last) = page.items.last() else { return Ok(flaps) };
            after = last.seq;
            let of = |subject: &str| but.is_some_and(|but| subject == format!("node/{but}"));
            let contact = ["node.up", "node.suspect", "node.unreachable"];
            let found =
                page.items.iter().filter(|event| contact.contains(&&*event.kind) && !of(&event.subject));
            flaps += u64::try_from(found.count())?;
        }
    }

    /// All servers end, by a signal or without a word, and are started again.
    pub(crate) async fn herd(&mut self, kill: bool) -> Result<Herd> {
        let before = self.person()?.overview(NAMESPACE).await?.last_event;
        let all = 0..self.place.servers.len();
        for index in all.clone() {
            if kill {
                self.place.kill(index)?;
            } else {
                self.place.ask_to_stop(index)?;
                self.place.gone(index).await?;
            }
        }
        for index in all {
            self.place.start(index)?;
        }
        let people = People::begin(self.place.person(0)?);
        let back = self.connected().await;
        let looks = people.end()?;
        self.quiet().await?;
        Ok(Herd { back: back?, looks, flaps: self.flaps(before, None).await? })
    }

    /// The leading server ends: how long until another one has decided something that was asked for right then.
    pub(crate) async fn takeover(&mut self, kill: bool, version: &str) -> Result<Duration> {
        let leader = self.person()?.control_plane().await?.leader.context("somebody leads")?.server;
        let leads = self.place.servers.iter().position(|server| server.name == leader);
        let leads = leads.context("the leader is one of ours")?;
        let others = self.place.client(usize::from(leads == 0))?;
        let begun = now();
        if kill {
            self.place.kill(leads)?;
        } else {
            self.place.ask_to_stop(leads)?;
        }
        let new = NewRollout {
            version: Some(version.to_owned()),
            reason: "measured".to_owned(),
            ..NewRollout::default()
        };
        others.start_rollout(NAMESPACE, ENTITY, &new).await?;
        until("the next leader decides", BOUND, async || {
            let view = others.current_rollout(NAMESPACE, ENTITY, None, Duration::ZERO).await;
            view.is_ok_and(|view| view.rollout.is_some_and(|rollout| rollout.version == version))
        })
        .await?;
        let took = begun.elapsed();
        if !kill {
            self.place.gone(leads).await?;
        }
        self.place.start(leads)?;
        self.connected().await?;
        Ok(took)
    }
}

/// A cable between an agent and its server that can be cut: nobody is told.
struct Cable {
    address: String,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    /// A cable to this server.
    fn lay(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("https://{}", listener.local_addr()?);
        let is_cut = Arc::new(AtomicBool::new(false));
        let (cut, server) = (is_cut.clone(), server.trim_start_matches("https://").to_owned());
        // These threads end with the process: a cut cable holds what is on it for ever.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&server) else { continue };
                let Ok((near_back, far_back)) =
                    near.try_clone().and_then(|near| Ok((near, far.try_clone()?)))
                else {
                    continue;
                };
                let (cut, cut_back) = (cut.clone(), cut.clone());
                std::thread::spawn(move || carry(near, far, &cut));
                std::thread::spawn(move || carry(far_back, near_back, &cut_back));
            }
        });
        Ok(Self { address, is_cut })
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 4_096];
    while let Ok(count) = from.read(&mut buffer) {
        if is_cut.load(Ordering::Relaxed) {
            loop {
                std::thread::park();
            }
        }
        if count == 0 || to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}
