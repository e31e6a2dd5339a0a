//! Sends the requests that [`ListWatch`] decides on and passes the decoded objects to a [`Sink`].

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::chance::chance;
use super::event::{DriverError, DriverStep, Event, NextAttempt, Sink};
use super::resource::Resource;
use super::state_machine::{Input, ListPhase, ListWatch, ListWatchRequest};
use super::stream::Stream;
use crate::connection::{Call, Connection};
use crate::decode::{DecodedObject, Encoding, Page, WatchEventType};
use crate::error::{ApiError, Fault, Status};
use crate::not_found::explain_not_found;
use crate::path::{Target, Verb};

/// The server sends a bookmark about every minute. A stream that is silent for longer is broken.
const SILENCE: Duration = Duration::from_secs(90);

/// The `timeoutSeconds` of a watch. The driver adds up to the same time again, so that the streams
/// of many clients do not end together.
const STREAM: f64 = 300.0;

pub struct Driver<O> {
    connection: Connection,
    resource: Resource,
    /// The name of the object, if only one is requested.
    only: Option<Arc<str>>,
    list_watch: ListWatch,
    stream: Option<Stream>,
    /// An error that was not reported yet.
    error: Option<ApiError>,
    epoch: Instant,
    object: PhantomData<fn() -> O>,
}

impl<O> std::fmt::Debug for Driver<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Driver({})", self.resource.path)
    }
}

impl<O: DecodedObject> Driver<O> {
    /// Makes a driver. It sends nothing before the first [`Driver::step`].
    pub fn new(connection: Connection, resource: Resource) -> Self {
        Self {
            connection,
            resource,
            only: None,
            list_watch: ListWatch::new(resource.optional),
            stream: None,
            error: None,
            epoch: Instant::now(),
            object: PhantomData,
        }
    }

    /// Restarts with a list of all objects, or of the one object `only`. Resets the pauses.
    pub fn restart(&mut self, only: Option<Arc<str>>) {
        self.only = only;
        self.stream = None;
        self.error = None;
        self.list_watch = ListWatch::new(self.resource.optional);
    }

    /// Makes the next request a list.
    pub fn relist(&mut self, sink: &mut impl Sink<Object = O>) {
        if self.stream.take().is_some() {
            self.apply(Input::Ended, sink);
        }
        self.apply(Input::Relist, sink);
    }

    /// Whether a list is complete. Changes follow.
    pub fn is_listed(&self) -> bool {
        self.list_watch.is_listed()
    }

    /// Does what is due: waits, sends the next request, or reads the next part of the open stream.
    pub async fn step(
        &mut self,
        sink: &mut impl Sink<Object = O>,
    ) -> Result<DriverStep, DriverError> {
        let error = match self.error.clone() {
            Some(error) => error,
            None => match self.advance(sink).await {
                Ok(progress) => return Ok(progress),
                Err(error) => error,
            },
        };
        // Kept until it is explained, because the caller may drop this future meanwhile.
        self.error = Some(error.clone());
        self.stream = None;
        let error = explain_not_found(&self.connection, self.resource.path, error).await;
        self.error = None;
        Err(self.failed(error, sink))
    }

    async fn advance(&mut self, sink: &mut impl Sink<Object = O>) -> Result<DriverStep, ApiError> {
        if self.stream.is_some() {
            return self.read(sink).await;
        }
        match self.list_watch.next_request(self.epoch.elapsed()) {
            ListWatchRequest::Wait(until) => {
                tokio::select! {
                    () = sleep_until(self.epoch + until) => {}
                    () = sink.interrupted() => {}
                }
                return Ok(DriverStep::Waited);
            }
            ListWatchRequest::StreamList => self.open(None, sink).await?,
            ListWatchRequest::Watch(version) => self.open(Some(&version), sink).await?,
            ListWatchRequest::Page {
                continue_token,
                whole,
            } => self.page(continue_token.as_deref(), whole, sink).await?,
        }
        Ok(DriverStep::Requested)
    }

