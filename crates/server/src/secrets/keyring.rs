//! The keys that secrets are encrypted with: a file beside the certificate authority, which is neither in the store nor in a backup.
//! Each line is one key; the newest is the last. All servers of an installation have the same file.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bellwether_core::records::secret::Ciphertext;
use bellwether_core::words::name::SecretKeyId;
use bellwether_core::world::World;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde_json::Value;

use crate::pki::write_private;
use crate::secret;

/// The file of the keys, in the data directory.
pub const KEYRING_FILE: &str = "pki/secrets.key";

/// Length of a key, in bytes.
const KEY_LEN: usize = 32;

/// Length of a key's id: the first half of its fingerprint, in hex.
const ID_LEN: usize = 32;

const HEADER: &str = "\
# The keys that secrets are encrypted with, the newest last. Whoever has this file and a backup can read every secret:
# keep a copy of it, and keep it apart from the backups. All servers of the installation need the same file.
";

/// The keys of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Keyring {
    file: Arc<KeyFile>,
    /// Whether it does not tell if a value is the one that is encrypted.
    is_blind: bool,
}

#[derive(Default)]
struct KeyFile {
    path: PathBuf,
    keys: Vec<SecretKey>,
}

struct SecretKey {
    id: SecretKeyId,
    key: LessSafeKey,
}

/// Why a secret cannot be encrypted or decrypted. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The file cannot be read or written.
    #[error("read the keys for secrets: {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("write the keys for secrets: {path}: {source}")]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of the file is not a key.
    #[error(
        "read the keys for secrets: line {line} of {path} is not a key; put back a copy of the file, or take the line out \
         and set the secrets again that it encrypted"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// The server has no key.
    #[error("encrypt a secret: this server has no key for secrets, since there is no {path}")]
    NoKey {
        /// The file that is missing.
        path: PathBuf,
    },
    /// The server lacks the key of a secret.
    #[error("decrypt a secret: this server lacks the key {id}, which is not in {path}")]
    Lost {
        /// The key.
        id: SecretKeyId,
        /// The file of keys.
        path: PathBuf,
    },
    /// The text was changed, or is another secret's.
    #[error("decrypt a secret: its record was changed or damaged")]
    Altered,
    /// The system's random source failed.
    #[error("{0}")]
    Random(String),
}

impl KeyringError {
    /// The next thing to try.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoKey { .. } | Self::Lost { .. } => Some(
                "copy pki/secrets.key from another server or from where a copy is kept, and restart this server; without a \
                 copy, make a new key (bellwether server secret-key) and set the secrets again",
            ),
            Self::Altered => Some("set the secret again"),
            Self::Unwritten { .. } => Some(
                "the keys are as they were; make room on the disk, or see to the rights of its directory, and retry",
            ),
            Self::File { .. } | Self::Damaged { .. } | Self::Random(_) => None,
        }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.ids()).finish()
    }
}

impl Keyring {
    /// Reads the keys in a file; there are none without it.
    ///
    /// # Errors
    /// [`KeyringError::File`] and [`KeyringError::Damaged`].
    pub fn open(path: &Path) -> Result<Self, KeyringError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(KeyringError::File { path: path.to_owned(), source }),
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
        let read = |(index, line): (usize, &str)| {
            key(line).ok_or_else(|| KeyringError::Damaged { path: path.to_owned(), line: index + 1 })
        };
        let keys = lines.map(read).collect::<Result<_, _>>()?;
        Ok(Self { file: Arc::new(KeyFile { path: path.to_owned(), keys }), is_blind: false })
    }

    /// Adds a new key to a file, or makes the file; answers the key's id.
    ///
    /// # Errors
    /// [`KeyringError`]; the file is as it was then.
    pub fn add_key(path: &Path) -> Result<SecretKeyId, KeyringError> {
        Self::open(path)?;
        let mut bytes = [0_u8; KEY_LEN];
        getrandom::fill(&mut bytes).map_err(|error| KeyringError::Random(error.to_string()))?;
        let line = STANDARD.encode(bytes);
        let before = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => HEADER.to_owned(),
            Err(source) => return Err(KeyringError::File { path: path.to_owned(), source }),
        };
        let failed = |source| KeyringError::Unwritten { path: path.to_owned(), source };
        let end = if before.ends_with('\n') { "" } else { "\n" };
        let beside = path.with_extension("new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let written = write_private(&beside, &format!("{before}{end}{line}\n"));
        written.and_then(|()| fs::rename(&beside, path)).map_err(|error| {
            // What there is of it, it is of no use; a failure to remove it adds nothing to the one that is told.
            drop(fs::remove_file(&beside));
            failed(error)
        })?;
        let dir = path.parent().unwrap_or(Path::new("/"));
        fs::File::open(dir).and_then(|mut dir| dir.flush().and_then(|()| dir.sync_all())).map_err(failed)?;
        Ok(id(&bytes))
    }

    /// The ids of the keys, the newest last.
    #[must_use]
    pub fn ids(&self) -> Vec<SecretKeyId> {
        self.file.keys.iter().map(|key| key.id.clone()).collect()
    }

    /// The key that secrets are encrypted with now: the newest that all live servers have which have any.
    ///
    /// # Errors
    /// [`KeyringError::NoKey`] without a key.
    pub fn active(&self, world: &World) -> Result<SecretKeyId, KeyringError> {
        let lists = world.servers.values().map(|kept| &kept.value.secret_keys).filter(|ids| !ids.is_empty());
        let lists: Vec<BTreeSet<&SecretKeyId>> = lists.map(|ids| ids.iter().collect()).collect();
        let shared = |key: &&SecretKey| lists.iter().all(|ids| ids.contains(&key.id));
        let newest = self.file.keys.iter().rev().find(shared).or_else(|| self.file.keys.last());
        newest.map(|key| key.id.clone()).ok_or_else(|| KeyringError::NoKey { path: self.file.path.clone() })
    }

    /// Encrypts a value for its place.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub fn seal(&self, id: &SecretKeyId, place: &str, value: &Value) -> Result<Ciphertext, KeyringError> {
        let key = self.key(id)?;
        let mut nonce = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| KeyringError::Random(error.to_string()))?;
        let mut text = value.to_string().into_bytes();
        let sealed = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(place.as_bytes());
        key.seal_in_place_append_tag(sealed, aad, &mut text).map_err(|_| KeyringError::Altered)?;
        let whole: Vec<u8> = nonce.into_iter().chain(text).collect();
        Ok(Ciphertext { key: id.clone(), text: STANDARD.encode(whole) })
    }

    /// Decrypts a value of a place.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub fn unseal(&self, place: &str, from: &Ciphertext) -> Result<Value, KeyringError> {
        let key = self.key(&from.key)?;
        let whole = STANDARD.decode(&from.text).map_err(|_| KeyringError::Altered)?;
        let (nonce, text) = whole.split_at_checked(NONCE_LEN).ok_or(KeyringError::Altered)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| KeyringError::Altered)?;
        let mut text = text.to_vec();
        let plain = key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut text);
        let plain = plain.map_err(|_| KeyringError::Altered)?;
        serde_json::from_slice(plain).map_err(|_| KeyringError::Altered)
    }

    /// The same keys, for what is tried and not done: without them telling whether a value is the one that is encrypted, anybody who
    /// may try could guess.
    #[must_use]
    pub fn blind(&self) -> Self {
        Self { is_blind: true, ..self.clone() }
    }

    /// Whether a text of a place is this value encrypted; never, if the keys are [blind](Self::blind).
    #[must_use]
    pub fn is_of(&self, place: &str, from: &Ciphertext, value: &Value) -> bool {
        !self.is_blind && self.unseal(place, from).is_ok_and(|present| present == *value)
    }

    fn key(&self, id: &SecretKeyId) -> Result<&LessSafeKey, KeyringError> {
        let found = self.file.keys.iter().find(|key| key.id == *id).map(|key| &key.key);
        found.ok_or_else(|| KeyringError::Lost { id: id.clone(), path: self.file.path.clone() })
    }
}

