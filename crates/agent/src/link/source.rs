//! The source of params: asks the control plane for one revision of a profile.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::Edition;
use bellwether_core::words::counter::EditionNumber;
use bellwether_core::words::name::{Namespace, ProfileName};

use super::line::Line;

/// Asks for params. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(super) line: Line,
    pub(super) namespace: Namespace,
}

/// Why params are not here. Both fit as they are.
#[derive(Debug)]
pub(crate) enum Missing {
    /// Not now; later perhaps.
    NotYet(String),
    /// There are none.
    Never(String),
}

impl Source {
    /// One revision of a profile.
    pub(crate) async fn fetch(
        &self,
        profile: &ProfileName,
        number: EditionNumber,
    ) -> Result<Edition, Missing> {
        let client = self.line.client().map_err(|error| later(&error))?;
        match client.edition(self.namespace.as_str(), profile.as_str(), number.get()).await {
            Ok(edition) => Ok(edition),
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                Err(Missing::Never(problem.detail))
            }
            Err(error) => Err(later(&error)),
        }
    }
}

fn later(error: &CallError) -> Missing {
    Missing::NotYet(format!("could not {error}"))
}
