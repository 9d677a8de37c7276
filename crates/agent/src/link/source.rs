//! The source of params: asks the control plane for one revision of a profile.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::ProfileRevision;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{Namespace, ProfileName};

use super::connection::Connection;

/// Asks for params. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ParamSource {
    pub(super) line: Connection,
    pub(super) namespace: Namespace,
}

/// Why params are not here. Both fit as they are.
#[derive(Debug)]
pub(crate) enum MissingParams {
    /// Not now; later perhaps.
    NotYet(String),
    /// There are none.
    Never(String),
}

impl ParamSource {
    /// One revision of a profile.
    pub(crate) async fn fetch(
        &self,
        profile: &ProfileName,
        number: ProfileRevisionNumber,
    ) -> Result<ProfileRevision, MissingParams> {
        let client = self.line.client().map_err(|error| later(&error))?;
        match client.profile_revision(self.namespace.as_str(), profile.as_str(), number.get()).await {
            Ok(profile_revision) => Ok(profile_revision),
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                Err(MissingParams::Never(problem.detail))
            }
            Err(error) => Err(later(&error)),
        }
    }
}

fn later(error: &CallError) -> MissingParams {
    MissingParams::NotYet(format!("could not {error}"))
}
