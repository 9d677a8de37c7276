//! Versions of entities. Owns which texts are valid versions.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// Longest version, in bytes: room for a digest with its algorithm.
pub const MAX_VERSION_BYTES: usize = 128;

/// A version of an entity. Case-sensitive, 1 to 128 bytes of letters, digits and `. _ + : @ / ~ -`, starting
/// with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

/// Why a text is not a valid version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid version: {reason}")]
pub struct VersionError {
    /// The text, cut to a readable length.
    pub text: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    /// [`VersionError`] with the rule that is broken.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let refuse = |reason| VersionError { text: text.chars().take(80).collect(), reason };
        let inner = |b: u8| b.is_ascii_alphanumeric() || b"._+:@/~-".contains(&b);
        let first = text.bytes().next().ok_or_else(|| refuse("it is empty"))?;
        if text.len() > MAX_VERSION_BYTES {
            Err(refuse("it is longer than 128 characters"))
        } else if !first.is_ascii_alphanumeric() {
            Err(refuse("it must start with a letter or digit"))
        } else if !text.bytes().all(inner) {
            Err(refuse("only letters, digits and '. _ + : @ / ~ -' are allowed"))
        } else if text.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            // A version may be part of a path on a node.
            Err(refuse("a part between two '/' must be neither empty nor '.' nor '..'"))
        } else {
            Ok(Self(text.into()))
        }
    }

    /// The version of something numbered: `name@number`; `None` if that is not a valid version.
    #[must_use]
    pub fn numbered(name: &str, number: u64) -> Option<Self> {
        Self::parse(&alloc::format!("{name}@{number}")).ok()
    }

    /// Name and number of a version like `name@7`; `None` for any other, including `name@07`.
    #[must_use]
    pub fn as_numbered(&self) -> Option<(&str, u64)> {
        let (name, digits) = self.0.rsplit_once('@')?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        Some((name, digits.parse().ok().filter(|_| plain)?))
    }

    /// The text of the version.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::str::FromStr for Version {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_differ_by_case() {
        assert_ne!(Version::parse("v1").unwrap(), Version::parse("V1").unwrap());
    }

    #[test]
    fn a_counted_version_reads_as_its_name_and_number() {
        let web = Version::numbered("web", 7).unwrap();
        assert_eq!((web.as_str(), web.as_numbered()), ("web@7", Some(("web", 7))));
        for other in ["web", "web@", "web@07", "web@0", "web@x", "web@+7", "web@99999999999999999999"] {
            assert_eq!(Version::parse(other).unwrap().as_numbered(), None, "{other}");
        }
    }

    #[test]
    fn empty_spaced_and_shell_like_versions_are_refused() {
        for bad in [
            "",
            " ",
            "v 1",
            "-v",
            "v1;rm",
            "$v",
            "v1\n",
            "../x",
            "v/../../evil",
            "v/..",
            "v/./x",
            "v//x",
            "v/",
            &"v".repeat(129),
        ] {
            assert!(Version::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["v1", "v..2", "v/..x", "1.2.3+build", "sha256:abc", "app@7", "2026/11/20", "1.0~rc1"] {
            assert!(Version::parse(good).is_ok(), "{good:?}");
        }
    }
}
