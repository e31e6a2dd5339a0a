//! A fake API server: it holds objects, and a script says how its next requests fail.
//!
//! The fake and a real API server pass the same cases (`cases.rs`).

#[path = "writes.rs"]
mod writes;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use cluster::api::{ClientNodes, NodeSource, ResourceStatus, SyncStatus, WatchOptions, follow};
use cluster::event::{Batch, Completeness};
use cluster::index::Index;
use hyper::body::Frame;
use kube_io::Connection;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Refuse(u16, &'static str),
    /// Refuses the request because the definition of the kind is new.
    Initializing,
    /// Refuses the request with a `Retry-After` header, in seconds.
    RetryAfter(u64),
    /// Opens the stream, sends these lines as they are, and closes it.
    Lines(Vec<String>),
    /// Opens the stream, sends these lines, and breaks the connection in the middle of the next.
    Break(Vec<String>),
    /// Opens the stream and sends nothing.
    Silent,
    /// Answers in protobuf, with this code and these bytes.
    Protobuf(u16, &'static [u8]),
}

/// The version of a new server; earlier versions are compacted.
const FIRST: u64 = 10;

/// The sending half of an open stream.
type StreamSender = mpsc::UnboundedSender<BodyPart>;

/// A part of a body, or the error that breaks the connection.
type BodyPart = Result<Bytes, std::io::Error>;

#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<String, Vec<Value>>,
    pub(crate) version: u64,
    /// Collections for which the server answers 404.
    pub(crate) unknown: Vec<String>,
    /// The replies to the next requests, by collection; after these, the server answers correctly.
    pub(crate) replies: BTreeMap<String, VecDeque<Reply>>,
    /// The reply to every request for a collection.
    pub(crate) always: BTreeMap<String, Reply>,
    /// Whether the server supports streaming lists.
    pub(crate) streams: bool,
    /// Time until the server answers, by collection.
    pub(crate) delays: BTreeMap<String, Duration>,
    /// Path and query of every request.
    pub(crate) seen: Vec<String>,
    open: BTreeMap<String, Vec<(StreamSender, NameFilter)>>,
    /// Version, collection and event of every change.
    history: Vec<(u64, String, Value)>,
}

/// The name in the field selector of a request.
type NameFilter = Option<String>;

#[derive(Clone)]
pub(crate) struct Fake(Arc<Mutex<World>>);

pub(crate) const SERVICES: &str = "/api/v1/services";
pub(crate) const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const DRAINS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains";
pub(crate) const MAPS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps";
pub(crate) const POLICIES: &str = "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies";

