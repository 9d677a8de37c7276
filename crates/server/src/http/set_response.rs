//! Responses of requests that create or change an object.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;

use super::input::json;

/// The response of a PUT: 201 for a new object, 200 for a changed one.
pub(crate) struct SetResponse<T> {
    pub(crate) is_new: bool,
    pub(crate) value: T,
}

impl<T: Serialize> IntoResponse for SetResponse<T> {
    fn into_response(self) -> Response {
        let status = if self.is_new { StatusCode::CREATED } else { StatusCode::OK };
        json(status, serde_json::to_vec(&self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_and_replaced_objects_have_different_statuses() {
        let status = |is_new| SetResponse { is_new, value: () }.into_response().status();
        assert_eq!((status(true), status(false)), (StatusCode::CREATED, StatusCode::OK));
    }
}
