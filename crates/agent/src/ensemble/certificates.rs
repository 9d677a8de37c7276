//! The certificates of a member, which the control plane signs for a key that never leaves this node. etcd reads them anew for each
//! connection, so that new ones take the place of old ones while it runs.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bellwether_api::v1::ensemble::certificates::{EnsembleCertificate, MemberCertificates};
use bellwether_core::words::time::Timestamp;
use rcgen::KeyPair;
use serde::{Deserialize, Serialize};

use crate::config::data_store::TlsFiles;
use crate::disk;
use crate::join::certificate_request;

/// For whom the certificates of a member are, and when they were issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    /// The addresses that are in them.
    addresses: Vec<IpAddr>,
    /// When they were issued, by the clock of this node.
    issued_at_ms: u64,
    /// When they expire, by the clock of the server that issued them.
    expires_at_ms: u64,
}

impl Issued {
    /// Whether they do not hold at this time.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now.as_millis() >= self.expires_at_ms
    }

    /// Whether new ones are due: half of their life is over, or the node has other addresses.
    pub(super) fn is_due(&self, addresses: &[IpAddr], now: Timestamp) -> bool {
        let half = self.expires_at_ms.saturating_sub(self.issued_at_ms) / 2;
        self.addresses != addresses || now.as_millis() >= self.issued_at_ms.saturating_add(half)
    }
}

/// Certificate, authority and key of one side of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SideFiles {
    pub(super) certificate: PathBuf,
    pub(super) ca: PathBuf,
    pub(super) key: PathBuf,
}

impl SideFiles {
    /// As a client uses them.
    pub(super) fn client(self) -> TlsFiles {
        TlsFiles { ca_file: self.ca, identity: Some((self.certificate, self.key)) }
    }
}

/// The directory of the certificates of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateFiles(PathBuf);

impl CertificateFiles {
    /// That within the directory of a member.
    pub(super) fn within(member: &Path) -> Self {
        Self(member.join("tls"))
    }

    fn side(&self, name: &str) -> SideFiles {
        let file = |name: String| self.0.join(name);
        SideFiles {
            certificate: file(format!("{name}.pem")),
            ca: file(format!("{name}-ca.pem")),
            key: file("key.pem".to_owned()),
        }
    }

    /// Those for clients.
    pub(super) fn clients(&self) -> SideFiles {
        self.side("clients")
    }

    /// Those for other members.
    pub(super) fn peers(&self) -> SideFiles {
        self.side("peers")
    }

    fn note(&self) -> PathBuf {
        self.0.join("issued.json")
    }

    /// What was issued; `None` before anything was.
    pub(super) fn read(&self) -> io::Result<Option<Issued>> {
        let text = disk::read(&self.note())?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// A certificate request for the key of this member, which is made at the first one.
    pub(super) fn request(&self) -> io::Result<String> {
        disk::private_dir(&self.0)?;
        let path = self.clients().key;
        let key = match disk::read(&path)? {
            Some(text) => KeyPair::from_pem(&text).map_err(io::Error::other)?,
            None => {
                let key = KeyPair::generate().map_err(io::Error::other)?;
                disk::replace(&path, &key.serialize_pem())?;
                key
            }
        };
        certificate_request(&key).map_err(io::Error::other)
    }

    /// Keeps what was issued for these addresses.
    pub(super) fn keep(
        &self,
        issued: &MemberCertificates,
        addresses: Vec<IpAddr>,
        now: Timestamp,
    ) -> io::Result<Issued> {
        let write = |side: SideFiles, issued: &EnsembleCertificate| {
            disk::replace(&side.ca, &issued.ca)?;
            disk::replace(&side.certificate, &issued.certificate)
        };
        write(self.clients(), &issued.clients)?;
        write(self.peers(), &issued.peers)?;
        let note = Issued {
            addresses,
            issued_at_ms: now.as_millis(),
            expires_at_ms: issued.clients.expires_at_ms.min(issued.peers.expires_at_ms),
        };
        disk::replace(&self.note(), &serde_json::to_string(&note).map_err(io::Error::other)?)?;
        Ok(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_certificates_are_due_at_half_of_their_life_or_with_other_addresses_and_the_key_stays() {
        let home = tempfile::tempdir().unwrap();
        let files = CertificateFiles::within(home.path());
        assert_eq!(files.read().unwrap(), None);
        files.request().unwrap();
        let key = std::fs::read_to_string(files.clients().key).unwrap();
        let issued = EnsembleCertificate {
            certificate: "certificate".to_owned(),
            ca: "ca".to_owned(),
            expires_at_ms: 3_000,
        };
        let both = MemberCertificates { clients: issued.clone(), peers: issued };
        let own: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap()];
        let at = Timestamp::from_millis;
        let kept = files.keep(&both, own.clone(), at(1_000)).unwrap();
        assert_eq!(files.read().unwrap().as_ref(), Some(&kept));
        assert!(!kept.is_due(&own, at(1_999)) && kept.is_due(&own, at(2_000)) && kept.is_due(&[], at(1_000)));
        assert!(!kept.is_over(at(2_999)) && kept.is_over(at(3_000)));
        files.request().unwrap();
        assert_eq!(std::fs::read_to_string(files.peers().key).unwrap(), key);
    }
}
