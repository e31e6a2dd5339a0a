//! One collection: makes the requests that its [`ListWatch`] asks for, and hands what comes to the [`Reflector`].

mod doubt;

use std::cell::RefCell;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::list_watch::{Event, ListPhase, ListWatch, Request};
use super::reflector::{NodeQuery, Number, Reflector};
use super::resources::{NODES, Need, Resource};
use super::sync_status::SyncStatus;
use crate::event::Batch;
use kube_io::Verb;
use kube_io::decode::{Encoding, Framer, Page, WatchEventType};
use kube_io::explain_not_found;
use kube_io::{ApiError, Fault, Status};
use kube_io::{Call, Chunks, Connection};
use object_tree::Node;

/// A server sends a bookmark about every minute. What says nothing for so long is not there any more.
pub(super) const SILENCE: Duration = Duration::from_secs(90);

/// For how long a stream is asked for, in seconds; up to twice as long.
pub(super) const STREAM: f64 = 300.0;

/// From what was told of a stream to the next look at it: what changes meanwhile is told together. A change that comes
/// alone waits for nothing.
const PACE: Duration = Duration::from_millis(100);

/// The same after a look that brought [`MANY`] changes or more: fewer passes follow a long burst with less work.
const PACE_OF_MANY: Duration = Duration::from_millis(250);

/// So many changes in one look.
const MANY: usize = 5;

/// What has come already is taken within this time, a part after the other.
const GAP: Duration = Duration::from_millis(1);

/// How long Nodes are not read because it is not known yet which of their labels are in use.
const LABEL_USAGE: Duration = Duration::from_secs(1);

/// What a look at a stream came to.
enum StreamPoll {
    /// There is no more for now.
    All,
    /// There may be more already.
    Part,
    /// The stream is over.
    Ended(Event),
}

/// What all collections share.
pub(super) struct Feed {
    pub(super) connection: Connection,
    pub(super) reflector: RefCell<Reflector>,
    pub(super) batches: mpsc::Sender<Batch>,
    /// Who may tell: a batch that waits for room must not be overtaken by the next, which may say `Complete`.
    pub(super) turn: Mutex<()>,
    pub(super) board: SyncStatus,
    pub(super) server: Arc<str>,
    /// Rung when a policy selects by namespaces.
    pub(super) by_namespace: Notify,
    /// Rung when the map may have become fit to stand for the Nodes, or unfit.
    pub(super) judged: Notify,
    /// Rung when something else is to be read of the Nodes, or may be.
    pub(super) turned: Notify,
    /// Rung when something may wait for labels of Nodes.
    pub(super) lacking: Notify,
    pub(super) epoch: Instant,
}

impl Feed {
    /// Tells what the reflector has to tell. `None` when nobody listens any more.
    pub(super) async fn tell(&self) -> Option<()> {
        let _turn = self.turn.lock().await;
        loop {
            let batch = self.reflector.borrow_mut().take();
            let Some(batch) = batch else { break };
            self.batches.send(batch).await.ok()?;
        }
        if self.reflector.borrow().needs_namespaces() {
            self.by_namespace.notify_one();
        }
        self.judged.notify_one();
        self.lacking.notify_one();
        self.turned.notify_one();
        Some(())
    }
}

/// One collection.
pub(super) struct Driver<'s> {
    number: Number,
    input: Resource,
    asked: NodeQuery,
    list_watch: ListWatch,
    /// How many parts of the stream were taken since the last look began.
    taken: usize,
    /// When to list again because the last list is in doubt.
    list_again: Option<Instant>,
    shared: &'s Feed,
}

impl<'s> Driver<'s> {
    pub(super) fn new(number: Number, input: Resource, shared: &'s Feed) -> Self {
        let mut driver = Self {
            number,
            input,
            asked: NodeQuery::default(),
            list_watch: ListWatch::new(false),
            taken: 0,
            list_again: None,
            shared,
        };
        driver.restart();
        driver
    }

    /// Forgets what was received, and begins with a list of what is to be read now.
    fn restart(&mut self) {
        let optional = matches!(self.input.need, Need::IfKnown | Need::IfMapped);
        self.list_watch = ListWatch::new(optional);
        if self.number == NODES {
            self.asked = self.shared.reflector.borrow().node_query();
        }
    }

    /// Returns when something else is to be read than is.
    async fn turned(&self) {
        if self.number != NODES {
            std::future::pending::<()>().await;
        }
        while !self.is_turned() {
            self.shared.turned.notified().await;
        }
    }

    fn is_turned(&self) -> bool {
        self.number == NODES && self.asked != self.shared.reflector.borrow().node_query()
    }

    /// Waits until it is known which labels of Nodes are in use, lest they be read twice; but not for long.
    async fn until_label_usage(&self) {
        let known = async {
            while !self.shared.reflector.borrow().knows_label_usage() {
                self.shared.turned.notified().await;
            }
        };
        let _late = timeout(LABEL_USAGE, known).await;
    }

