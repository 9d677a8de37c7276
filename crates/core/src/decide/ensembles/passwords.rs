//! The passwords of the clients of an ensemble: which value of which secret its members are to take, and who does.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::ensemble::Ensemble;
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase};
use crate::records::member::{MemberReport, PasswordVersions};
use crate::records::secret::Secret;
use crate::words::counter::MemberNumber;
use crate::world::fleet::Fleet;

/// Which value of a secret that is: no two have the same, also after the secret was deleted and made anew.
#[must_use]
pub fn version(secret: &Secret) -> String {
    format!("{}-{:x}", secret.revision, secret.annotation.at.as_millis())
}

/// The values that the members are to take. Of a secret that is not there it stays the one that was: clients are not let in without any.
pub(super) fn current(fleet: &Fleet, ensemble: &Ensemble, recorded: &EnsembleMembers) -> PasswordVersions {
    let of = |name| {
        let present = fleet.secrets.get(name).map(|kept| version(&kept.value));
        present.or_else(|| recorded.passwords.get(name).cloned()).unwrap_or_default()
    };
    let names = ensemble.service.password_secrets().iter();
    names.map(|name| (name.clone(), of(name))).collect()
}

/// Whether a member takes the passwords that it is to take, and no others; `None` if nobody knows.
#[must_use]
pub fn is_current(members: &EnsembleMembers, report: Option<&MemberReport>) -> Option<bool> {
    report?.passwords.as_ref().map(|taken| *taken == members.passwords)
}

/// Who does not take the passwords that it is to take, in one line; none where all do, or clients need no passwords.
#[must_use]
pub fn lines<'a>(
    members: &EnsembleMembers,
    is_held: bool,
    report: impl Fn(MemberNumber) -> Option<&'a MemberReport>,
) -> Vec<String> {
    let serving = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Serving);
    let serving: Vec<_> =
        serving.map(|(number, _)| (*number, is_current(members, report(*number)))).collect();
    let all = |is: Option<bool>| -> Vec<String> {
        let found = serving.iter().filter(|(_, found)| *found == is);
        found.map(|(number, _)| number.to_string()).collect()
    };
    let (outdated, unknown) = (all(Some(false)), all(None));
    let names: Vec<&str> = members.passwords.keys().map(|name| name.as_str()).collect();
    let what = match names.as_slice() {
        [] => "are open to clients without a password".to_string(),
        [name] => format!("take the present value of secret {name} as the password of clients"),
        names => {
            format!("take the present values of secrets {} as passwords of clients", names.join(" and "))
        }
    };
    let mut lines = Vec::new();
    if is_held && !outdated.is_empty() {
        lines.push(format!(
            "members {} keep the passwords of clients that they have, which are others than are recorded, as long as it is held; once it goes on they take those \
             that are recorded: set the secrets again before, bellwether secret set NAME, or clients are refused",
            outdated.join(", ")
        ));
    } else if !outdated.is_empty() {
        lines.push(format!("not all members {what} yet: {} left", outdated.join(", ")));
    } else if !names.is_empty() && unknown.is_empty() && !serving.is_empty() {
        lines.push(format!("all members {what}"));
    }
    if !unknown.is_empty() && (!names.is_empty() || !outdated.is_empty()) {
        lines.push(format!("whether members {} {what} is not known", unknown.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests;
