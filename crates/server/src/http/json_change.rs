//! Bodies of PATCH: the route's own shape, JSON Patch or JSON Merge Patch, by their media types.

use axum::extract::{FromRequest, Request};
use bellwether_api::media::{JSON_PATCH, MERGE_PATCH};
use bellwether_api::problem::ConflictingValue;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::words::name::Namespace;
use http::header;
use serde::de::DeserializeOwned;

use super::auth::Authenticated;
use super::input::{JsonBody, body, parse_any};
use super::problem::Failure;
use crate::ops::OpError;
use crate::ops::expectation::member_pointer;
use crate::ops::json_change::JsonChange;

/// A change, in one of its forms.
pub(crate) enum ChangeBody<T> {
    /// In the route's own shape.
    Own(T),
    /// In a standard form.
    Standard(JsonChange),
}

impl ChangeBody<ParamsPatch> {
    /// The fields of the object that it writes, as JSON pointers.
    pub(crate) fn fields(&self) -> Vec<String> {
        let below: Vec<String> = match self {
            Self::Own(patch) => {
                patch.set.keys().chain(&patch.remove).map(|key| member_pointer(key)).collect()
            }
            Self::Standard(change) => change.fields(),
        };
        below.into_iter().map(in_params).collect()
    }

    /// The fields of the object that it reads, as JSON pointers.
    fn read_fields(&self) -> Vec<String> {
        let below: Vec<String> = match self {
            Self::Own(patch) => {
                patch.if_equal.keys().chain(&patch.if_absent).map(|key| member_pointer(key)).collect()
            }
            Self::Standard(change) => change.read_fields(),
        };
        below.into_iter().map(in_params).collect()
    }
}

fn in_params(field: String) -> String {
    format!("/params{field}")
}

/// Whose params are changed, and who changes them: a right to change a param is none to read the others.
pub(crate) struct ParamsAccess<'a> {
    pub(crate) caller: &'a Authenticated,
    pub(crate) kind: ObjectKind,
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a Namespace,
}

impl ParamsAccess<'_> {
    /// Refuses a change of fields that the caller may not change, or that reads those that they may neither read nor change.
    pub(crate) fn require(&self, change: &ChangeBody<ParamsPatch>) -> Result<(), Failure> {
        let object = (self.name, self.namespace);
        self.caller.require_fields(self.update(), &change.fields(), object)?;
        match self.reading() {
            Err(denied) if !change.read_fields().iter().all(|field| self.may_change(field)) => Err(denied),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// A refusal of the change, without the value that the caller may not read.
    pub(crate) fn refusal(&self, error: OpError) -> Failure {
        if self.reading().is_ok() {
            return error.into();
        }
        let OpError::Differs { conflict, hint, .. } = error else { return error.into() };
        let ConflictingValue { pointer, revision, .. } = conflict;
        let reason = format!(
            "change {} {}: {pointer} is not as expected (revision {revision}); nothing was changed",
            self.kind.as_str(),
            self.name
        );
        OpError::Differs { reason, conflict: ConflictingValue { pointer, revision, value: None }, hint }
            .into()
    }

    /// Leaves in the answer what the caller may read or change.
    pub(crate) fn hide(&self, params: &mut Params) {
        if self.reading().is_err() {
            params.retain(|key, _| self.may_change(&in_params(member_pointer(key))));
        }
    }

    fn update(&self) -> Right {
        Right::update(self.kind)
    }

    fn reading(&self) -> Result<(), Failure> {
        self.caller.require(Right::get(self.kind), Some(self.name), Some(self.namespace))
    }

    fn may_change(&self, field: &str) -> bool {
        self.caller.require_field(self.update(), field, (Some(self.name), Some(self.namespace))).is_ok()
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ChangeBody<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let media = request.headers().get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media =
            media.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            JSON_PATCH => Ok(Self::Standard(JsonChange::Patch(parse_any(&body(request).await?)?))),
            MERGE_PATCH => {
                let change: serde_json::Value = parse_any(&body(request).await?)?;
                if !change.is_object() {
                    return Err(ShapeError::at("the body", "expected a JSON object").into());
                }
                Ok(Self::Standard(JsonChange::Merge(change)))
            }
            _ => JsonBody::from_request(request, state).await.map(|JsonBody(own)| Self::Own(own)),
        }
    }
}
