//! What an ensemble is to be, read from requests.

use bellwether_core::records::ensemble as core;
use bellwether_core::records::ensemble_adoption::AdoptionSource;
use bellwether_core::words::label::{Label, LabelError};
use bellwether_core::words::time::Span;

use super::{DesiredEnsemble, EnsembleSize, EnsembleSpec};
use crate::shape::{ShapeError, read_some, reason, selector};

impl EnsembleSpec {
    /// What the ensemble is to be.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self) -> Result<DesiredEnsemble, ShapeError> {
        if self.filter.trim().is_empty() {
            return Err(ShapeError::at("filter", "missing; write 'all' for every node"));
        }
        let spread = self.spread.as_deref().map(str::trim);
        if let Some(key) = spread {
            let refuse = |error: LabelError| format!("{key:?} is not the key of a label: {}", error.reason);
            Label::new(key, "x").map_err(|error| ShapeError::at("spread", refuse(error)))?;
        }
        let limits = (core::FAILOVER_AFTER, core::MIN_FAILOVER_AFTER, core::MAX_FAILOVER_AFTER);
        let failover_after = span("failover_after", self.failover_after.as_deref(), limits)?;
        let limits = (core::JOIN_WITHIN, core::MIN_JOIN_WITHIN, core::MAX_JOIN_WITHIN);
        let service = self.service.read()?;
        let is_scheduled = self.snapshots.as_ref().is_some_and(|snapshots| snapshots.every.is_some());
        if is_scheduled && !service.is_etcd() {
            let reason = format!("snapshots are there for etcd, and not for {} yet", service.title());
            return Err(ShapeError::at("snapshots.every", reason));
        }
        if self.restore.is_some() && !service.is_etcd() {
            let reason = format!("snapshots are there for etcd, and not for {} yet", service.title());
            return Err(ShapeError::at("restore", reason));
        }
        let adopt = self.adopted(&service)?;
        let default = match &service {
            core::EnsembleService::Etcd(_)
            | core::EnsembleService::Redis(_)
            | core::EnsembleService::Ceph(_) => EnsembleSize::Quorum,
            core::EnsembleService::Independent(_) => EnsembleSize::Number(1),
        };
        let size = self.size.unwrap_or(default).read(&service)?;
        Ok(DesiredEnsemble {
            service,
            size,
            filter: selector("filter", self.filter.trim())?,
            spread: spread.map(str::to_owned),
            failover_after,
            join_within: span("join_within", self.join_within.as_deref(), limits)?,
            mode: self.mode.unwrap_or_default().into(),
            snapshots: self.snapshots.clone().unwrap_or_default().read()?,
            restore: self.restore.clone().map(TryInto::try_into).transpose()?,
            adopt,
            reason: reason(&self.reason)?,
        })
    }

    /// The store that it adopts, if that makes sense.
    fn adopted(&self, service: &core::EnsembleService) -> Result<Option<AdoptionSource>, ShapeError> {
        let Some(adopt) = self.adopt.clone() else { return Ok(None) };
        if !service.is_etcd() {
            let reason =
                format!("a store that exists can be adopted of etcd, and not of {} yet", service.title());
            return Err(ShapeError::at("adopt", reason));
        }
        if self.restore.is_some() {
            let reason = "excludes restore: a store that exists has its data";
            return Err(ShapeError::at("adopt", reason));
        }
        let source = AdoptionSource::try_from(adopt)?;
        if service.has_tls() {
            let reason = "true; members of a store without TLS have none either: write false (--tls false), or found an ensemble with TLS from a \
                          snapshot of that store";
            return Err(ShapeError::at("service.etcd.tls", reason));
        }
        Ok(Some(source))
    }
}

impl EnsembleSize {
    /// The number of members, within the limits of a service.
    ///
    /// # Errors
    /// [`ShapeError`] at `size`.
    pub fn read(self, service: &core::EnsembleService) -> Result<core::EnsembleSize, ShapeError> {
        let most = service.max_members();
        let reason = match (self, service) {
            (Self::Number(number), _) if (1..=most).contains(&number) => return Ok(self.into()),
            (
                Self::Quorum,
                core::EnsembleService::Etcd(_)
                | core::EnsembleService::Redis(_)
                | core::EnsembleService::Ceph(_),
            ) => {
                return Ok(self.into());
            }
            (Self::Quorum, core::EnsembleService::Independent(_)) => {
                format!("quorum is for members that vote or replicate; write 1 to {most}")
            }
            (Self::Number(number), core::EnsembleService::Independent(_)) => {
                format!("{number}; write 1 to {most}")
            }
            (Self::Number(number), _) => format!("{number}; write 1 to {most} or quorum"),
        };
        Err(ShapeError::at("size", reason))
    }
}

/// A time within its limits: its default, the shortest and the longest.
fn span(
    place: &str,
    text: Option<&str>,
    (default, least, most): (Span, Span, Span),
) -> Result<Span, ShapeError> {
    let span: Span = read_some(place, text)?.unwrap_or(default);
    if !(least..=most).contains(&span) {
        return Err(ShapeError::at(place, format!("{span}; write {least} to {most}")));
    }
    Ok(span)
}