impl Fake {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(World {
            version: FIRST,
            streams: true,
            ..World::default()
        })))
    }

    pub(crate) fn world<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Sets the replies to the next requests for a collection.
    pub(crate) fn next(&self, collection: &str, replies: impl IntoIterator<Item = Reply>) {
        self.world(|world| {
            world
                .replies
                .entry(collection.to_owned())
                .or_default()
                .extend(replies);
        });
    }

    /// Adds an object, and sends it to open watches.
    pub(crate) fn add(&self, collection: &str, object: Value) {
        self.world(|world| drop(world.add(collection, object)));
    }

    /// Replaces the object of that name, and sends it to open watches.
    pub(crate) fn replace(&self, collection: &str, object: Value) {
        self.world(|world| drop(world.replace(collection, object)));
    }

    /// Removes the object of that name, and sends the deletion to open watches.
    pub(crate) fn remove(&self, collection: &str, name: &str) {
        self.world(|world| world.remove(collection, name));
    }

    /// Serves the objects of a collection by their names, too.
    pub(crate) fn serve(&self, collection: &str) {
        self.world(|world| {
            world.objects.entry(collection.to_owned()).or_default();
        });
    }

    pub(crate) fn end_streams(&self, collection: &str) {
        self.world(|world| world.open.remove(collection));
    }

    pub(crate) fn requests(&self, collection: &str) -> Vec<String> {
        let of = |seen: &&String| seen.split('?').next() == Some(collection);
        self.world(|world| world.seen.iter().filter(of).cloned().collect())
    }

    pub(crate) fn client(&self) -> kube::Client {
        let fake = self.clone();
        let router = Router::new().fallback(move |request: Request| {
            let fake = fake.clone();
            async move {
                let delay = fake.world(|world| world.delays.get(request.uri().path()).copied());
                tokio::time::sleep(delay.unwrap_or_default()).await;
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                fake.world(|world| world.answer(&head.method, &head.uri, &body))
            }
        });
        kube::Client::new(router, "default")
    }

    fn connection(&self) -> Connection {
        Connection::of_client(self.client())
    }

    pub(crate) async fn followed(&self, time: Duration) -> Followed {
        let mut followed = Followed::new();
        self.follow_with(&mut followed, time, |_, _| {}).await;
        followed
    }

    /// Follows the server for `time`; calls `meanwhile` every second.
    pub(crate) async fn follow_with(
        &self,
        followed: &mut Followed,
        time: Duration,
        mut meanwhile: impl FnMut(u64, &mut Followed),
    ) {
        let (mut watch, feed) = follow(self.connection(), followed.options.clone());
        let status = watch.sync_status().unwrap().clone();
        let receive = async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            let mut seconds = 0;
            loop {
                tokio::select! {
                    batch = watch.next() => followed.apply(batch.unwrap()),
                    _ = second.tick() => {
                        followed.status = Some(status.clone());
                        meanwhile(seconds, followed);
                        seconds += 1;
                        if seconds > time.as_secs() {
                            return;
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = feed => panic!("the feed exited"),
            () = receive => {}
        }
    }
}

/// The index of a cluster that is followed.
pub(crate) struct Followed {
    pub(crate) index: Index,
    pub(crate) batches: Vec<Batch>,
    /// When each batch arrived, in milliseconds since `started`.
    pub(crate) arrived: Vec<u128>,
    started: Instant,
    pub(crate) options: WatchOptions,
    status: Option<SyncStatus>,
}

impl Followed {
    pub(crate) fn new() -> Self {
        Self {
            index: Index::new(Vec::new()),
            batches: Vec::new(),
            arrived: Vec::new(),
            started: Instant::now(),
            options: NodeSource::Nodes { own: "n1".into() }.into(),
            status: None,
        }
    }

    /// Follows from the Node `own`, with the map for the other Nodes.
    pub(crate) fn mapped(own: &str) -> Self {
        Self {
            options: NodeSource::Map { own: own.into() }.into(),
            ..Self::new()
        }
    }

    /// The same for a program that decides for clients of all nodes.
    pub(crate) fn mapped_for_all(own: &str) -> Self {
        let mut followed = Self::mapped(own);
        followed.options.clients = ClientNodes::All;
        followed
    }

    fn apply(&mut self, batch: Batch) {
        self.batches.push(batch.clone());
        self.arrived.push(self.started.elapsed().as_millis());
        self.index.apply(batch);
    }

    pub(crate) fn services(&self) -> Vec<String> {
        let services = self.index.snapshot().services();
        services
            .map(|service| service.name.name.to_string())
            .collect()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.index.completeness() == Some(Completeness::Whole)
    }

    pub(crate) fn state(&self, name: &str) -> ResourceStatus {
        let status = self.status.as_ref().unwrap();
        status
            .resources()
            .into_iter()
            .find(|resource| resource.name == name)
            .unwrap()
    }

    pub(crate) fn sync_status(&self) -> &SyncStatus {
        self.status.as_ref().unwrap()
    }
}

impl World {
    fn add(&mut self, collection: &str, object: Value) -> Value {
        let object = self.stamped(object);
        let objects = self.objects.entry(collection.to_owned()).or_default();
        objects.push(object.clone());
        self.broadcast(collection, "ADDED", &object);
        object
    }

    fn replace(&mut self, collection: &str, object: Value) -> Value {
        let object = self.stamped(object);
        let mut objects = self.objects.get_mut(collection).unwrap().iter_mut();
        let name = &object["metadata"]["name"];
        *objects
            .find(|old| old["metadata"]["name"] == *name)
            .unwrap() = object.clone();
        self.broadcast(collection, "MODIFIED", &object);
        object
    }

    fn remove(&mut self, collection: &str, name: &str) {
        let objects = self.objects.get_mut(collection).unwrap();
        let is_removed = |object: &Value| object["metadata"]["name"] == *name;
        let object = objects.remove(objects.iter().position(is_removed).unwrap());
        let object = self.stamped(object);
        self.broadcast(collection, "DELETED", &object);
    }

    fn stamped(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    fn broadcast(&mut self, collection: &str, event_type: &str, object: &Value) {
        let line = json!({"type": event_type, "object": object});
        self.history
            .push((self.version, collection.to_owned(), line.clone()));
        for (stream, only) in self.open.get(collection).into_iter().flatten() {
            if has_name(object, only.as_deref()) {
                // The client may have closed the stream.
                let _sent = stream.send(Ok(bytes(&format!("{line}\n"))));
            }
        }
    }

    fn answer(&mut self, method: &Method, uri: &Uri, body: &[u8]) -> Response {
        let (path, query) = (
            uri.path().to_owned(),
            uri.query().unwrap_or_default().to_owned(),
        );
        self.seen.push(uri.to_string());
        let has = |text: &str| query.split('&').any(|part| part == text);
        let next = self.replies.get_mut(&path).and_then(VecDeque::pop_front);
        if let Some(reply) = next.or_else(|| self.always.get(&path).cloned()) {
            return self.scripted(&path, reply);
        }
        if self.unknown.contains(&path) {
            return (StatusCode::NOT_FOUND, "404 page not found").into_response();
        }
        if let Some(answer) = self.object(method, &path, body) {
            return answer;
        }
        let streamed = has("sendInitialEvents=true");
        if streamed && !self.streams {
            let message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            return status(422, "Invalid", message);
        }
        if has("watch=true") {
            return self.stream(&path, streamed, since(&query), only(&query));
        }
        self.page(&path, &query)
    }

    fn scripted(&mut self, path: &str, reply: Reply) -> Response {
        match reply {
            Reply::Refuse(code, reason) => status(code, reason, "no"),
            Reply::Initializing => {
                let body = status(429, "TooManyRequests", "storage is (re)initializing");
                ([("retry-after", "1")], body).into_response()
            }
            Reply::RetryAfter(seconds) => {
                let headers = [("retry-after", seconds.to_string())];
                (StatusCode::TOO_MANY_REQUESTS, headers, "slow down").into_response()
            }
            Reply::Lines(lines) => lines.concat().into_response(),
            Reply::Protobuf(code, bytes) => {
                let headers = [(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")];
                (StatusCode::from_u16(code).unwrap(), headers, bytes).into_response()
            }
            Reply::Break(lines) => {
                let (sender, answer) = open();
                for text in lines {
                    sender.send(Ok(bytes(&text))).unwrap();
                }
                sender.send(Ok(bytes("{\"type\":\"ADDED\",\"obj"))).unwrap();
                sender
                    .send(Err(std::io::Error::from(
                        std::io::ErrorKind::ConnectionReset,
                    )))
                    .unwrap();
                answer
            }
            Reply::Silent => {
                let (sender, answer) = open();
                let open = self.open.entry(path.to_owned()).or_default();
                open.push((sender, None));
                answer
            }
        }
    }

    fn stream(
        &mut self,
        path: &str,
        listed: bool,
        since: Option<u64>,
        only: NameFilter,
    ) -> Response {
        if !listed && since.is_some_and(|since| since < FIRST) {
            return error_event(410, "Expired").into_response();
        }
        let (sender, answer) = open();
        let since = since.filter(|_| !listed).unwrap_or(self.version);
        for (version, collection, event) in &self.history {
            let is_new = *version > since && *collection == path;
            if is_new && has_name(&event["object"], only.as_deref()) {
                sender.send(Ok(bytes(&format!("{event}\n")))).unwrap();
            }
        }
        if listed {
            let all = self.objects.get(path).into_iter().flatten();
            for object in all.filter(|object| has_name(object, only.as_deref())) {
                sender.send(Ok(bytes(&added(object)))).unwrap();
            }
            sender
                .send(Ok(bytes(&bookmark(self.version, true))))
                .unwrap();
        }
        let open = self.open.entry(path.to_owned()).or_default();
        open.push((sender, only));
        answer
    }

    fn page(&self, path: &str, query: &str) -> Response {
        let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
        let only = only(query);
        let all = self.objects.get(path).into_iter().flatten();
        let all: Vec<&Value> = all
            .filter(|object| has_name(object, only.as_deref()))
            .collect();
        let token = value("continue=").filter(|token| !token.is_empty());
        let from: usize = token.map_or(0, |token| token.parse().unwrap());
        // Pages have two objects, whatever the limit.
        let size = if value("limit=").is_some() {
            2
        } else {
            all.len()
        };
        let items: Vec<_> = all.iter().skip(from).take(size).collect();
        let next = from + items.len();
        let token = if next < all.len() {
            next.to_string()
        } else {
            String::new()
        };
        let metadata = json!({"resourceVersion": self.version.to_string(), "continue": token});
        json!({"kind": "List", "metadata": metadata, "items": items})
            .to_string()
            .into_response()
    }
}

/// The version after which a watch begins; `None` is the current version.
fn since(query: &str) -> Option<u64> {
    let mut parts = query.split('&');
    let version = parts.find_map(|part| part.strip_prefix("resourceVersion="))?;
    version.parse().ok().filter(|version| *version > 0)
}

fn only(query: &str) -> NameFilter {
    let mut parts = query.split('&');
    let name = parts.find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    name.map(str::to_owned)
}

fn has_name(object: &Value, only: Option<&str>) -> bool {
    only.is_none_or(|only| object["metadata"]["name"] == *only)
}

fn status(code: u16, reason: &str, message: &str) -> Response {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn open() -> (StreamSender, Response) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Response::new(Body::new(StreamBody(receiver))))
}

/// A body that is open until its sender is dropped.
struct StreamBody(mpsc::UnboundedReceiver<BodyPart>);

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|part| part.map(Frame::data)))
    }
}

/// The line of an `ADDED` event.
pub(crate) fn added(object: &Value) -> String {
    format!("{}\n", json!({"type": "ADDED", "object": object}))
}

/// The line of a bookmark; `listed` marks the end of the initial list.
pub(crate) fn bookmark(version: u64, listed: bool) -> String {
    let annotations = if listed {
        json!({"k8s.io/initial-events-end": "true"})
    } else {
        json!({})
    };
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    format!(
        "{}\n",
        json!({"type": "BOOKMARK", "object": {"metadata": metadata}})
    )
}

/// The line of an `ERROR` event, which ends a stream.
pub(crate) fn error_event(code: u16, reason: &str) -> String {
    format!(
        "{}\n",
        json!({"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": "no"}})
    )
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": "11"},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"port": 80}]},
    })
}
