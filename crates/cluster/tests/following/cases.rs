//! Cases that the fake API server and a real one pass (`cargo xtask controlplane test`).
//!
//! Each case gets an empty collection of `TopologyPolicy` objects, a namespaced kind with a status
//! subresource.

use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Makes a test of each case; `$open` returns an [`Api`] and a guard that keeps it alive.
macro_rules! api_server_cases {
    ($open:path) => {
        api_server_cases!(
            $open =>
            a_missing_object_is_not_found,
            an_object_is_created_once,
            a_write_with_an_old_version_is_a_conflict,
            a_merge_patch_changes_its_fields_and_null_removes_one,
            a_write_that_changes_nothing_keeps_the_version,
            the_status_is_written_only_through_its_subresource,
            a_list_comes_in_pages_of_one_version,
            a_field_selector_selects_one_object,
            a_watch_reports_every_change_since_its_version,
            a_streaming_list_ends_with_a_bookmark,
            a_watch_from_a_compacted_version_gets_410_in_the_stream
        );
    };
    ($open:path => $($case:ident),+) => {
        $(
            #[tokio::test]
            async fn $case() {
                let (api, _guard) = $open().await;
                cases::$case(&api).await;
            }
        )+
    };
}

/// Limit for an answer and for the next line of a watch.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn collection(namespace: &str) -> String {
    format!("/apis/topology.ipvs-topo.io/v1alpha1/namespaces/{namespace}/topologypolicies")
}

/// An API server and an empty collection.
pub(crate) struct Api {
    pub(crate) client: Client,
    pub(crate) collection: String,
    /// Whether the server streams lists; Kubernetes 1.33 does not by default.
    pub(crate) streams: bool,
}

impl Api {
    async fn send(&self, method: Method, rest: &str, body: Option<&Value>) -> Response<Body> {
        let content_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{rest}", self.collection))
            .header("content-type", content_type)
            .body(Body::from(
                body.map_or_else(Vec::new, |body| body.to_string().into_bytes()),
            ))
            .unwrap();
        let sent = tokio::time::timeout(TIMEOUT, self.client.send(request));
        sent.await.unwrap().unwrap()
    }

    /// Returns the status code and the body.
    async fn request(&self, method: Method, rest: &str, body: Option<&Value>) -> (u16, Value) {
        let (head, body) = self.send(method, rest, body).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), serde_json::from_slice(&body).unwrap())
    }

    async fn get(&self, rest: &str) -> Value {
        let (code, body) = self.request(Method::GET, rest, None).await;
        assert_eq!(code, 200, "{body}");
        body
    }

    async fn create(&self, name: &str) -> Value {
        let (code, made) = self.request(Method::POST, "", Some(&policy(name))).await;
        assert_eq!(code, 201, "{made}");
        made
    }

    async fn patch(&self, name: &str, patch: &Value) -> Value {
        let (code, after) = self
            .request(Method::PATCH, &format!("/{name}"), Some(patch))
            .await;
        assert_eq!(code, 200, "{after}");
        after
    }

    async fn watch(&self, query: &str) -> Lines {
        let answer = self
            .send(Method::GET, &format!("?watch=true&{query}"), None)
            .await;
        assert_eq!(answer.status(), 200);
        Lines {
            body: answer.into_body(),
            received: Vec::new(),
        }
    }
}

struct Lines {
    body: Body,
    received: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let frame = tokio::time::timeout(TIMEOUT, self.body.frame()).await;
            let frame = frame.unwrap().unwrap().unwrap();
            self.received.extend(frame.into_data().unwrap());
        }
    }

    /// The type of the next event, and the name and the version of its object; skips bookmarks.
    async fn event(&mut self) -> (String, String, u64) {
        let mut line = self.next().await;
        while line["type"] == "BOOKMARK" {
            line = self.next().await;
        }
        let object = &line["object"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&line["type"]),
            text(&object["metadata"]["name"]),
            version(object),
        )
    }
}

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "topology.ipvs-topo.io/v1alpha1",
        "kind": "TopologyPolicy",
        "metadata": { "name": name },
        "spec": { "mode": "Prefer", "levels": [{ "key": "topology.kubernetes.io/zone" }, { "any": true }] },
    })
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

