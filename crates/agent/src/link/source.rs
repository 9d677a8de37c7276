//! The sources of params and of the inputs of jobs: fetch them from the control plane.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::ensemble::certificates::{MemberCertificateRequest, MemberCertificates};
use bellwether_api::v1::ensemble::keys::{MemberKeys, MemberKeysRequest, OsdKeys, OsdKeysRequest};
use bellwether_api::v1::ensemble::passwords::{MemberPasswords, MemberPasswordsRequest};
use bellwether_api::v1::profile::ProfileRevision;
use bellwether_api::v1::secret::NodeSecrets;
use bellwether_api::v1::task_list::NextJob;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{EnsembleName, EntityName, Namespace, NodeName, ProfileName};

use super::connection::Connection;
use super::retry::cannot;

/// Fetches params. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ParamSource {
    pub(super) connection: Connection,
    pub(super) namespace: Namespace,
    pub(super) node: NodeName,
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
    pub(crate) fn new(connection: Connection, namespace: Namespace, node: NodeName) -> Self {
        Self { connection, namespace, node }
    }

    /// The connection that it uses.
    pub(crate) fn connection(&self) -> Connection {
        self.connection.clone()
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

impl ParamSource {
    /// Fetches the secrets that this node may read.
    ///
    /// # Errors
    /// Why they cannot be fetched now.
    pub(crate) async fn secrets(&self) -> Result<NodeSecrets, String> {
        let client = self.connection.client().map_err(|error| cannot(&error))?;
        let fetched = client.node_secrets(self.namespace.as_str(), self.node.as_str()).await;
        fetched.map_err(|error| format!("cannot read the secrets of this node: {}", cannot(&error)))
    }
}

/// Has the certificates of members of ensembles signed, and fetches their keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CertificateSource(ParamSource);

impl CertificateSource {
    pub(crate) const fn new(source: ParamSource) -> Self {
        Self(source)
    }

    /// Requests the certificates of the member that this node has of an ensemble.
    ///
    /// # Errors
    /// Why there are none now, as a sentence.
    pub(crate) async fn certify(
        &self,
        ensemble: &EnsembleName,
        request: &MemberCertificateRequest,
    ) -> Result<MemberCertificates, String> {
        let ParamSource { connection, namespace, node } = &self.0;
        let of = [namespace.as_str(), node.as_str(), ensemble.as_str()];
        let client = connection.client().map_err(|error| cannot(&error))?;
        client.member_certificate(of, request).await.map_err(|error| cannot(&error))
    }

    /// Requests the keys of the member that this node has of an ensemble.
    ///
    /// # Errors
    /// Why there are none now, as a sentence.
    pub(crate) async fn keys(
        &self,
        ensemble: &EnsembleName,
        request: &MemberKeysRequest,
    ) -> Result<MemberKeys, String> {
        let ParamSource { connection, namespace, node } = &self.0;
        let of = [namespace.as_str(), node.as_str(), ensemble.as_str()];
        let client = connection.client().map_err(|error| cannot(&error))?;
        client.member_keys(of, request).await.map_err(|error| cannot(&error))
    }

    /// Requests what the member that this node has of an ensemble needs to know its clients and the other members.
    ///
    /// # Errors
    /// Why it cannot be had now, as a sentence.
    pub(crate) async fn passwords(
        &self,
        ensemble: &EnsembleName,
        request: &MemberPasswordsRequest,
    ) -> Result<MemberPasswords, String> {
        let ParamSource { connection, namespace, node } = &self.0;
        let of = [namespace.as_str(), node.as_str(), ensemble.as_str()];
        let client = connection.client().map_err(|error| cannot(&error))?;
        client.member_passwords(of, request).await.map_err(|error| cannot(&error))
    }

    /// Requests the keys of an OSD that this node has of an ensemble.
    ///
    /// # Errors
    /// Why there are none now, as a sentence.
    pub(crate) async fn osd_keys(
        &self,
        ensemble: &EnsembleName,
        request: &OsdKeysRequest,
    ) -> Result<OsdKeys, String> {
        let ParamSource { connection, namespace, node } = &self.0;
        let of = [namespace.as_str(), node.as_str(), ensemble.as_str()];
        let client = connection.client().map_err(|error| cannot(&error))?;
        client.osd_keys(of, request).await.map_err(|error| cannot(&error))
    }
}

/// Fetches the inputs of jobs. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct JobSource(ParamSource);

/// Why a job has no inputs, as a sentence.
#[derive(Debug)]
pub(crate) enum MissingInputs {
    /// They may be available later.
    NotYet(String),
    /// The control plane refuses them: a param is missing, or does not fit.
    Refused(String),
}

impl JobSource {
    pub(crate) const fn new(source: ParamSource) -> Self {
        Self(source)
    }

    /// Sends a request of a job to the control plane, as it came from there.
    pub(crate) async fn forward(
        &self,
        job: &str,
        request: http::Request<bytes::Bytes>,
        deadline: std::time::Duration,
    ) -> Result<http::Response<bytes::Bytes>, CallError> {
        self.0.connection.client()?.forward(job, request, deadline).await
    }

    /// Takes the inputs of the task of this index of a run, which is begun from then on; without any if no such task follows, and none
    /// ever will.
    pub(crate) async fn take(&self, run: &EntityName, index: u32) -> Result<NextJob, MissingInputs> {
        let ParamSource { connection, namespace, node } = &self.0;
        let client = connection.client().map_err(|error| MissingInputs::NotYet(cannot(&error)))?;
        match client.next_job(namespace.as_str(), (node.as_str(), run.as_str()), index).await {
            Ok(next) => Ok(next),
            Err(CallError::Problem(problem)) if problem.code == Code::Refused => {
                Err(MissingInputs::Refused(problem.detail))
            }
            Err(error) => Err(MissingInputs::NotYet(cannot(&error))),
        }
    }
}

fn later(error: &CallError) -> MissingParams {
    MissingParams::NotYet(cannot(error))
}