    /// Runs until nobody listens any more.
    pub(super) async fn run(mut self) -> Option<()> {
        if self.input.need == Need::IfSelected {
            self.shared.by_namespace.notified().await;
        }
        if self.input.need == Need::IfMapped && self.shared.reflector.borrow().readiness().is_none()
        {
            std::future::pending::<()>().await;
        }
        self.shared.board.began(self.number);
        if self.number == NODES {
            self.until_label_usage().await;
        }
        loop {
            if self.is_turned() {
                self.restart();
            }
            self.list_again_if_due();
            let next_request = self.list_watch.next_request(self.shared.epoch.elapsed());
            let done = match &next_request {
                Request::Wait(until) => {
                    let until = self.shared.epoch + *until;
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = self.turned() => {}
                        () = self.doubted() => {}
                    }
                    continue;
                }
                Request::StreamList => self.stream(None).await?,
                Request::Watch(version) => self.stream(Some(version)).await?,
                Request::Page {
                    continue_token,
                    whole,
                } => self.page(continue_token.as_deref(), *whole).await,
            };
            if let Err(error) = done {
                let Feed { connection, .. } = self.shared;
                let error = explain_not_found(connection, self.input.path, error).await;
                self.failed(&error);
            }
            self.shared.tell().await?;
        }
    }

    /// Gets a page.
    async fn page(&mut self, token: Option<&str>, whole: bool) -> Result<(), ApiError> {
        if token.is_none() {
            self.begin();
        }
        let only = self.asked.only.as_deref();
        let path = self.input.page_path(only, token, whole);
        let call = Call {
            accept: self.input.accept(false),
            ..Call::bare(Verb::List, &path)
        };
        let chunks = self.shared.connection.open_body(call).await?;
        let form = chunks.form();
        let body = chunks.all().await?;
        if self.is_turned() {
            return Ok(());
        }
        let mut take = |node: Node| {
            let mut reflector = self.shared.reflector.borrow_mut();
            reflector.exists(self.number, &node);
        };
        let page = form.list(&body, self.input.type_meta(), &mut take);
        let Page {
            resource_version,
            r#continue,
        } = page.map_err(|error| self.error(Verb::List, Fault::Garbled, &error))?;
        let next = (!r#continue.is_empty()).then(|| r#continue.into());
        let event = Event::page(resource_version.into(), next, token);
        self.apply(event.map_err(|error| self.error(Verb::List, Fault::Garbled, error))?);
        Ok(())
    }

    /// Opens a stream and reads it to its end.
    async fn stream(&mut self, version: Option<&str>) -> Option<Result<(), ApiError>> {
        if version.is_none() {
            self.begin();
        }
        let seconds = STREAM * (1.0 + chance());
        let path = self.input.stream_path(
            self.asked.only.as_deref(),
            version,
            Duration::from_secs_f64(seconds).as_secs(),
        );
        let call = Call {
            accept: self.input.accept(true),
            ..Call::bare(Verb::Watch, &path)
        };
        let mut chunks = match self.shared.connection.open_body(call).await {
            Ok(chunks) => chunks,
            Err(error) => return Some(Err(error)),
        };
        self.apply(Event::Opened);
        if version.is_some() {
            self.follows();
        }
        let mut parts = Framer::of(chunks.form());
        let mut rested = Instant::now();
        loop {
            let look = self.look(&mut chunks, &mut parts, rested).await;
            self.shared.tell().await?;
            match look {
                Ok(StreamPoll::Ended(event)) => {
                    self.apply(event);
                    return Some(Ok(()));
                }
                Err(error) => return Some(Err(error)),
                Ok(StreamPoll::All) if self.list_watch.is_listed() => {
                    sleep(rest_after(self.taken)).await;
                }
                Ok(StreamPoll::All | StreamPoll::Part) => {}
            }
            rested = Instant::now();
        }
    }

    /// Takes what comes next of a stream; if it comes soon, also what has come with it.
    async fn look(
        &mut self,
        chunks: &mut Chunks,
        parts: &mut Framer,
        rested: Instant,
    ) -> Result<StreamPoll, ApiError> {
        self.taken = 0;
        let mut ended = self.take(chunks, parts).await?;
        let soon = self.list_watch.is_listed() && rested.elapsed() < PACE;
        let began = Instant::now();
        while ended.is_none() && soon {
            if began.elapsed() > PACE {
                return Ok(StreamPoll::Part);
            }
            let Ok(next) = timeout(GAP, self.take(chunks, parts)).await else {
                break;
            };
            ended = next?;
        }
        Ok(ended.map_or(StreamPoll::All, StreamPoll::Ended))
    }

    /// Takes what comes next of a stream. Returns how the stream ended, if it did.
    async fn take(
        &mut self,
        chunks: &mut Chunks,
        parts: &mut Framer,
    ) -> Result<Option<Event>, ApiError> {
        let next = tokio::select! {
            biased;
            () = self.turned() => return Ok(Some(Event::Ended)),
            () = self.doubted() => return Ok(Some(Event::Ended)),
            next = timeout(SILENCE, chunks.next()) => next,
        };
        let Ok(next) = next else {
            return Ok(Some(Event::Silent));
        };
        let Some(bytes) = next? else {
            return Ok(Some(Event::Ended));
        };
        if parts.push(&bytes).is_err() {
            return Err(self.error(Verb::Watch, Fault::Garbled, "an event that does not end"));
        }
        while let Some(part) = parts.next_part() {
            self.event(chunks.form(), &part)?;
            self.taken += 1;
        }
        let objects = self.shared.reflector.borrow().count(self.number);
        self.shared
            .board
            .event(self.number, Timestamp::now(), objects);
        Ok(None)
    }

    fn event(&mut self, form: Encoding, bytes: &[u8]) -> Result<(), ApiError> {
        let event = form.event(bytes, self.input.type_meta());
        let event = event.map_err(|error| self.error(Verb::Watch, Fault::Garbled, &error))?;
        let mut listed = false;
        match event.event_type {
            WatchEventType::Applied => self
                .shared
                .reflector
                .borrow_mut()
                .exists(self.number, &event.object),
            WatchEventType::Deleted => self
                .shared
                .reflector
                .borrow_mut()
                .gone(self.number, &event.object),
            WatchEventType::Bookmark { listed: all } => listed = all,
            WatchEventType::Error => {
                let target = kube_io::Target::of(self.input.path);
                return Err(Status::of(&event.object).error(Verb::Watch, &target));
            }
        }
        // A bookmark comes about every minute, so nothing waits longer.
        self.shared.reflector.borrow_mut().judge_again();
        if let Some(version) = event.version() {
            let version = version.into();
            self.apply(Event::Version {
                resource_version: version,
                listed,
            });
        }
        Ok(())
    }

    fn begin(&self) {
        self.shared.reflector.borrow_mut().begin(self.number);
    }

    /// Applies an event to the state, and takes note of what it means.
    fn apply(&mut self, event: Event) {
        let is_answer = matches!(event, Event::Opened | Event::Page { .. });
        let turn = self
            .list_watch
            .apply(self.shared.epoch.elapsed(), event, chance());
        if turn == ListPhase::Listed {
            let now = self.shared.epoch.elapsed();
            self.shared.reflector.borrow_mut().listed(self.number, now);
            self.doubt();
            self.follows();
        }
        if is_answer {
            let mut reflector = self.shared.reflector.borrow_mut();
            reflector.trouble(self.number, &self.shared.server, None);
            reflector.refused(self.number, false);
            self.shared
                .board
                .event(self.number, Timestamp::now(), reflector.count(self.number));
        }
    }

    fn follows(&self) {
        self.shared.board.follows(self.number, Timestamp::now());
    }

    fn failed(&mut self, error: &ApiError) {
        let event = Event::Failed(error.fault, error.retry_after);
        let turn = self
            .list_watch
            .apply(self.shared.epoch.elapsed(), event, chance());
        let mut reflector = self.shared.reflector.borrow_mut();
        if turn == ListPhase::Absent {
            reflector.absent(self.number);
            reflector.trouble(self.number, &self.shared.server, None);
            self.shared.board.absent(self.number, error);
            return;
        }
        let now = self.shared.epoch.elapsed();
        if !matches!(self.list_watch.next_request(now), Request::Wait(_)) {
            // Only the form of the request was not to the server's taste.
            return;
        }
        if self.number == NODES && self.asked == reflector.node_query() {
            reflector.node_list_late();
        }
        if error.is_initializing(self.list_watch.failures()) {
            return;
        }
        self.shared.board.failed(self.number, error);
        // A stream that breaks is nothing that anybody must know; what does not come back is.
        if self.list_watch.failures() > 1 {
            reflector.trouble(self.number, &self.shared.server, Some(error));
            if !error.fault.is_passing() {
                reflector.refused(self.number, true);
                reflector.settle_for_less();
            }
        }
    }

    fn error(&self, verb: Verb, fault: Fault, message: &(impl ToString + ?Sized)) -> ApiError {
        ApiError::new(verb, &kube_io::Target::of(self.input.path), fault, message)
    }
}

/// How long a stream rests after a look that brought `changes`.
fn rest_after(changes: usize) -> Duration {
    if changes < MANY { PACE } else { PACE_OF_MANY }
}

/// A number between 0 and 1 that nobody can guess.
pub(super) fn chance() -> f64 {
    let bits = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}
