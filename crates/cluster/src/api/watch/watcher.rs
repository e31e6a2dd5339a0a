//! One collection as JSON objects, for those who keep what they want of it themselves.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use super::driver::{SILENCE, STREAM, chance};
use super::list_watch::{Event, ListPhase, ListWatch, Request};
use super::resources::Resource;
use kube_io::decode::{Encoding, Framer};
use kube_io::explain_not_found;
use kube_io::{ApiError, Fault, Status};
use kube_io::{Call, Chunks, Connection};
use kube_io::{Target, Verb};

/// What is received of a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum WatcherChange {
    /// A new list begins: what is not named until [`WatcherChange::Listed`] does not exist.
    Begin,
    /// The object is so now.
    Exists(Value),
    /// The object, as it was last, is gone.
    Gone(Value),
    /// Everything that exists was named.
    Listed,
    /// A request came to nothing. It is tried again by itself.
    Trouble(ApiError),
}

/// Follows one collection: with the pauses, the fall-backs and the patience of [`watch`](super::watch()).
pub struct Watcher {
    connection: Connection,
    input: Resource,
    list_watch: ListWatch,
    epoch: Instant,
    stream: Option<(Chunks, Framer)>,
    ready: VecDeque<WatcherChange>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watcher({})", self.input.path)
    }
}

impl Watcher {
    /// The collection at a path such as `/api/v1/nodes`. A kind that the server does not know has no objects.
    pub fn new(connection: Connection, path: &'static str) -> Self {
        Self::selected(connection, path, "")
    }

    /// Those of its objects whose labels are as `selector` says, which is escaped as a URL wants it.
    pub fn selected(connection: Connection, path: &'static str, selector: &'static str) -> Self {
        Self {
            connection,
            input: Resource::at(path).only(selector),
            list_watch: ListWatch::new(true),
            epoch: Instant::now(),
            stream: None,
            ready: VecDeque::new(),
        }
    }

    /// The next that is received.
    pub async fn next(&mut self) -> WatcherChange {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return change;
            }
            if let Err(error) = self.turn().await {
                self.stream = None;
                let error = explain_not_found(&self.connection, self.input.path, error).await;
                let event = Event::Failed(error.fault, error.retry_after);
                let turn = self.apply(event);
                let passes = error.is_initializing(self.list_watch.failures());
                if turn != ListPhase::Absent && !passes {
                    self.ready.push_back(WatcherChange::Trouble(error));
                }
            }
        }
    }

    async fn turn(&mut self) -> Result<(), ApiError> {
        if self.stream.is_some() {
            return self.part().await;
        }
        match self.list_watch.next_request(self.epoch.elapsed()) {
            Request::Wait(until) => sleep_until(self.epoch + until).await,
            Request::StreamList => self.open(None).await?,
            Request::Watch(version) => self.open(Some(&version)).await?,
            Request::Page {
                continue_token,
                whole,
            } => self.page(continue_token.as_deref(), whole).await?,
        }
        Ok(())
    }

    async fn page(&mut self, token: Option<&str>, whole: bool) -> Result<(), ApiError> {
        if token.is_none() {
            self.ready.push_back(WatcherChange::Begin);
        }
        let path = self.input.page_path(None, token, whole);
        let mut page = self.connection.list(&path).await?;
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            self.ready
                .extend(items.into_iter().map(WatcherChange::Exists));
        }
        let text = |name: &str| page.pointer(name).and_then(Value::as_str);
        let version = text("/metadata/resourceVersion").unwrap_or_default().into();
        let next = text("/metadata/continue").filter(|token| !token.is_empty());
        let event = Event::page(version, next.map(Into::into), token);
        self.apply(event.map_err(|error| self.garbled(Verb::List, error))?);
        Ok(())
    }

    async fn open(&mut self, version: Option<&str>) -> Result<(), ApiError> {
        if version.is_none() {
            self.ready.push_back(WatcherChange::Begin);
        }
        let seconds = Duration::from_secs_f64(STREAM * (1.0 + chance())).as_secs();
        let path = self.input.stream_path(None, version, seconds);
        let call = Call::bare(Verb::Watch, &path);
        let chunks = self.connection.open_body(call).await?;
        self.apply(Event::Opened);
        self.stream = Some((chunks, Framer::of(Encoding::Json)));
        Ok(())
    }

    /// Takes the next part of the stream.
    async fn part(&mut self) -> Result<(), ApiError> {
        let Some((chunks, parts)) = &mut self.stream else {
            return Ok(());
        };
        let ended = match timeout(SILENCE, chunks.next()).await {
            Err(_elapsed) => Some(Event::Silent),
            Ok(next) => match next? {
                None => Some(Event::Ended),
                Some(bytes) if parts.push(&bytes).is_ok() => None,
                Some(_) => return Err(self.garbled(Verb::Watch, "a line that does not end")),
            },
        };
        if let Some(ended) = ended {
            self.stream = None;
            self.apply(ended);
            return Ok(());
        }
        let mut whole = Vec::new();
        while let Some(line) = parts.next_part() {
            whole.push(line);
        }
        whole.iter().try_for_each(|line| self.line(line))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), ApiError> {
        let mut line: Value = serde_json::from_slice(line)
            .map_err(|error| self.garbled(Verb::Watch, &error.to_string()))?;
        let object = line.get_mut("object").map(Value::take).unwrap_or_default();
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let version: Option<Box<str>> = text("/metadata/resourceVersion").map(Into::into);
        let end = text("/metadata/annotations/k8s.io~1initial-events-end");
        let listed = end == Some("true");
        match line.get("type").and_then(Value::as_str) {
            Some("ADDED" | "MODIFIED") => self.ready.push_back(WatcherChange::Exists(object)),
            Some("DELETED") => self.ready.push_back(WatcherChange::Gone(object)),
            Some("BOOKMARK") => {}
            _ => return Err(self.told(&object)),
        }
        if let Some(version) = version {
            self.apply(Event::Version {
                resource_version: version,
                listed,
            });
        }
        Ok(())
    }

    /// The error that a server ends a stream with.
    fn told(&self, object: &Value) -> ApiError {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let code = object.get("code").and_then(Value::as_u64);
        let code = code.and_then(|code| u16::try_from(code).ok());
        let status = Status::new(code.unwrap_or_default(), text("reason"), text("message"));
        status.error(Verb::Watch, &Target::of(self.input.path))
    }

    fn garbled(&self, verb: Verb, message: &str) -> ApiError {
        let target = Target::of(self.input.path);
        ApiError::new(verb, &target, Fault::Garbled, message)
    }

    /// Applies an event to the state, and passes on what it means for the list.
    fn apply(&mut self, event: Event) -> ListPhase {
        let turn = self.list_watch.apply(self.epoch.elapsed(), event, chance());
        match turn {
            ListPhase::Nothing => {}
            ListPhase::Listed => self.ready.push_back(WatcherChange::Listed),
            // There is nothing to list.
            ListPhase::Absent => self
                .ready
                .extend([WatcherChange::Begin, WatcherChange::Listed]),
        }
        turn
    }
}
