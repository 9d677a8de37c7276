//! Bodies of PATCH: the route's own shape, JSON Patch or JSON Merge Patch, by their media types.

use axum::extract::{FromRequest, Request};
use bellwether_api::media::{JSON_PATCH, MERGE_PATCH};
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::profile::ParamsPatch;
use http::header;
use serde::de::DeserializeOwned;

use super::input::{JsonBody, body, parse_any};
use super::problem::Failure;
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
        below.into_iter().map(|field| format!("/params{field}")).collect()
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
