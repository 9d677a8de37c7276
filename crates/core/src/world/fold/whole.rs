//! Folds changes into the whole world: records of no namespace here, the rest into their fleet.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::World;
use super::super::fleet::Fleet;
use super::kept;
use crate::records::key::global::{GlobalKey, GlobalRecord};
use crate::records::key::{Key, LocatedRecord, Record};
use crate::records::target::TargetState;
use crate::words::counter::{Epoch, Revision};
use crate::words::name::{EntityName, Namespace, TargetName};

/// Target states of a namespace that wait for the boards they belong to.
type States = Vec<(EntityName, TargetName, TargetState)>;

impl World {
    /// The world of these records, read together at `revision`. Indexes are built once, at the end.
    #[must_use]
    pub fn load(records: impl Iterator<Item = (LocatedRecord, Revision)>, revision: Revision) -> Self {
        Self::load_in(Epoch::ZERO, records, revision)
    }

    /// The world of these records of an installation in this epoch; see [`Self::load`].
    #[must_use]
    pub fn load_in(
        epoch: Epoch,
        records: impl Iterator<Item = (LocatedRecord, Revision)>,
        revision: Revision,
    ) -> Self {
        let mut world = Self { epoch, ..Self::default() };
        let mut states: BTreeMap<Namespace, States> = BTreeMap::new();
        for (record, revision) in records {
            match record {
                LocatedRecord::Namespaced(namespace, Record::Target(entity, target, state)) => {
                    let key = (entity.clone(), target.clone());
                    world.loading(&namespace, |fleet| fleet.targets.insert_mut(key, revision));
                    states.entry(namespace).or_default().push((entity, target, state));
                }
                LocatedRecord::Namespaced(namespace, record) => {
                    world.loading(&namespace, |fleet| fleet.put(record, revision));
                }
                LocatedRecord::Global(record) => world.put_global(record, revision),
            }
        }
        let namespaces: Vec<Namespace> = world.fleets.keys().cloned().collect();
        for namespace in namespaces {
            let states = states.remove(&namespace).unwrap_or_default();
            world.in_fleet(&namespace, |fleet| {
                fleet.loading = false;
                fleet.loaded = revision;
                fleet.build_indexes(states);
            });
        }
        world.revision = revision;
        world
    }

    /// The fleet of a namespace without records.
    #[must_use]
    pub fn empty_fleet(&self) -> Fleet {
        Fleet { epoch: self.epoch, ..Fleet::default() }
    }

    fn loading(&mut self, namespace: &Namespace, change: impl FnOnce(&mut Fleet)) {
        self.in_fleet(namespace, |fleet| {
            fleet.loading = true;
            change(fleet);
        });
    }

    /// Applies one record of a namespace, written at `revision`.
    pub fn put(&mut self, namespace: &Namespace, record: Record, revision: Revision) {
        self.revision = self.revision.max(revision);
        self.in_fleet(namespace, |fleet| fleet.put(record, revision));
    }

    /// Removes one record of a namespace, deleted at `revision`.
    pub fn delete(&mut self, namespace: &Namespace, key: &Key, revision: Revision) {
        self.revision = self.revision.max(revision);
        self.in_fleet(namespace, |fleet| fleet.delete(key, revision));
    }

    /// Applies one record of no namespace, written at `revision`.
    pub fn put_global(&mut self, record: GlobalRecord, revision: Revision) {
        self.revision = self.revision.max(revision);
        match record {
            GlobalRecord::Freeze(freeze) => {
                self.freezes_changed = revision;
                self.freezes.insert_mut(freeze.name.clone(), kept(freeze, revision));
            }
            GlobalRecord::Server(server) => {
                self.servers.insert_mut(server.name.clone(), kept(server, revision));
            }
            GlobalRecord::Leader(leader) => self.leader = Some(kept(leader, revision)),
            GlobalRecord::Token(token) => {
                self.tokens.insert_mut(token.secret_hash.clone(), kept(token, revision));
            }
            GlobalRecord::JoinToken(token) => {
                self.join_tokens.insert_mut(token.secret_hash.clone(), kept(token, revision));
            }
            GlobalRecord::Role(role) => {
                self.roles.insert_mut(role.name.clone(), kept(role, revision));
            }
            GlobalRecord::Authorities(authorities) => self.authorities = Some(kept(authorities, revision)),
        }
    }

    /// Removes one record of no namespace, deleted at `revision`.
    pub fn delete_global(&mut self, key: &GlobalKey, revision: Revision) {
        self.revision = self.revision.max(revision);
        match key {
            GlobalKey::Freeze(name) => {
                self.freezes_changed = revision;
                self.freezes.remove_mut(name);
            }
            GlobalKey::Server(name) => {
                self.servers.remove_mut(name);
            }
            GlobalKey::Leader => self.leader = None,
            GlobalKey::Token(hash) => {
                self.tokens.remove_mut(hash);
            }
            GlobalKey::JoinToken(hash) => {
                self.join_tokens.remove_mut(hash);
            }
            GlobalKey::Role(name) => {
                self.roles.remove_mut(name);
            }
            GlobalKey::Authorities => self.authorities = None,
        }
    }

    fn in_fleet(&mut self, namespace: &Namespace, change: impl FnOnce(&mut Fleet)) {
        if !self.fleets.contains_key(namespace) {
            self.fleets.insert_mut(namespace.clone(), self.empty_fleet());
        }
        if let Some(fleet) = self.fleets.get_mut(namespace) {
            change(fleet);
        }
    }
}
