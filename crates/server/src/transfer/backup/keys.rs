//! The keys of an installation in a backup: the files that a server needs besides its store, each on a line.

use serde::{Deserialize, Serialize};

use crate::key_files::{KEY_FILES, KeyDir, KeyText};
use crate::pki;
use crate::secrets::keyring::KEYRING_FILE;
use crate::transfer::TransferError;

/// The line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyLine {
    file: String,
    text: String,
}

impl From<KeyText> for KeyLine {
    fn from(KeyText { file, text }: KeyText) -> Self {
        Self { file: file.to_owned(), text }
    }
}

/// Reads the keys in a directory, which are to be those of the installation whose authority has this fingerprint.
pub(super) async fn read(dir: &KeyDir, ca_fingerprint: &str) -> Result<Vec<KeyText>, TransferError> {
    let reader = dir.clone();
    let read = tokio::task::spawn_blocking(move || reader.texts()).await;
    let texts = read.map_err(|error| damaged(&error.to_string()))??;
    match is_of(&texts, ca_fingerprint) {
        true => Ok(texts),
        false => Err(TransferError::OtherKeys { dir: dir.data_dir().display().to_string() }),
    }
}

/// The key of a line; none if it is another line.
///
/// # Errors
/// [`TransferError::Damaged`] if it is for a file that has no keys: nothing else is ever written for a backup.
pub(super) fn of(line: &[u8]) -> Result<Option<KeyText>, TransferError> {
    let Ok(KeyLine { file, text }) = serde_json::from_slice(line) else { return Ok(None) };
    let known = KEY_FILES.into_iter().find(|known| *known == file);
    let file = known.ok_or_else(|| damaged(&format!("{} is no file with keys", file.escape_debug())))?;
    Ok(Some(KeyText { file, text }))
}

/// Checks that the keys of a backup are what a server starts with, each of them once.
pub(super) fn check(keys: &[KeyText], ca_fingerprint: &str) -> Result<(), TransferError> {
    let has = |file: &str| keys.iter().filter(|key| key.file == file).count();
    let whole = KEY_FILES.into_iter().all(|file| match file {
        KEYRING_FILE => has(file) <= 1,
        file => has(file) == 1,
    });
    match whole && is_of(keys, ca_fingerprint) {
        true => Ok(()),
        false => Err(damaged("the keys in it are not those of its installation")),
    }
}

fn damaged(reason: &str) -> TransferError {
    TransferError::Damaged(reason.to_owned())
}

/// Whether the certificate among these files has this fingerprint.
fn is_of(keys: &[KeyText], fingerprint: &str) -> bool {
    let mut certificates = keys.iter().filter_map(|key| pki::fingerprint(&key.text));
    certificates.any(|found| found == fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_keys_are_read_and_other_lines_are_none() {
        let key = of(br#"{"file":"pki/ca.key","text":"k"}"#).unwrap().unwrap();
        assert_eq!((key.file, key.text.as_str()), ("pki/ca.key", "k"));
        assert!(of(br#"{"key":"/bw/ns/default/node/web-1","value":"{}"}"#).unwrap().is_none());
        for elsewhere in ["../../etc/passwd", "pki/../ca.key", "/etc/passwd", ""] {
            let line = serde_json::json!({ "file": elsewhere, "text": "" }).to_string();
            assert!(matches!(of(line.as_bytes()), Err(TransferError::Damaged(_))), "{elsewhere}");
        }
    }
}