    async fn page(
        &mut self,
        token: Option<&str>,
        whole: bool,
        sink: &mut impl Sink<Object = O>,
    ) -> Result<(), ApiError> {
        if token.is_none() {
            sink.apply(Event::ListBegan);
        }
        let only = self.only.as_deref();
        let path = self.resource.page_path(only, token, whole);
        let call = Call {
            accept: self.resource.accept(Verb::List),
            ..Call::bare(Verb::List, &path)
        };
        let chunks = self.connection.open_body(call).await?;
        let encoding = chunks.form();
        let body = chunks.all().await?;
        if sink.is_outdated() {
            return Ok(());
        }
        let page = encoding.list(&body, self.resource.type_meta, &mut |object| {
            sink.apply(Event::Applied(object));
        });
        let Page {
            resource_version,
            r#continue,
        } = page.map_err(|error| self.error(Verb::List, &error))?;
        let next = (!r#continue.is_empty()).then(|| r#continue.into());
        let input = Input::page(resource_version.into(), next, token);
        self.apply(input.map_err(|error| self.error(Verb::List, error))?, sink);
        Ok(())
    }

    /// Opens a stream of the changes since `version`; without a version, of all objects and then
    /// the changes.
    async fn open(
        &mut self,
        version: Option<&str>,
        sink: &mut impl Sink<Object = O>,
    ) -> Result<(), ApiError> {
        if version.is_none() {
            sink.apply(Event::ListBegan);
        }
        let seconds = Duration::from_secs_f64(STREAM * (1.0 + chance())).as_secs();
        let only = self.only.as_deref();
        let path = self.resource.stream_path(only, version, seconds);
        let call = Call {
            accept: self.resource.accept(Verb::Watch),
            ..Call::bare(Verb::Watch, &path)
        };
        let chunks = self.connection.open_body(call).await?;
        self.apply(Input::Opened, sink);
        if version.is_some() {
            sink.apply(Event::Watching);
        }
        self.stream = Some(Stream::new(chunks));
        Ok(())
    }

    async fn read(&mut self, sink: &mut impl Sink<Object = O>) -> Result<DriverStep, ApiError> {
        let Some(stream) = &mut self.stream else {
            return Ok(DriverStep::Ended);
        };
        let next = tokio::select! {
            biased;
            () = sink.interrupted() => Ok(Ok(None)),
            next = timeout(SILENCE, stream.chunks.next()) => next,
        };
        let ended = match next {
            Err(_elapsed) => Input::Silent,
            Ok(next) => match next? {
                Some(bytes) => return self.events(&bytes, sink).map(DriverStep::Received),
                None => Input::Ended,
            },
        };
        self.stream = None;
        self.apply(ended, sink);
        Ok(DriverStep::Ended)
    }

    /// Decodes the events that these bytes complete. Returns their number.
    fn events(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink<Object = O>,
    ) -> Result<usize, ApiError> {
        let Some(Stream { framer, .. }) = &mut self.stream else {
            return Ok(0);
        };
        if framer.push(bytes).is_err() {
            return Err(self.error(Verb::Watch, "an event that does not end"));
        }
        let mut count = 0;
        while let Some(stream) = &mut self.stream
            && let Some(part) = stream.framer.next_part()
        {
            let encoding = stream.encoding();
            self.event(encoding, &part, sink)?;
            count += 1;
        }
        Ok(count)
    }

    fn event(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        sink: &mut impl Sink<Object = O>,
    ) -> Result<(), ApiError> {
        let event = encoding.event::<O>(bytes, self.resource.type_meta);
        let event = event.map_err(|error| self.error(Verb::Watch, &error))?;
        let version: Option<Box<str>> = event.version().map(Into::into);
        let listed = event.event_type == WatchEventType::Bookmark { listed: true };
        match event.event_type {
            WatchEventType::Applied => sink.apply(Event::Applied(event.object)),
            WatchEventType::Deleted => sink.apply(Event::Deleted(event.object)),
            WatchEventType::Bookmark { .. } => {}
            WatchEventType::Error => {
                let target = Target::of(self.resource.path);
                return Err(Status::of(&event.object).error(Verb::Watch, &target));
            }
        }
        if let Some(resource_version) = version {
            let input = Input::Version {
                resource_version,
                listed,
            };
            self.apply(input, sink);
        }
        Ok(())
    }

    /// Applies an input to the state and reports a complete list to the sink.
    fn apply(&mut self, input: Input, sink: &mut impl Sink<Object = O>) -> ListPhase {
        let is_accepted = matches!(input, Input::Opened | Input::Page { .. });
        let phase = self.list_watch.apply(self.epoch.elapsed(), input, chance());
        if phase == ListPhase::Listed {
            sink.apply(Event::Listed);
        }
        if is_accepted {
            sink.apply(Event::Accepted);
        }
        phase
    }

    fn failed(&mut self, error: ApiError, sink: &mut impl Sink<Object = O>) -> DriverError {
        let phase = self.apply(Input::Failed(error.fault, error.retry_after), sink);
        let next = self.list_watch.next_request(self.epoch.elapsed());
        let kind = match (phase, next) {
            (ListPhase::Absent, _) => NextAttempt::Absent,
            (_, ListWatchRequest::Wait(_)) => NextAttempt::Retried,
            _ => NextAttempt::Unsupported,
        };
        let failures = self.list_watch.failures();
        DriverError {
            error,
            kind,
            failures,
        }
    }

    fn error(&self, verb: Verb, message: &(impl ToString + ?Sized)) -> ApiError {
        let target = Target::of(self.resource.path);
        ApiError::new(verb, &target, Fault::DecodeError, message)
    }
}