fn expect_error(answer: &(u16, Value), code: u16, reason: &str) {
    let (found, body) = answer;
    assert_eq!(
        (*found, &body["kind"], &body["code"], &body["reason"]),
        (code, &json!("Status"), &json!(code), &json!(reason)),
        "{body}"
    );
}

pub(crate) async fn a_missing_object_is_not_found(api: &Api) {
    let mut object = policy("a");
    object["metadata"]["resourceVersion"] = json!("1");
    for (method, body) in [
        (Method::GET, None),
        (
            Method::PATCH,
            Some(json!({ "spec": { "mode": "Weighted" } })),
        ),
        (Method::DELETE, None),
    ] {
        expect_error(
            &api.request(method, "/a", body.as_ref()).await,
            404,
            "NotFound",
        );
    }
    let answer = api.request(Method::PUT, "/a/status", Some(&object)).await;
    expect_error(&answer, 404, "NotFound");
    assert_eq!(names(&api.get("").await), [""; 0]);
}

pub(crate) async fn an_object_is_created_once(api: &Api) {
    let made = api.create("a").await;
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"]["mode"], "Prefer");
    assert_eq!(version(&api.get("/a").await), version(&made));
    let again = api.request(Method::POST, "", Some(&policy("a"))).await;
    expect_error(&again, 409, "AlreadyExists");
    let (code, _) = api.request(Method::DELETE, "/a", None).await;
    assert_eq!(code, 200);
    assert!(version(&api.create("a").await) > version(&made));
}

pub(crate) async fn a_write_with_an_old_version_is_a_conflict(api: &Api) {
    let made = api.create("a").await;
    let mut next = made.clone();
    next["spec"]["priority"] = json!(5);
    let (code, after) = api.request(Method::PUT, "/a", Some(&next)).await;
    assert_eq!((code, &after["spec"]["priority"]), (200, &json!(5)));
    assert!(version(&after) > version(&made));
    assert_eq!(after["metadata"]["generation"], 2);
    expect_error(
        &api.request(Method::PUT, "/a", Some(&made)).await,
        409,
        "Conflict",
    );
    let late = json!({ "metadata": { "resourceVersion": version(&made).to_string() }, "spec": { "mode": "Prefer" } });
    expect_error(
        &api.request(Method::PATCH, "/a", Some(&late)).await,
        409,
        "Conflict",
    );
    assert_eq!(version(&api.get("/a").await), version(&after));
}

pub(crate) async fn a_merge_patch_changes_its_fields_and_null_removes_one(api: &Api) {
    api.create("a").await;
    let labels = json!({ "metadata": { "labels": { "x": "1", "y": "2" } } });
    let after = api.patch("a", &labels).await;
    assert_eq!(after["metadata"]["labels"], json!({ "x": "1", "y": "2" }));
    let after = api
        .patch("a", &json!({ "metadata": { "labels": { "x": null } } }))
        .await;
    assert_eq!(after["metadata"]["labels"], json!({ "y": "2" }));
    assert_eq!(after["spec"]["mode"], "Prefer");
    assert_eq!(
        after["metadata"]["generation"], 1,
        "labels are not part of the spec"
    );
    let levels = json!({ "spec": { "levels": [{ "any": true }] } });
    let after = api.patch("a", &levels).await;
    let levels = after["spec"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 1, "lists are replaced");
}

pub(crate) async fn a_write_that_changes_nothing_keeps_the_version(api: &Api) {
    api.create("a").await;
    let patch = json!({ "metadata": { "labels": { "x": "1" } } });
    let first = api.patch("a", &patch).await;
    let second = api.patch("a", &patch).await;
    assert_eq!(version(&first), version(&second));
    let (code, third) = api.request(Method::PUT, "/a", Some(&second)).await;
    assert_eq!((code, version(&third)), (200, version(&first)));
}

