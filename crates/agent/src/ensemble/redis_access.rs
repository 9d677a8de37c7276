//! Who may use a Redis: each member by a user of its own, its agent by that one too, and clients by the default user, with passwords or without. What
//! is kept of the passwords of others are digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_core::local::member::MemberKey;
use bellwether_core::records::member::{MemberOrder, PasswordVersions};
use bellwether_core::words::counter::MemberNumber;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::disk;

/// What the names of the users of members begin with; the number of the member follows.
const USER_PREFIX: &str = "bellwether-";

/// What another member may do: replicate, and hand over.
const PEER: [&str; 4] = ["-@all", "+psync", "+replconf", "+ping"];

/// What the default user may do where clients need passwords: everything but to administer the Redis, by which they could read the password of the
/// members, or make users that outlive a change of the password.
const GUARDED: [&str; 8] = ["~*", "&*", "+@all", "-@admin", "+role", "+slowlog", "+latency", "+client|list"];

/// What the default user may do where clients need no password.
const OPEN: [&str; 3] = ["~*", "&*", "+@all"];

/// What a member needs to know its clients and the other members.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RedisAccess {
    /// The number of the member.
    pub(super) number: u64,
    /// The password by which its agent, and it itself at the other members, logs in.
    pub(super) own: String,
    /// The SHA-256 of the passwords of the other members, in hex, by their numbers.
    pub(super) peers: BTreeMap<u64, String>,
    /// The passwords of clients, by secret; none if they need none.
    pub(super) clients: BTreeMap<String, ClientPassword>,
}

/// A password of clients.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientPassword {
    /// Which value of its secret it is.
    pub(super) version: String,
    /// Its SHA-256, in hex.
    pub(super) sha256: String,
}

/// What an agent knows of who may use the Redis of a member.
#[derive(Debug, Default)]
pub(super) struct MemberAccess {
    /// The member that it is for, with what it was given; `None` before that is known.
    pub(super) known: Option<(MemberKey, RedisAccess)>,
    /// What its program has taken since it runs, and this agent does.
    pub(super) taken: Option<RedisAccess>,
    /// When it may be asked for again.
    pub(super) due: Option<Instant>,
    /// Why it could not be had last.
    pub(super) asked: Option<String>,
    /// Why it is not as ordered, in words that fit after "member 1 ".
    pub(super) lack: Option<String>,
}

impl MemberAccess {
    /// What is known for this member.
    pub(super) fn of(&self, key: &MemberKey) -> Option<&RedisAccess> {
        self.known.as_ref().filter(|(of, _)| of == key).map(|(_, access)| access)
    }

    /// What its program has taken.
    pub(super) const fn taken(&self) -> Option<&RedisAccess> {
        self.taken.as_ref()
    }

    /// Its program was started anew.
    pub(super) fn is_started(&mut self) {
        self.taken = None;
    }
}

impl fmt::Debug for RedisAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisAccess").field("clients", &self.clients.keys()).finish_non_exhaustive()
    }
}

impl RedisAccess {
    /// The passwords of clients, without their values.
    pub(super) fn versions(&self) -> PasswordVersions {
        let of = |(name, password): (&String, &ClientPassword)| {
            Some((name.parse().ok()?, password.version.clone()))
        };
        self.clients.iter().filter_map(of).collect()
    }

    /// Who may use it as ordered: without the members that were removed since this was given. While its ensemble is held, those that are recorded may
    /// not be those that follow it.
    pub(super) fn ordered(&self, order: &MemberOrder) -> Self {
        if is_held(order) {
            return self.clone();
        }
        let is_peer = |number: &u64| order.peers.contains(&MemberNumber::new(*number));
        let peers = self.peers.iter().filter(|(number, _)| is_peer(number));
        Self { peers: peers.map(|(number, sha256)| (*number, sha256.clone())).collect(), ..self.clone() }
    }

    /// Whether it has all that an order names. While its ensemble is held, the passwords of clients stay as they are: those that are recorded may be
    /// older, and shut out everybody.
    pub(super) fn suffices(&self, order: &MemberOrder) -> bool {
        (is_held(order) || self.versions() == order.passwords)
            && order.peers.iter().all(|number| self.peers.contains_key(&number.get()))
    }

