//! Calls about ensembles.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::ensemble::adoption::RemoveForeignMember;
use crate::v1::ensemble::certificates::{
    ClientCertificateRequest, EnsembleCertificate, MemberCertificateRequest, MemberCertificates,
};
use crate::v1::ensemble::keys::{MemberKeys, MemberKeysRequest, OsdKeys, OsdKeysRequest};
use crate::v1::ensemble::osds::{RemoveOsd, ReplaceOsd};
use crate::v1::ensemble::passwords::{MemberPasswords, MemberPasswordsRequest};
use crate::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use crate::v1::ensemble::snapshots::TakeSnapshot;
use crate::v1::ensemble::{Ensemble, EnsembleSpec, FailoverEnsemble, PlanEnsemble, ScaleEnsemble};
use crate::v1::page::Page;

impl Client {
    /// Lists the ensembles of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ensembles(&self, namespace: &str) -> Result<Page<Ensemble>, CallError> {
        self.list(&fill(paths::ENSEMBLES, &[namespace])).await
    }

    /// Reads an ensemble, with its members and what is to happen to them.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ensemble(&self, namespace: &str, name: &str) -> Result<Ensemble, CallError> {
        self.get(&fill(paths::ENSEMBLE, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates an ensemble, or changes one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_ensemble(
        &self,
        namespace: &str,
        name: &str,
        spec: &EnsembleSpec,
    ) -> Result<Ensemble, CallError> {
        self.send(Method::PUT, &fill(paths::ENSEMBLE, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Changes the number of members of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn scale_ensemble(
        &self,
        namespace: &str,
        name: &str,
        scale: &ScaleEnsemble,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_SCALE, &[namespace, name]);
        self.send(Method::POST, &path, scale, DEFAULT_DEADLINE).await
    }

    /// Has the primary of an ensemble hand over, or another member become it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn fail_over_ensemble(
        &self,
        namespace: &str,
        name: &str,
        request: &FailoverEnsemble,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_FAILOVER, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks that another member takes the place of one of an ensemble, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn replace_member(
        &self,
        namespace: &str,
        name: &str,
        request: &ReplaceMember,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_REPLACE, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks that the members of an ensemble are restarted, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn restart_ensemble(
        &self,
        namespace: &str,
        name: &str,
        request: &RollMembers,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_RESTART, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks that the members of an ensemble are defragmented, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn defragment_ensemble(
        &self,
        namespace: &str,
        name: &str,
        request: &RollMembers,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_DEFRAGMENT, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Goes on with an ensemble as it is recorded, after a restore of the control plane.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn resume_ensemble(
        &self,
        namespace: &str,
        name: &str,
        request: &ResumeEnsemble,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_RESUME, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks for the removal of an OSD of an ensemble, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn remove_osd(
        &self,
        namespace: &str,
        name: &str,
        request: &RemoveOsd,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_REMOVE_OSD, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks for the replacement of an OSD of an ensemble by one with another device, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn replace_osd(
        &self,
        namespace: &str,
        name: &str,
        request: &ReplaceOsd,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_REPLACE_OSD, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks for the removal of a member of the store of an ensemble that is not of the ensemble, or withdraws that.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn remove_foreign_member(
        &self,
        namespace: &str,
        name: &str,
        request: &RemoveForeignMember,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_REMOVE_FOREIGN_MEMBER, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks for a snapshot of the data of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn snapshot_ensemble(
        &self,
        namespace: &str,
        name: &str,
        request: &TakeSnapshot,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_SNAPSHOT, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Asks what would happen to the members of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn plan_ensemble(
        &self,
        namespace: &str,
        name: &str,
        asked: &PlanEnsemble,
    ) -> Result<Ensemble, CallError> {
        let path = fill(paths::ENSEMBLE_PLAN, &[namespace, name]);
        self.send(Method::POST, &path, asked, DEFAULT_DEADLINE).await
    }

    /// Requests a certificate for a client of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ensemble_certificate(
        &self,
        namespace: &str,
        name: &str,
        request: &ClientCertificateRequest,
    ) -> Result<EnsembleCertificate, CallError> {
        let path = fill(paths::ENSEMBLE_CERTIFICATE, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Requests the certificates of the member that a node has of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn member_certificate(
        &self,
        [namespace, node, ensemble]: [&str; 3],
        request: &MemberCertificateRequest,
    ) -> Result<MemberCertificates, CallError> {
        let path = fill(paths::MEMBER_CERTIFICATE, &[namespace, node, ensemble]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Requests the keys of the member that a node has of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn member_keys(
        &self,
        [namespace, node, ensemble]: [&str; 3],
        request: &MemberKeysRequest,
    ) -> Result<MemberKeys, CallError> {
        let path = fill(paths::MEMBER_KEYS, &[namespace, node, ensemble]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Requests what the member that a node has of an ensemble needs to know its clients and the other members.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn member_passwords(
        &self,
        [namespace, node, ensemble]: [&str; 3],
        request: &MemberPasswordsRequest,
    ) -> Result<MemberPasswords, CallError> {
        let path = fill(paths::MEMBER_PASSWORDS, &[namespace, node, ensemble]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Requests the keys of an OSD that a node has of an ensemble.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn osd_keys(
        &self,
        [namespace, node, ensemble]: [&str; 3],
        request: &OsdKeysRequest,
    ) -> Result<OsdKeys, CallError> {
        let path = fill(paths::OSD_KEYS, &[namespace, node, ensemble]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Deletes an ensemble: its members stop, and their data stay on their nodes.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_ensemble(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::ENSEMBLE, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
