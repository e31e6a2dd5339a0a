//! One collection as JSON objects, for those who keep what they want of it themselves.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use super::input::Input;
use super::machine::{Ask, Heard, Machine, Turn};
use super::runner::{SILENCE, STREAM, chance};
use super::version::told_apart;
use crate::answer::{Form, Parts};
use crate::api::connection::{Call, Chunks, Connection};
use crate::api::error::{ApiError, Fault, Status};
use crate::api::path::{Target, Verb};

/// What is heard of a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new list begins: what is not named until [`Change::Listed`] does not exist.
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
pub struct Collection {
    connection: Connection,
    input: Input,
    machine: Machine,
    epoch: Instant,
    stream: Option<(Chunks, Parts)>,
    ready: VecDeque<Change>,
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collection({})", self.input.path)
    }
}

impl Collection {
    /// The collection at a path such as `/api/v1/nodes`. A kind that the server does not know has no objects.
    pub fn new(connection: Connection, path: &'static str) -> Self {
        Self::selected(connection, path, "")
    }

    /// Those of its objects whose labels are as `selector` says, which is escaped as a URL wants it.
    pub fn selected(connection: Connection, path: &'static str, selector: &'static str) -> Self {
        Self {
            connection,
            input: Input::at(path).only(selector),
            machine: Machine::new(true),
            epoch: Instant::now(),
            stream: None,
            ready: VecDeque::new(),
        }
    }

    /// The next that is heard.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return change;
            }
            if let Err(error) = self.turn().await {
                self.stream = None;
                let error = told_apart(&self.connection, self.input.path, error).await;
                let heard = Heard::Failed(error.fault, error.retry_after);
                let turn = self.hear(heard);
                let passes = error.is_initializing(self.machine.failures());
                if turn != Turn::Absent && !passes {
                    self.ready.push_back(Change::Trouble(error));
                }
            }
        }
    }

    async fn turn(&mut self) -> Result<(), ApiError> {
        if self.stream.is_some() {
            return self.part().await;
        }
        match self.machine.ask(self.epoch.elapsed()) {
            Ask::Wait(until) => sleep_until(self.epoch + until).await,
            Ask::Stream => self.open(None).await?,
            Ask::Follow(version) => self.open(Some(&version)).await?,
            Ask::Page { token, whole } => self.page(token.as_deref(), whole).await?,
        }
        Ok(())
    }

    async fn page(&mut self, token: Option<&str>, whole: bool) -> Result<(), ApiError> {
        if token.is_none() {
            self.ready.push_back(Change::Begin);
        }
        let path = self.input.page_path(None, token, whole);
        let mut page = self.connection.list(&path).await?;
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            self.ready.extend(items.into_iter().map(Change::Exists));
        }
        let text = |name: &str| page.pointer(name).and_then(Value::as_str);
        let version = text("/metadata/resourceVersion").unwrap_or_default().into();
        let next = text("/metadata/continue").filter(|token| !token.is_empty());
        let heard = Heard::page(version, next.map(Into::into), token);
        self.hear(heard.map_err(|error| self.garbled(Verb::List, error))?);
        Ok(())
    }

    async fn open(&mut self, version: Option<&str>) -> Result<(), ApiError> {
        if version.is_none() {
            self.ready.push_back(Change::Begin);
        }
        let seconds = Duration::from_secs_f64(STREAM * (1.0 + chance())).as_secs();
        let path = self.input.stream_path(None, version, seconds);
        let call = Call::bare(Verb::Watch, &path);
        let chunks = self.connection.open_body(call).await?;
        self.hear(Heard::Opened);
        self.stream = Some((chunks, Parts::of(Form::Json)));
        Ok(())
    }

    /// Takes the next part of the stream.
    async fn part(&mut self) -> Result<(), ApiError> {
        let Some((chunks, parts)) = &mut self.stream else {
            return Ok(());
        };
        let ended = match timeout(SILENCE, chunks.next()).await {
            Err(_elapsed) => Some(Heard::Silent),
            Ok(next) => match next? {
                None => Some(Heard::Ended),
                Some(bytes) if parts.push(&bytes).is_ok() => None,
                Some(_) => return Err(self.garbled(Verb::Watch, "a line that does not end")),
            },
        };
        if let Some(ended) = ended {
            self.stream = None;
            self.hear(ended);
            return Ok(());
        }
        let mut whole = Vec::new();
        while let Some(line) = parts.next() {
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
            Some("ADDED" | "MODIFIED") => self.ready.push_back(Change::Exists(object)),
            Some("DELETED") => self.ready.push_back(Change::Gone(object)),
            Some("BOOKMARK") => {}
            _ => return Err(self.told(&object)),
        }
        if let Some(version) = version {
            self.hear(Heard::Version { version, listed });
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

    /// Tells the machine, and passes on what it means for the list.
    fn hear(&mut self, heard: Heard) -> Turn {
        let turn = self.machine.hear(self.epoch.elapsed(), heard, chance());
        match turn {
            Turn::Nothing => {}
            Turn::Listed => self.ready.push_back(Change::Listed),
            // There is nothing to list.
            Turn::Absent => self.ready.extend([Change::Begin, Change::Listed]),
        }
        turn
    }
}