    /// The name and the password of the own user.
    pub(super) fn own_login(&self) -> (String, &str) {
        (user_of(self.number), &self.own)
    }

    /// The commands that have a Redis that runs take these users. The own one comes first: nothing that the members need is ever taken from them.
    pub(super) fn commands(&self) -> Vec<Vec<String>> {
        let user = |name: &str, rules: Vec<String>| {
            ["ACL", "SETUSER", name].map(str::to_owned).into_iter().chain(rules).collect()
        };
        let own = user_of(self.number);
        let login = ["CONFIG", "SET", "masteruser", &own, "masterauth", &self.own].map(str::to_owned);
        let peer = |(number, sha256): (&u64, &String)| {
            user(&user_of(*number), peer_rules(&["on", "resetpass"], sha256))
        };
        let members = [user(&own, self.own_rules(&["on", "resetpass"])), login.into()];
        let peers = self.peers.iter().map(peer);
        let default = user("default", self.default_rules(&["on", "resetpass"]));
        members.into_iter().chain(peers).chain([default]).collect()
    }

    /// The users that a Redis is not to have: those of members that were removed. Whoever is connected as one of them is disconnected.
    pub(super) fn surplus(&self, users: &BTreeSet<String>) -> Vec<String> {
        let numbers = self.peers.keys().chain([&self.number]);
        let wanted: BTreeSet<String> = numbers.map(|number| user_of(*number)).collect();
        let is_of_member = |user: &&String| user.starts_with(USER_PREFIX);
        users.difference(&wanted).filter(is_of_member).cloned().collect()
    }

    /// The settings with which a Redis begins.
    fn settings(&self) -> String {
        let (own, clients) = (self.own_rules(&["on"]).join(" "), self.default_rules(&["on"]).join(" "));
        let name = user_of(self.number);
        let peer = |(number, sha256): (&u64, &String)| {
            format!("user {} {}\n", user_of(*number), peer_rules(&["on"], sha256).join(" "))
        };
        let peers: String = self.peers.iter().map(peer).collect();
        format!(
            "user default {clients}\nuser {name} {own}\n{peers}masteruser {name}\nmasterauth {}\n",
            self.own
        )
    }

    fn own_rules(&self, first: &[&str]) -> Vec<String> {
        let digest: String = Sha256::digest(&self.own).iter().map(|byte| format!("{byte:02x}")).collect();
        let first = first.iter().copied().map(str::to_owned);
        first.chain([format!("#{digest}")]).chain(OPEN.map(str::to_owned)).collect()
    }

    fn default_rules(&self, first: &[&str]) -> Vec<String> {
        let first = first.iter().copied().map(str::to_owned);
        match self.clients.is_empty() {
            true => first.chain(["nopass"].into_iter().chain(OPEN).map(str::to_owned)).collect(),
            false => {
                let digests = self.clients.values().map(|password| format!("#{}", password.sha256));
                first.chain(digests).chain(GUARDED.map(str::to_owned)).collect()
            }
        }
    }
}

/// Whether nobody has a role by an order, as after a restore of the control plane.
pub(super) const fn is_held(order: &MemberOrder) -> bool {
    order.replication.is_none()
}

/// The name of the user of a member.
fn user_of(number: u64) -> String {
    format!("{USER_PREFIX}{number}")
}

fn peer_rules(first: &[&str], sha256: &str) -> Vec<String> {
    let first = first.iter().copied().map(str::to_owned);
    first.chain([format!("#{sha256}")]).chain(PEER.map(str::to_owned)).collect()
}

/// The files within the directory of a member, readable by its owner alone.
#[derive(Debug, Clone)]
pub(super) struct AccessFiles(PathBuf);

impl AccessFiles {
    pub(super) fn within(member: &Path) -> Self {
        Self(member.to_owned())
    }

