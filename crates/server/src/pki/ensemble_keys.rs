//! Keys of ensembles whose software knows members and clients by keys, such as Ceph. Each is derived from that of the installation's authority, as
//! the authorities of ensembles are: every server has them, and nothing is stored.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bellwether_core::words::counter::MemberNumber;
use ring::hmac;

use super::Pki;
use super::ensemble::EnsembleId;
use crate::secret::hex;

/// What comes before the secret in a key as Ceph writes it: its kind, AES, when it was made, which nobody reads, and the length of the secret; numbers
/// begin with their lowest byte.
const CEPHX_PREFIX: [u8; 12] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, CEPHX_BYTES, 0];

/// Bytes of the secret of such a key.
const CEPHX_BYTES: u8 = 16;

/// The keys of a Ceph.
#[derive(Clone, PartialEq, Eq)]
pub struct CephKeys {
    /// Id of the store, a UUID.
    pub fsid: String,
    /// Key by which monitors know each other.
    pub monitors: String,
    /// Key of `client.admin`.
    pub administrator: String,
    /// Key of `client.bootstrap-osd`, which may register OSDs, and nothing else.
    pub bootstrap: String,
}

impl std::fmt::Debug for CephKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CephKeys").field("fsid", &self.fsid).finish_non_exhaustive()
    }
}

impl Pki {
    /// The keys of an ensemble of Ceph: the same on every server, each time.
    #[must_use]
    pub fn ceph_keys(&self, of: EnsembleId<'_>) -> CephKeys {
        CephKeys {
            fsid: self.fsid(of),
            monitors: self.cephx_key(of, "mon."),
            administrator: self.cephx_key(of, "client.admin"),
            bootstrap: self.cephx_key(of, "client.bootstrap-osd"),
        }
    }

    /// The key of the OSD with this id.
    #[must_use]
    pub fn osd_key(&self, of: EnsembleId<'_>, uuid: &str) -> String {
        self.cephx_key(of, &format!("osd {uuid}"))
    }

    /// The password by which a member of an ensemble of Redis logs in at the others, and its agent at it: the same on every server, each time.
    #[must_use]
    pub fn redis_password(&self, of: EnsembleId<'_>, member: MemberNumber) -> String {
        let label =
            format!("bellwether ensemble redis 1\nmember {member}\n{}\n{}", of.namespace, of.identity);
        hex(hmac::sign(&self.derivation, label.as_bytes()).as_ref())
    }

    fn fsid(&self, of: EnsembleId<'_>) -> String {
        let mut bytes = [0; 16];
        let derived = self.derived(of, "fsid");
        bytes.iter_mut().zip(derived.as_ref()).for_each(|(byte, derived)| *byte = *derived);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }

    fn cephx_key(&self, of: EnsembleId<'_>, entity: &str) -> String {
        let derived = self.derived(of, entity);
        let secret = derived.as_ref().iter().take(CEPHX_BYTES.into());
        let key: Vec<u8> = CEPHX_PREFIX.iter().chain(secret).copied().collect();
        STANDARD.encode(key)
    }

    fn derived(&self, of: EnsembleId<'_>, what: &str) -> hmac::Tag {
        let label = format!("bellwether ensemble ceph 1\n{what}\n{}\n{}", of.namespace, of.identity);
        hmac::sign(&self.derivation, label.as_bytes())
    }
}
