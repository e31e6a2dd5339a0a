//! Following an API server with scripted lists.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kube_io::Access;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

/// The lists that the server sends in turn (the last one repeats), and the number of list requests.
type Lists = Arc<Mutex<(Vec<Value>, usize)>>;

/// Answers a list in pages only, and a watch with 410 until the last list was sent.
async fn answer(State(lists): State<Lists>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    if query.contains("sendInitialEvents") {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    let is_last = {
        let mut lists = lists.lock().unwrap_or_else(PoisonError::into_inner);
        let (lists, requests) = &mut *lists;
        if !query.contains("watch") {
            let list = lists.get(*requests).or_else(|| lists.last()).cloned();
            *requests += 1;
            return axum::Json(list).into_response();
        }
        *requests >= lists.len()
    };
    if is_last {
        std::future::pending::<()>().await;
    }
    StatusCode::GONE.into_response()
}

fn nodes(names: &[&str]) -> Value {
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({ "metadata": { "name": name } }))
        .collect();
    json!({ "metadata": { "resourceVersion": "7" }, "items": items })
}

async fn connection(lists: &[Value]) -> Connection {
    let lists: Lists = Arc::new(Mutex::new((lists.to_vec(), 0)));
    connection_to(Router::new().fallback(answer).with_state(lists)).await
}

async fn connection_to(router: Router) -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], clusters: [{{name: it, cluster: {{server: 'http://{server}'}}}}], users: [{{name: it, user: {{}}}}]}}"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let access = Access::kubeconfig(&kubeconfig, "tests");
    Connection::open(&access).await.unwrap()
}

/// The names in each list that the loop receives, until a list is empty.
async fn listed_names(connection: Connection, confirm: Duration) -> Vec<Vec<String>> {
    let (sender, mut updates) = mpsc::channel(8);
    let nodes = Followed::from(Collection::Nodes);
    let resource = resource(&nodes, false);
    let following = follow(connection, nodes, resource, confirm, sender);
    let following = tokio::spawn(following);
    let mut all: Vec<Vec<String>> = Vec::new();
    while all.last().is_none_or(|names| !names.is_empty()) {
        if let Some(Update::Listed(_, names)) = updates.recv().await {
            all.push(names.iter().map(|name| name.name.to_string()).collect());
        }
    }
    following.abort();
    all
}

/// An API server that has lost its etcd sends a complete and empty list.
#[tokio::test]
async fn nodes_are_removed_when_a_second_list_is_empty_too() {
    let connection = connection(&[nodes(&["n1", "n2"]), nodes(&[])]).await;
    let lists = listed_names(connection, Duration::from_millis(300)).await;
    assert_eq!(lists, [vec!["n1", "n2"], vec!["n1", "n2"], vec![]]);
}

/// The first update of a collection from a server that answers each request with 404.
async fn first_update(collection: Collection) -> Update {
    let missing = Router::new().fallback(|| async { StatusCode::NOT_FOUND });
    let connection = connection_to(missing).await;
    let (sender, mut updates) = mpsc::channel(8);
    let followed = Followed::from(collection);
    let resource = resource(&followed, true);
    let following = follow(connection, followed, resource, Duration::ZERO, sender);
    let following = tokio::spawn(following);
    let update = updates.recv().await.unwrap();
    following.abort();
    update
}

/// A proxy, or an API server that starts, may answer 404 for kinds that every cluster has.
#[tokio::test]
async fn a_404_means_that_there_are_no_objects_only_for_custom_kinds() {
    let mut cases = tokio::task::JoinSet::new();
    for (collection, is_custom) in [
        (Collection::Nodes, false),
        (Collection::Services, false),
        (Collection::Slices, false),
        (Collection::Pods, false),
        (Collection::Agents, true),
        (Collection::PodMaps, true),
    ] {
        cases.spawn(async move {
            let update = first_update(collection).await;
            let is_empty = matches!(update, Update::Listed(_, names) if names.is_empty());
            assert_eq!(is_empty, is_custom, "{collection:?}");
        });
    }
    cases.join_all().await;
}
