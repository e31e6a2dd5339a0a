//! A fake API server with a script: the objects that it holds, and the faults of its next answers.
//!
//! `cases.rs` binds it to a real one: both pass the same cases.

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
use cluster::api::{NodeSource, ResourceStatus, SyncStatus, follow};
use cluster::event::{Batch, Completeness};
use cluster::index::Index;
use hyper::body::Frame;
use kube_io::Connection;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a server does with the next request for a collection.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Refuses it.
    Refuse(u16, &'static str),
    /// Refuses it as long as the definition of the kind is new.
    Initialize,
    /// Refuses it and says when to come again.
    Later(u64),
    /// Opens the stream, sends these lines as they are, and ends it.
    Lines(Vec<String>),
    /// Opens the stream, sends these lines, and breaks the connection in the middle of the next.
    Break(Vec<String>),
    /// Opens the stream and says nothing more.
    Mute,
    /// Answers in protobuf, with this code and these bytes.
    Protobuf(u16, &'static [u8]),
}

/// The version of a new server; what was before it is compacted.
const FIRST: u64 = 10;

/// A way to hold a stream open.
type Line = mpsc::UnboundedSender<Part>;

/// A part of a body, or the end of the connection.
type Part = Result<Bytes, std::io::Error>;

/// What the server holds and was asked.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<String, Vec<Value>>,
    pub(crate) version: u64,
    /// Collections that it does not know.
    pub(crate) unknown: Vec<String>,
    /// What is done with the next requests, by collection; after that it does its best.
    pub(crate) deeds: BTreeMap<String, VecDeque<Deed>>,
    /// What is done with every request for a collection.
    pub(crate) always: BTreeMap<String, Deed>,
    /// Whether lists can be streamed.
    pub(crate) streams: bool,
    /// How long requests for a collection wait for their answer.
    pub(crate) delays: BTreeMap<String, Duration>,
    /// Every request: path with query.
    pub(crate) seen: Vec<String>,
    open: BTreeMap<String, Vec<(Line, Only)>>,
    /// Every change: its version, its collection, and the event.
    history: Vec<(u64, String, Value)>,
}

/// The name of the only object that somebody asked for.
type Only = Option<String>;

