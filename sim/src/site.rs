//! The start of a history: the store, its first records, and the machines.

use std::path::Path;

use anyhow::Context;
use bellwether_api::shape::ShapeError;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::key::{AnyRecord, Record};
use bellwether_core::records::node::Node;
use bellwether_core::records::token::Token;
use bellwether_core::words::label::{Label, Labels};
use bellwether_core::words::name::{Actor, Namespace, RoleName};
use bellwether_core::words::time::Timestamp;
use bellwether_server::installation::Installation;
use bellwether_server::pki::Pki;
use bellwether_server::records::{encoding, key_text};
use bellwether_server::secret;
use bellwether_store::{Op, Store, Txn};

use crate::agent::bearer;
use crate::people::TOKEN;

/// The simulated time at which every history starts, some time in 2027.
pub const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Creates the certificate authority in `dir` that all histories share.
///
/// # Errors
/// If it cannot be written.
pub fn authority(dir: &Path) -> anyhow::Result<()> {
    Pki::open(dir, &[], BEGIN).context("make an authority").map(drop)
}

/// Writes what `init` and joining would: the installation, the users' token and the nodes.
///
/// # Errors
/// If a record cannot be written.
pub async fn furnish(store: &Store, ca_fingerprint: String, nodes: &[String]) -> anyhow::Result<()> {
    let installation = Installation { id: "simulated".to_owned(), ..Installation::new(ca_fingerprint) };
    installation.write(store).await?;
    let home = Namespace::parse("default")?;
    let token = GlobalRecord::Token(Token {
        name: Actor::parse("people")?,
        roles: vec![RoleName::parse("admin").expect("plain letters are a label")],
        only_in: None,
        secret_hash: secret::hash(TOKEN.as_bytes()),
        created_at: BEGIN,
        expires_at: None,
    });
    let mut ops = vec![put(&home, &token.into())?];
    for name in nodes {
        let name = name.parse()?;
        let key_fingerprint = bearer(&name).key_fingerprint;
        let mut labels = Labels::default();
        labels.set(Label::new("role", "web")?)?;
        let node = Node {
            next_key_fingerprint: None,
            trust: None,
            name,
            labels,
            joined_at: BEGIN,
            key_fingerprint,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: vec![bellwether_core::access::NamePattern::Any],
        };
        ops.push(put(&home, &Record::Node(node).into())?);
    }
    store.commit(Txn { compares: vec![], ops }).await?;
    Ok(())
}

fn put(home: &Namespace, record: &AnyRecord) -> Result<Op, ShapeError> {
    Ok(Op::Put {
        key: key_text::of_any(home, &record.key()),
        value: encoding::write_any(record)?,
        lease: None,
    })
}

/// Deletes a key, as anybody with access to the store can.
pub async fn delete(store: &Store, key: &str) {
    let op = Op::Delete { key: key.to_owned().into() };
    // The store itself has no faults.
    drop(store.commit(Txn { compares: vec![], ops: vec![op] }).await);
}
