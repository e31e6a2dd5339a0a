//! Reads the `Status` object in which the API server describes an error.

use std::time::Duration;

use kube::client::Body;

use super::{ApiError, Fault};
use crate::decode::{DecodedObject, Encoding};
use crate::path::{Target, Verb};

/// The longest pause that a server can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    /// The reason as one word: `Expired`.
    pub(crate) reason: String,
    pub(crate) message: String,
    retry_after: Option<Duration>,
}

impl Status {
    /// Reads the object. Missing fields are empty.
    pub(crate) fn of(object: &impl DecodedObject) -> Self {
        let text = |name: &str| object.scalar(&[name]).unwrap_or_default();
        let seconds = object.scalar(&["details", "retryAfterSeconds"]);
        Self {
            retry_after: seconds
                .and_then(|seconds| pause(&seconds))
                .filter(|pause| !pause.is_zero()),
            code: text("code").parse().unwrap_or_default(),
            reason: text("reason").into_owned(),
            message: text("message").into_owned(),
        }
    }

    pub(crate) fn fault(&self) -> Fault {
        match (self.code, &*self.reason) {
            (_, "Expired" | "Gone") | (410, _) => Fault::Gone,
            (_, "AlreadyExists") => Fault::AlreadyExists,
            (401, _) => Fault::Unauthorized,
            (403, _) => Fault::Forbidden,
            (404, _) => Fault::NotFound,
            (409, _) => Fault::Conflict,
            (400 | 413 | 415 | 422, _) => Fault::Invalid,
            (429, _) => Fault::TooManyRequests,
            (408 | 504, _) => Fault::Timeout,
            (500..=599, _) => Fault::Unavailable,
            _ => Fault::Refused,
        }
    }

    pub(crate) fn error(&self, verb: Verb, target: &Target) -> ApiError {
        ApiError {
            code: Some(self.code),
            retry_after: self.retry_after,
            ..ApiError::new(verb, target, self.fault(), &self.message)
        }
    }
}

/// Makes the error for an answer without success. `body` should be a `Status`, but often is not.
pub(crate) fn refused(
    verb: Verb,
    target: &Target,
    code: u16,
    form: Encoding,
    body: &[u8],
) -> ApiError {
    let status = form.object(body);
    let status = status.map_or_else(
        |_undecodable| Status::default(),
        |object| Status::of(&object),
    );
    let said = if !status.message.is_empty() {
        status.message.clone()
    } else if form == Encoding::Json {
        let text = String::from_utf8_lossy(body);
        text.trim().chars().take(200).collect()
    } else {
        status.reason.clone()
    };
    let status = Status {
        code,
        message: said,
        ..status
    };
    status.error(verb, target)
}

/// Reads the header `Retry-After` in seconds. Kubernetes sends no dates.
pub(crate) fn retry_after(response: &http::Response<Body>) -> Option<Duration> {
    let value = response.headers().get(http::header::RETRY_AFTER)?;
    pause(value.to_str().ok()?)
}

/// Reads the seconds of a pause, up to the limit.
fn pause(seconds: &str) -> Option<Duration> {
    let pause = seconds.parse().ok().map(Duration::from_secs)?;
    Some(pause.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: u16, body: &str) -> ApiError {
        let target = Target::of("/api/v1/services");
        refused(Verb::List, &target, code, Encoding::Json, body.as_bytes())
    }

    #[test]
    fn the_reason_is_more_precise_than_the_code() {
        let exists = fault(
            409,
            r#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"x exists"}"#,
        );
        assert_eq!(
            (exists.fault, &*exists.message),
            (Fault::AlreadyExists, "x exists")
        );
        assert_eq!(
            fault(409, r#"{"reason":"Conflict"}"#).fault,
            Fault::Conflict
        );
        assert_eq!(fault(410, r#"{"reason":"Expired"}"#).fault, Fault::Gone);
        assert_eq!(fault(418, "").fault, Fault::Refused);
    }

    #[test]
    fn a_body_that_is_no_status_is_shown_in_part() {
        let error = fault(502, &"<html>".repeat(100));
        assert_eq!(
            (error.fault, error.message.len()),
            (Fault::Unavailable, 200)
        );
    }

    #[test]
    fn retry_after_is_read_from_header_and_status() {
        let error = fault(429, r#"{"details":{"retryAfterSeconds":7}}"#);
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(error.fault, Fault::TooManyRequests);
    }

    #[test]
    fn a_server_cannot_ask_for_an_endless_pause() {
        let longest = Some(MAX_RETRY_AFTER);
        let body = r#"{"details":{"retryAfterSeconds":18446744073709551615}}"#;
        assert_eq!(fault(429, body).retry_after, longest);
        let response = http::Response::builder()
            .header(http::header::RETRY_AFTER, u64::MAX)
            .body(Body::empty());
        assert_eq!(retry_after(&response.unwrap()), longest);
    }
}
