//! Errors of the API.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::state::Stopped;

/// An error as JSON.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    words: String,
}

#[derive(Debug, Serialize)]
struct RefusalBody {
    error: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
        }
    }
}

impl From<Stopped> for Refusal {
    fn from(stopped: Stopped) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, stopped.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(RefusalBody { error: self.words })).into_response()
    }
}