    /// What it was given last; `None` before that. What cannot be read is asked for again.
    pub(super) fn read(&self) -> io::Result<Option<RedisAccess>> {
        let text = disk::read(&self.0.join("access.json"))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Keeps what it was given.
    pub(super) fn keep(&self, access: &RedisAccess) -> io::Result<()> {
        disk::replace(&self.0.join("access.json"), &serde_json::to_string(access)?)
    }

    /// The settings that a Redis is started with.
    pub(super) fn settings(&self) -> PathBuf {
        self.0.join("access.conf")
    }

    /// Writes them.
    pub(super) fn write_settings(&self, access: &RedisAccess) -> io::Result<()> {
        disk::replace(&self.settings(), &access.settings())
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::ensemble::{EnsembleService, RedisSettings};
    use bellwether_core::records::ensemble_snapshots::SnapshotOrder;
    use bellwether_core::records::member::{MemberStart, MemberTask, ReplicationOrder};

    use super::*;

    fn access(clients: &[(&str, &str)]) -> RedisAccess {
        let clients = clients.iter().map(|(name, sha256)| {
            (name.to_string(), ClientPassword { version: "1-a".to_owned(), sha256: sha256.to_string() })
        });
        let peers = [(2, "33".to_owned())].into();
        RedisAccess { number: 1, own: "foo".to_owned(), peers, clients: clients.collect() }
    }

    #[test]
    fn clients_with_passwords_do_not_administer_and_the_members_are_never_shut_out() {
        let both = access(&[("a", "11"), ("b", "22")]);
        let commands: Vec<String> = both.commands().iter().map(|words| words.join(" ")).collect();
        let [own, login, peer, default] = commands.as_slice() else { panic!("{commands:?}") };
        let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        assert_eq!(*own, format!("ACL SETUSER bellwether-1 on resetpass #{digest} ~* &* +@all"));
        assert_eq!(login, "CONFIG SET masteruser bellwether-1 masterauth foo");
        assert_eq!(peer, "ACL SETUSER bellwether-2 on resetpass #33 -@all +psync +replconf +ping");
        assert!(
            default.starts_with("ACL SETUSER default on resetpass #11 #22 ~* &* +@all -@admin "),
            "{default}"
        );
        let open = access(&[]);
        assert!(open.commands()[3].join(" ").ends_with("default on resetpass nopass ~* &* +@all"));
        assert!(open.settings().starts_with("user default on nopass ~* &* +@all\nuser bellwether-1 on #"));
        assert!(open.settings().contains("\nuser bellwether-2 on #33 -@all +psync +replconf +ping\n"));
        let users = ["bellwether-1", "bellwether-2", "bellwether-3", "bellwether-22", "default", "mine"];
        let surplus = open.surplus(&users.map(str::to_owned).into());
        assert_eq!(surplus, ["bellwether-22", "bellwether-3"]);
        assert!(!format!("{both:?}").contains("foo"));
    }

    #[test]
    fn what_was_given_is_kept_for_the_next_start() {
        let home = tempfile::tempdir().unwrap();
        let (files, given) = (AccessFiles::within(home.path()), access(&[("a/b", "11")]));
        assert_eq!(files.read().unwrap(), None);
        files.keep(&given).unwrap();
        assert_eq!(files.read().unwrap().as_ref(), Some(&given));
        files.write_settings(&given).unwrap();
        let versions = given.versions();
        assert_eq!(versions.get(&"a/b".parse().unwrap()).map(String::as_str), Some("1-a"));
    }

    /// Those that follow it may be others than those that are recorded.
    #[test]
    fn while_its_ensemble_is_held_nobody_is_shut_out() {
        let order = |replication| MemberOrder {
            number: MemberNumber::new(1),
            identity: "cache-1".to_owned(),
            service: EnsembleService::Redis(RedisSettings {
                port: 1,
                min_replicas: 1,
                tls: false,
                password_secrets: Vec::new(),
            }),
            task: MemberTask::Run(MemberStart::Again),
            restore: None,
            adoption: None,
            change: None,
            replication,
            tells_position: false,
            passwords: PasswordVersions::new(),
            peers: BTreeSet::new(),
            snapshots: SnapshotOrder::default(),
            restart: None,
            defragmentation: None,
            osds: None,
        };
        let given = access(&[]);
        assert_eq!(given.ordered(&order(None)), given);
        let primary = || Some(ReplicationOrder::Primary { history: None });
        assert!(given.ordered(&order(primary())).peers.is_empty(), "it was removed");
        // Nor are clients, by a password that may be an older one.
        let newer = access(&[("a", "11")]);
        assert!(newer.suffices(&order(None)) && !newer.suffices(&order(primary())));
    }
}