fn key(line: &str) -> Option<SecretKey> {
    let bytes = STANDARD.decode(line.trim()).ok().filter(|bytes| bytes.len() == KEY_LEN)?;
    let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok()?;
    Some(SecretKey { id: id(&bytes), key: LessSafeKey::new(key) })
}

fn id(bytes: &[u8]) -> SecretKeyId {
    let fingerprint = secret::hash(bytes);
    let half = fingerprint.get(..ID_LEN).unwrap_or(&fingerprint);
    SecretKeyId::parse(half).expect("hex digits are a label")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ring_of(keys: usize) -> (tempfile::TempDir, PathBuf, Keyring) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        for _ in 0..keys {
            Keyring::add_key(&path).unwrap();
        }
        let ring = Keyring::open(&path).unwrap();
        (dir, path, ring)
    }

    #[test]
    fn a_key_that_cannot_be_written_leaves_nothing_behind() {
        let (_dir, path, _) = ring_of(0);
        fs::create_dir_all(path.with_extension("new").join("in the way")).unwrap();
        let error = Keyring::add_key(&path).unwrap_err();
        assert!(error.to_string().starts_with("write the keys for secrets: "), "{error}");
        assert!(error.hint().is_some() && !path.exists(), "{error}");
    }

    #[test]
    fn a_value_reads_back_in_its_place_and_in_no_other() {
        let (_dir, _, ring) = ring_of(2);
        let id = ring.active(&World::default()).unwrap();
        assert_eq!(Some(&id), ring.ids().last());
        let sealed = ring.seal(&id, "default/profile/web/password", &json!("hunter2")).unwrap();
        assert!(!sealed.text.contains("hunter2"));
        assert_eq!(ring.unseal("default/profile/web/password", &sealed).unwrap(), json!("hunter2"));
        let elsewhere = ring.unseal("default/profile/web/other", &sealed).unwrap_err();
        assert!(matches!(elsewhere, KeyringError::Altered));
        let again = ring.seal(&id, "default/profile/web/password", &json!("hunter2")).unwrap();
        assert_ne!(again.text, sealed.text, "each encryption has a nonce of its own");
    }

    #[test]
    fn a_lost_key_a_truncated_file_and_a_changed_text_are_told_apart() {
        let (_dir, path, ring) = ring_of(1);
        let id = ring.active(&World::default()).unwrap();
        let sealed = ring.seal(&id, "a", &json!(1)).unwrap();
        let (_other_dir, _, other) = ring_of(1);
        assert!(matches!(other.unseal("a", &sealed), Err(KeyringError::Lost { .. })));
        let none = Keyring::open(&path.with_extension("none")).unwrap();
        assert!(matches!(none.active(&World::default()), Err(KeyringError::NoKey { .. })));
        for bad in ["", "AAAA", "!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            let changed = Ciphertext { text: bad.to_owned(), ..sealed.clone() };
            assert!(matches!(ring.unseal("a", &changed), Err(KeyringError::Altered)), "{bad}");
        }
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 9]).unwrap();
        let error = Keyring::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 3 of /") && error.contains("put back a copy"), "{error}");
        assert!(Keyring::add_key(&path).is_err(), "a damaged file is not written to");
    }
}
