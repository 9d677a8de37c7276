//! The store that something else founded and an ensemble adopts: requests, orders, answers and what is stored of it.

use std::collections::BTreeSet;

use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::ensemble_adoption as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, map_from, read, try_map_from};
use crate::v1::annotation::Annotation;

/// The store that an ensemble adopts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptSpec {
    /// URLs at which members of the store serve clients, 1 to 16, each with `http` and a port. Those that are named when it is adopted all have to
    /// answer.
    #[schema(example = json!(["http://10.0.0.9:2379"]))]
    pub endpoints: Vec<String>,
}

/// Request that a member of the store of an ensemble which is not of the ensemble is removed, or that it is not any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveForeignMember {
    /// The id that the store gave it, in hexadecimal.
    #[schema(example = "8e9e05c52164694d")]
    pub id: String,
    /// Withdraws what was asked, unless it is removed already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A member of the store of an ensemble that is not of the ensemble: something else runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ForeignMember {
    /// The id that the store gave it, in hexadecimal.
    pub id: String,
    /// Its name in the store; absent if it was never started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// URL at which other members reach it.
    pub peer_url: String,
    /// Whether it votes.
    pub votes: bool,
    /// Whether it answers there, as a member of the ensemble saw.
    pub answers: bool,
    /// Since when that is so, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// Who asked that it is removed from the store; absent if nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Annotation>,
}

/// What an order says of a store that was adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AdoptionOrder {
    /// URLs at which members of the store serve clients, or did.
    pub endpoints: Vec<String>,
    /// The id of the store; absent before it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
}

/// What is known of a store that was adopted, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAdoption {
    /// URLs at which members of the store serve clients, or did.
    pub endpoints: Vec<String>,
    /// The id of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The members that are not of the ensemble.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignMember>,
}

impl From<&core::AdoptionSource> for AdoptSpec {
    fn from(from: &core::AdoptionSource) -> Self {
        Self { endpoints: texts(&from.endpoints) }
    }
}

impl TryFrom<AdoptSpec> for core::AdoptionSource {
    type Error = ShapeError;
    fn try_from(from: AdoptSpec) -> Result<Self, ShapeError> {
        let most = core::MAX_ENDPOINTS;
        let endpoints = endpoints("adopt.endpoints", &from.endpoints)?;
        if endpoints.is_empty() || endpoints.len() > most {
            let reason = format!("{} URLs; write 1 to {most}", endpoints.len());
            return Err(ShapeError::at("adopt.endpoints", reason));
        }
        Ok(Self { endpoints })
    }
}

impl From<&core::AdoptionOrder> for AdoptionOrder {
    fn from(from: &core::AdoptionOrder) -> Self {
        Self { endpoints: texts(&from.endpoints), cluster_id: from.cluster_id.clone() }
    }
}

impl TryFrom<AdoptionOrder> for core::AdoptionOrder {
    type Error = ShapeError;
    fn try_from(from: AdoptionOrder) -> Result<Self, ShapeError> {
        let endpoints = endpoints("adoption.endpoints", &from.endpoints)?;
        Ok(Self { endpoints, cluster_id: from.cluster_id })
    }
}

impl ForeignMember {
    /// The members of a store that are not of the ensemble.
    #[must_use]
    pub fn all(adoption: &core::Adoption) -> Vec<Self> {
        let shape = |(id, member): (&String, &core::ForeignMember)| Self {
            id: id.clone(),
            name: member.name.clone(),
            peer_url: member.peer_url.clone(),
            votes: member.votes,
            answers: member.answers,
            since_ms: member.since.as_millis(),
            removal: adoption.removals.get(id).map(Annotation::from),
        };
        adoption.foreign.iter().map(shape).collect()
    }

    fn read(self) -> (String, core::ForeignMember) {
        let member = core::ForeignMember {
            name: self.name,
            peer_url: self.peer_url,
            votes: self.votes,
            answers: self.answers,
            since: Timestamp::from_millis(self.since_ms),
        };
        (self.id, member)
    }
}

impl From<&core::Adoption> for StoredAdoption {
    fn from(from: &core::Adoption) -> Self {
        Self {
            endpoints: texts(&from.endpoints),
            cluster_id: from.cluster_id.clone(),
            foreign: ForeignMember::all(from),
        }
    }
}

impl TryFrom<StoredAdoption> for core::Adoption {
    type Error = ShapeError;
    fn try_from(from: StoredAdoption) -> Result<Self, ShapeError> {
        let removal = |member: &ForeignMember| {
            let asked = member.removal.clone()?;
            let asked = CoreAnnotation::try_from(asked);
            let asked = asked.map_err(|error: ShapeError| error.within("adoption.foreign.removal"));
            Some(asked.map(|asked| (member.id.clone(), asked)))
        };
        Ok(Self {
            endpoints: endpoints("adoption.endpoints", &from.endpoints)?,
            cluster_id: from.cluster_id,
            removals: try_map_from(from.foreign.iter().filter_map(removal))?,
            foreign: map_from(from.foreign.into_iter().map(ForeignMember::read)),
        })
    }
}

fn texts(endpoints: &BTreeSet<core::StoreEndpoint>) -> Vec<String> {
    endpoints.iter().map(ToString::to_string).collect()
}

fn endpoints(place: &str, texts: &[String]) -> Result<BTreeSet<core::StoreEndpoint>, ShapeError> {
    texts.iter().map(|text| read(place, text)).collect()
}
