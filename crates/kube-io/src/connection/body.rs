//! Reads the body of an answer in parts, as it arrives.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::timeout;

use super::inflate::Inflater;
use crate::decode::Encoding;
use crate::error::{self, ApiError, Fault};
use crate::meter::Meter;
use crate::path::{Target, Verb};

/// The longest answer or watch event. Kubernetes API servers send nothing longer.
const MAX_BODY: usize = 256 << 20;

/// The time limit for an answer, and for the next part of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Chunks {
    meter: Arc<Meter>,
    verb: Verb,
    target: Target,
    resource: String,
    form: Encoding,
    /// None if the body is not compressed.
    inflater: Option<Inflater>,
    body: Body,
}

impl Chunks {
    pub(super) fn new(
        meter: Arc<Meter>,
        verb: Verb,
        target: Target,
        answer: http::Response<Body>,
    ) -> Self {
        let resource = target.full_resource();
        let header = |name| {
            let value = answer.headers().get(name);
            value.and_then(|value| value.to_str().ok())
        };
        let form = Encoding::of(header(CONTENT_TYPE).unwrap_or_default());
        let is_compressed = header(CONTENT_ENCODING) == Some("gzip");
        Self {
            meter,
            verb,
            target,
            resource,
            form,
            inflater: is_compressed.then(Inflater::new),
            body: answer.into_body(),
        }
    }

    pub(crate) fn form(&self) -> Encoding {
        self.form
    }

    /// Returns the next part; `None` at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let frame =
                frame.map_err(|error| error::cause::broken(self.verb, &self.target, &error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.meter.received(&self.resource, data.len());
            let Some(inflater) = &mut self.inflater else {
                return Ok(Some(data));
            };
            let part = inflater.next(&data, MAX_BODY);
            let part = part.map_err(|error| self.error(Fault::DecodeError, &error))?;
            if !part.is_empty() {
                return Ok(Some(part));
            }
        }
    }

    pub(crate) async fn all(mut self) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        loop {
            let next = timeout(PATIENCE, self.next()).await;
            let next = next.map_err(|_elapsed| {
                self.error(Fault::Timeout, "the answer stopped in the middle")
            })?;
            let Some(chunk) = next? else { break };
            if all.len() + chunk.len() > MAX_BODY {
                return Err(self.error(Fault::DecodeError, "the answer does not end"));
            }
            all.extend_from_slice(&chunk);
        }
        let ended = self.inflater.as_mut().map_or(Ok(()), Inflater::end);
        ended.map_err(|error| self.error(Fault::DecodeError, &error))?;
        Ok(all)
    }

    /// An error of the request that this answers.
    pub(crate) fn error(&self, fault: Fault, message: &(impl ToString + ?Sized)) -> ApiError {
        ApiError::new(self.verb, &self.target, fault, message)
    }
}
