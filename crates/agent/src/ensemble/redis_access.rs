//! Who may use a Redis: the members and their agents by a user of their own, and clients by the default user, with passwords or without. What is
//! kept of the passwords of clients are digests.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_core::local::member::MemberKey;
use bellwether_core::records::member::PasswordVersions;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::disk;

/// The user by which members replicate, and their agents call them.
const OWN_USER: &str = "bellwether";

/// What the default user may do where clients need passwords: everything but to administer the Redis, by which they could read the password of the
/// members, or make users that outlive a change of the password.
const GUARDED: [&str; 8] = ["~*", "&*", "+@all", "-@admin", "+role", "+slowlog", "+latency", "+client|list"];

/// What the default user may do where clients need no password.
const OPEN: [&str; 3] = ["~*", "&*", "+@all"];

/// What a member needs to know its clients and the other members.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RedisAccess {
    /// The password of the members.
    pub(super) members: String,
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

    /// The name and the password of the members' own user.
    pub(super) fn own_login(&self) -> (&'static str, &str) {
        (OWN_USER, &self.members)
    }

    /// The commands that have a Redis that runs take these users. The own one comes first: nothing that the members need is ever taken from them.
    pub(super) fn commands(&self) -> [Vec<String>; 3] {
        let user = |name: &str, rules: Vec<String>| {
            ["ACL", "SETUSER", name].map(str::to_owned).into_iter().chain(rules).collect()
        };
        let own = ["on", "resetpass"].map(str::to_owned).into_iter().chain(self.own_rules());
        let login = ["CONFIG", "SET", "masteruser", OWN_USER, "masterauth", &self.members];
        [
            user(OWN_USER, own.collect()),
            login.map(str::to_owned).into(),
            user("default", self.default_rules(&["on", "resetpass"])),
        ]
    }

    /// The settings with which a Redis begins.
    fn settings(&self) -> String {
        let (own, clients) = (self.own_rules().join(" "), self.default_rules(&["on"]).join(" "));
        format!(
            "user default {clients}\nuser {OWN_USER} on {own}\nmasteruser {OWN_USER}\nmasterauth {}\n",
            self.members
        )
    }

    fn own_rules(&self) -> Vec<String> {
        let digest: String = Sha256::digest(&self.members).iter().map(|byte| format!("{byte:02x}")).collect();
        std::iter::once(format!("#{digest}")).chain(OPEN.map(str::to_owned)).collect()
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
    use super::*;

    fn access(clients: &[(&str, &str)]) -> RedisAccess {
        let clients = clients.iter().map(|(name, sha256)| {
            (name.to_string(), ClientPassword { version: "1-a".to_owned(), sha256: sha256.to_string() })
        });
        RedisAccess { members: "foo".to_owned(), clients: clients.collect() }
    }

    #[test]
    fn clients_with_passwords_do_not_administer_and_the_members_are_never_shut_out() {
        let both = access(&[("a", "11"), ("b", "22")]);
        let [own, login, default] = both.commands().map(|words| words.join(" "));
        let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        assert_eq!(own, format!("ACL SETUSER bellwether on resetpass #{digest} ~* &* +@all"));
        assert_eq!(login, "CONFIG SET masteruser bellwether masterauth foo");
        assert!(
            default.starts_with("ACL SETUSER default on resetpass #11 #22 ~* &* +@all -@admin "),
            "{default}"
        );
        let open = access(&[]);
        assert!(open.commands()[2].join(" ").ends_with("default on resetpass nopass ~* &* +@all"));
        assert!(open.settings().starts_with("user default on nopass ~* &* +@all\nuser bellwether on #"));
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
}
