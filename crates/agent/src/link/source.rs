//! The source of params: fetches a revision of a profile from the control plane.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::ProfileRevision;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{Namespace, ProfileName};

use super::connection::Connection;
use super::retry::cannot;

/// Fetches params. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ParamSource {
    pub(super) connection: Connection,
    pub(super) namespace: Namespace,
}

/// Why params are missing, as a sentence.
#[derive(Debug)]
pub(crate) enum MissingParams {
    /// They may be available later.
    NotYet(String),
    /// There is no such revision.
    Never(String),
}

impl ParamSource {
    pub(crate) fn new(connection: Connection, namespace: Namespace) -> Self {
        Self { connection, namespace }
    }

    /// Fetches one revision of a profile.
    pub(crate) async fn fetch(
        &self,
        profile: &ProfileName,
        number: ProfileRevisionNumber,
    ) -> Result<ProfileRevision, MissingParams> {
        let client = self.connection.client().map_err(|error| later(&error))?;
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
    MissingParams::NotYet(cannot(error))
}
