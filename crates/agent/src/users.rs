//! Users of this machine, by name or number, as `/etc/passwd` lists them. Changes none.

use std::fs;

/// The file that lists users.
const PASSWD: &str = "/etc/passwd";

/// The name or the number of a user, as configured; whether there is such a user is known once it is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName(String);

/// A user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserAccount {
    pub(crate) uid: u32,
    /// Its primary group; `None` for a number that no line of `/etc/passwd` has.
    pub(crate) gid: Option<u32>,
}

impl UserName {
    /// Parses the name or the number of a user.
    ///
    /// # Errors
    /// What a name is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if text.is_empty() || text.len() > 32 || text.starts_with('-') || !text.bytes().all(plain) {
            return Err(format!("{text:?} is not the name or the number of a user"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The user; it may be created after the configuration was read. Reads `/etc/passwd`.
    ///
    /// # Errors
    /// One line with the name and the reason.
    pub(crate) fn look_up(&self) -> Result<UserAccount, String> {
        let failed = |reason: String| format!("cannot find the user {}: {reason}", self.0);
        let listed = fs::read_to_string(PASSWD).map_err(|error| failed(format!("{PASSWD}: {error}")))?;
        self.among(&listed).ok_or_else(|| failed(format!("{PASSWD} does not list it")))
    }

    /// User and group as which a program is started; `None` if they are the agent's own. Reads `/etc/passwd`.
    ///
    /// # Errors
    /// One line with the name and the reason.
    pub(crate) fn program(&self) -> Result<Option<(u32, u32)>, String> {
        let UserAccount { uid, gid } = self.look_up()?;
        let own = rustix::process::geteuid();
        if uid == own.as_raw() {
            return Ok(None);
        }
        if !own.is_root() {
            return Err(format!(
                "cannot start a program as user {}: this agent does not run as root",
                self.0
            ));
        }
        let gid = gid.ok_or_else(|| {
            format!("cannot start a program as user {}: {PASSWD} does not list its group", self.0)
        })?;
        Ok(Some((uid, gid)))
    }

    fn among(&self, listed: &str) -> Option<UserAccount> {
        let number: Option<u32> = self.0.parse().ok();
        let found = listed.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let uid: u32 = uid.parse().ok()?;
            let is_it = number.map_or(name == self.0, |number| number == uid);
            is_it.then_some(UserAccount { uid, gid: gid.parse().ok() })
        });
        found.or(number.map(|uid| UserAccount { uid, gid: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "root:x:0:0:root:/root:/bin/sh\n# no user\napp:x:980:975::/srv/app:/bin/false\n";

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let found = |text: &str| UserName::parse(text).unwrap().among(LISTED);
        assert_eq!(found("app"), Some(UserAccount { uid: 980, gid: Some(975) }));
        assert_eq!(found("980"), found("app"));
        assert_eq!(found("7"), Some(UserAccount { uid: 7, gid: None }));
        assert_eq!(found("nobody-here"), None);
    }

    #[test]
    fn what_is_no_name_of_a_user_is_refused() {
        for text in ["", "-x", "a b", "a:b", "../x", &"x".repeat(33)] {
            assert!(UserName::parse(text).is_err(), "{text}");
        }
    }
}