pub(crate) async fn the_status_is_written_only_through_its_subresource(api: &Api) {
    let mut object = api.create("a").await;
    object["spec"]["priority"] = json!(5);
    object["status"] = json!({ "matchedServices": 3 });
    let (code, object) = api.request(Method::PUT, "/a/status", Some(&object)).await;
    assert_eq!(
        (code, &object["status"]["matchedServices"]),
        (200, &json!(3)),
        "{object}"
    );
    assert_ne!(object["spec"]["priority"], 5);
    assert_eq!(object["metadata"]["generation"], 1);
    let mut other = object.clone();
    other["spec"]["priority"] = json!(5);
    other["status"] = json!({ "matchedServices": 9 });
    let (_, after) = api.request(Method::PUT, "/a", Some(&other)).await;
    assert_eq!(
        (
            &after["spec"]["priority"],
            &after["status"]["matchedServices"]
        ),
        (&json!(5), &json!(3))
    );
    assert_eq!(after["metadata"]["generation"], 2);
    let late = api.request(Method::PUT, "/a/status", Some(&object)).await;
    expect_error(&late, 409, "Conflict");
}

pub(crate) async fn a_list_comes_in_pages_of_one_version(api: &Api) {
    let all = ["a", "b", "c", "d", "e"];
    for name in all {
        api.create(name).await;
    }
    let (mut found, mut versions, mut token, mut pages) =
        (Vec::new(), Vec::new(), String::new(), 0);
    loop {
        let page = api.get(&format!("?limit=2&continue={token}")).await;
        found.extend(names(&page));
        versions.push(version(&page));
        pages += 1;
        let next = page["metadata"]["continue"].as_str();
        next.unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((found, pages), (all.map(str::to_owned).to_vec(), 3));
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
    assert_eq!(names(&api.get("").await), all);
}

pub(crate) async fn a_field_selector_selects_one_object(api: &Api) {
    api.create("a").await;
    api.create("b").await;
    let list = api.get("?fieldSelector=metadata.name%3Db").await;
    assert_eq!(names(&list), ["b"]);
    let query = format!(
        "resourceVersion={}&fieldSelector=metadata.name%3Db",
        version(&list)
    );
    let mut lines = api.watch(&query).await;
    for name in ["a", "b"] {
        api.patch(name, &json!({ "metadata": { "labels": { "x": "1" } } }))
            .await;
    }
    let (event_type, name, _) = lines.event().await;
    assert_eq!((&*event_type, &*name), ("MODIFIED", "b"));
}

pub(crate) async fn a_watch_reports_every_change_since_its_version(api: &Api) {
    api.create("a").await;
    let since = version(&api.get("").await);
    let made = api.create("b").await;
    let mut lines = api.watch(&format!("resourceVersion={since}")).await;
    let changed = api.patch("b", &json!({ "spec": { "priority": 5 } })).await;
    api.request(Method::DELETE, "/a", None).await;
    let event = |event_type: &str, name: &str, object| {
        (event_type.to_owned(), name.to_owned(), version(object))
    };
    assert_eq!(lines.event().await, event("ADDED", "b", &made));
    assert_eq!(lines.event().await, event("MODIFIED", "b", &changed));
    let (event_type, name, gone) = lines.event().await;
    assert_eq!((&*event_type, &*name), ("DELETED", "a"));
    assert!(gone > version(&changed), "the version of the deletion");
}

pub(crate) async fn a_streaming_list_ends_with_a_bookmark(api: &Api) {
    api.create("a").await;
    let made = api.create("b").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    if !api.streams {
        let answer = api
            .request(Method::GET, &format!("?watch=true&{query}"), None)
            .await;
        return expect_error(&answer, 422, "Invalid");
    }
    let mut lines = api.watch(query).await;
    let mut names = Vec::new();
    for _ in 0..2 {
        let (event_type, name, _) = lines.event().await;
        assert_eq!(event_type, "ADDED");
        names.push(name);
    }
    assert_eq!(names, ["a", "b"]);
    let line = lines.next().await;
    assert_eq!(line["type"], "BOOKMARK", "{line}");
    let annotations = &line["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    assert!(version(&line["object"]) >= version(&made));
    api.create("c").await;
    let (event_type, name, _) = lines.event().await;
    assert_eq!((&*event_type, &*name), ("ADDED", "c"));
}

pub(crate) async fn a_watch_from_a_compacted_version_gets_410_in_the_stream(api: &Api) {
    let mut lines = api.watch("resourceVersion=1").await;
    let line = lines.next().await;
    assert_eq!(line["type"], "ERROR", "{line}");
    let status = &line["object"];
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
}