/// The server and somebody who follows it.
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

    /// What is done with the next requests for a collection.
    pub(crate) fn next(&self, collection: &str, deeds: impl IntoIterator<Item = Deed>) {
        self.world(|world| {
            world
                .deeds
                .entry(collection.to_owned())
                .or_default()
                .extend(deeds);
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

    /// Ends every open stream of a collection.
    pub(crate) fn end_streams(&self, collection: &str) {
        self.world(|world| world.open.remove(collection));
    }

    /// The requests for a collection so far.
    pub(crate) fn requests(&self, collection: &str) -> Vec<String> {
        let of = |seen: &&String| seen.split('?').next() == Some(collection);
        self.world(|world| world.seen.iter().filter(of).cloned().collect())
    }

    /// A client of this server.
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

    /// Follows the server for `time`, and returns what is known of the cluster then.
    pub(crate) async fn followed(&self, time: Duration) -> Followed {
        let mut followed = Followed::new();
        self.follow_with(&mut followed, time, |_, _| {}).await;
        followed
    }

    /// Follows the server for `time`; `meanwhile` is called with each second that passes.
    pub(crate) async fn follow_with(
        &self,
        followed: &mut Followed,
        time: Duration,
        mut meanwhile: impl FnMut(u64, &mut Followed),
    ) {
        let (mut watch, feed) = follow(self.connection(), followed.nodes.clone());
        let sync_status = watch.sync_status().unwrap().clone();
        let take = async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            let mut seconds = 0;
            loop {
                tokio::select! {
                    batch = watch.next() => followed.take(batch.unwrap()),
                    _ = second.tick() => {
                        followed.sync_status = Some(sync_status.clone());
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
            () = feed => panic!("the feed ended"),
            () = take => {}
        }
    }
}

/// What is known of the cluster.
pub(crate) struct Followed {
    pub(crate) index: Index,
    pub(crate) batches: Vec<Batch>,
    /// When each of the batches came, in milliseconds since all of this was made.
    pub(crate) came: Vec<u128>,
    begun: Instant,
    nodes: NodeSource,
    sync_status: Option<SyncStatus>,
}

impl Followed {
    pub(crate) fn new() -> Self {
        Self {
            index: Index::new(Vec::new()),
            batches: Vec::new(),
            came: Vec::new(),
            begun: Instant::now(),
            nodes: NodeSource::Nodes { own: "n1".into() },
            sync_status: None,
        }
    }

    /// The same on the Node `own`, with the map for the others.
    pub(crate) fn mapped(own: &str) -> Self {
        Self {
            nodes: NodeSource::Map { own: own.into() },
            ..Self::new()
        }
    }

    fn take(&mut self, batch: Batch) {
        self.batches.push(batch.clone());
        self.came.push(self.begun.elapsed().as_millis());
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

    /// How a collection stands.
    pub(crate) fn state(&self, name: &str) -> ResourceStatus {
        let sync_status = self.sync_status.as_ref().unwrap();
        sync_status
            .resources()
            .into_iter()
            .find(|input| input.name == name)
            .unwrap()
    }

    pub(crate) fn sync_status(&self) -> &SyncStatus {
        self.sync_status.as_ref().unwrap()
    }
}

impl World {
    fn add(&mut self, collection: &str, object: Value) -> Value {
        let object = self.stamped(object);
        let objects = self.objects.entry(collection.to_owned()).or_default();
        objects.push(object.clone());
        self.tell(collection, "ADDED", &object);
        object
    }

    fn replace(&mut self, collection: &str, object: Value) -> Value {
        let object = self.stamped(object);
        let mut objects = self.objects.get_mut(collection).unwrap().iter_mut();
        let name = &object["metadata"]["name"];
        *objects
            .find(|old| old["metadata"]["name"] == *name)
            .unwrap() = object.clone();
        self.tell(collection, "MODIFIED", &object);
        object
    }

    fn remove(&mut self, collection: &str, name: &str) {
        let objects = self.objects.get_mut(collection).unwrap();
        let has_name = |object: &Value| object["metadata"]["name"] == *name;
        let object = objects.remove(objects.iter().position(has_name).unwrap());
        let object = self.stamped(object);
        self.tell(collection, "DELETED", &object);
    }

    fn stamped(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    fn tell(&mut self, collection: &str, what: &str, object: &Value) {
        let line = json!({"type": what, "object": object});
        self.history
            .push((self.version, collection.to_owned(), line.clone()));
        for (stream, only) in self.open.get(collection).into_iter().flatten() {
            if is_meant(object, only.as_deref()) {
                // Nobody may listen any more.
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
        let next = self.deeds.get_mut(&path).and_then(VecDeque::pop_front);
        if let Some(deed) = next.or_else(|| self.always.get(&path).cloned()) {
            return self.misbehave(&path, deed);
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

    fn misbehave(&mut self, path: &str, deed: Deed) -> Response {
        match deed {
            Deed::Refuse(code, reason) => status(code, reason, "no"),
            Deed::Initialize => {
                let body = status(429, "TooManyRequests", "storage is (re)initializing");
                ([("retry-after", "1")], body).into_response()
            }
            Deed::Later(seconds) => {
                let headers = [("retry-after", seconds.to_string())];
                (StatusCode::TOO_MANY_REQUESTS, headers, "slow down").into_response()
            }
            Deed::Lines(lines) => lines.concat().into_response(),
            Deed::Protobuf(code, bytes) => {
                let form = "application/vnd.kubernetes.protobuf";
                let form = [(CONTENT_TYPE, form)];
                (StatusCode::from_u16(code).unwrap(), form, bytes).into_response()
            }
            Deed::Break(lines) => {
                let (line, answer) = open();
                for text in lines {
                    line.send(Ok(bytes(&text))).unwrap();
                }
                line.send(Ok(bytes("{\"type\":\"ADDED\",\"obj"))).unwrap();
                line.send(Err(std::io::Error::from(
                    std::io::ErrorKind::ConnectionReset,
                )))
                .unwrap();
                answer
            }
            Deed::Mute => {
                let (line, answer) = open();
                let open = self.open.entry(path.to_owned()).or_default();
                open.push((line, None));
                answer
            }
        }
    }

    fn stream(&mut self, path: &str, listed: bool, since: Option<u64>, only: Only) -> Response {
        if !listed && since.is_some_and(|since| since < FIRST) {
            return ended(410, "Expired").into_response();
        }
        let (line, answer) = open();
        let since = since.filter(|_| !listed).unwrap_or(self.version);
        for (version, collection, event) in &self.history {
            let is_new = *version > since && *collection == path;
            if is_new && is_meant(&event["object"], only.as_deref()) {
                line.send(Ok(bytes(&format!("{event}\n")))).unwrap();
            }
        }
        if listed {
            let all = self.objects.get(path).into_iter().flatten();
            for object in all.filter(|object| is_meant(object, only.as_deref())) {
                line.send(Ok(bytes(&added(object)))).unwrap();
            }
            line.send(Ok(bytes(&bookmark(self.version, true)))).unwrap();
        }
        let open = self.open.entry(path.to_owned()).or_default();
        open.push((line, only));
        answer
    }

    fn page(&self, path: &str, query: &str) -> Response {
        let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
        let only = only(query);
        let all = self.objects.get(path).into_iter().flatten();
        let all: Vec<&Value> = all
            .filter(|object| is_meant(object, only.as_deref()))
            .collect();
        let token = value("continue=").filter(|token| !token.is_empty());
        let from: usize = token.map_or(0, |token| token.parse().unwrap());
        // Small pages, whatever is asked for, unless everything is.
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

/// The version that a watch begins after; none = the present one.
fn since(query: &str) -> Option<u64> {
    let mut parts = query.split('&');
    let version = parts.find_map(|part| part.strip_prefix("resourceVersion="))?;
    version.parse().ok().filter(|version| *version > 0)
}

fn only(query: &str) -> Only {
    let mut parts = query.split('&');
    let name = parts.find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    name.map(str::to_owned)
}

fn is_meant(object: &Value, only: Option<&str>) -> bool {
    only.is_none_or(|only| object["metadata"]["name"] == *only)
}

fn status(code: u16, reason: &str, message: &str) -> Response {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn open() -> (Line, Response) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Response::new(Body::new(Held(receiver))))
}

/// A body that goes on as long as somebody may send.
struct Held(mpsc::UnboundedReceiver<Part>);

impl hyper::body::Body for Held {
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

/// The line that says that an object exists.
pub(crate) fn added(object: &Value) -> String {
    format!("{}\n", json!({"type": "ADDED", "object": object}))
}

/// The line that says how far a stream has come.
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

/// The line that ends a stream.
pub(crate) fn ended(code: u16, reason: &str) -> String {
    format!(
        "{}\n",
        json!({"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": "no"}})
    )
}

/// A Service with one port.
pub(crate) fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": "11"},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"port": 80}]},
    })
}
