//! The local API: HTTP on a unix socket, for `status`, `diff` and `explain`.
//!
//! | path | answer |
//! |---|---|
//! | `/v1/status` | the node, its input, the kernel, what is foreign or wrong ([`HeadView`]) |
//! | `/v1/services?after=NS/SVC&limit=N` | virtual servers by Service, page by page ([`PageView`]) |
//! | `/v1/services?name=NS/SVC` | those of one Service; 404 if there is none |
//! | `/v1/explain?name=NS/SVC` | how each was decided, and what would change it; 404 if there is none ([`ExplainView`]) |
//! | `/v1/diff` | what would be written now ([`DiffView`]) |
//! | POST `/v1/endpoint-connection?endpoints=IP:PORT,...` | none: a server on this node holds the connection while it can answer (`connection`) |
//!
//! Errors are `{"error": "..."}`. Large clusters are read in pages, so neither the loop nor this process's memory is
//! used for everything at the same time.
//!
//! A process that may open the socket can be hostile: a DNS server, which parses packets of every pod, may have been
//! taken over. So requests, connections of servers and explanations in progress are limited.
//!
//! [`HeadView`]: agent_api::status::HeadView
//! [`PageView`]: agent_api::status::PageView
//! [`ExplainView`]: agent_api::view::ExplainView
//! [`DiffView`]: agent_api::view::DiffView

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod admission;
mod answer;
mod connection;
pub(crate) mod context;
mod live;
mod refusal;
pub(crate) mod socket;

use std::convert::Infallible;
use std::sync::Arc;

use agent_api::describe;
use agent_api::explain::nothing;
use agent_api::status::{HeadView, PageView};
use agent_api::view::{DiffView, ExplainView};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use telemetry::ConnectionLimit;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use topology_core::model::ObjectName;

use self::context::Api;
use self::refusal::Refusal;
use crate::state::{Page, ServiceState};

/// Services in one page, unless the client requests fewer.
pub(crate) const PAGE: usize = 200;

/// Explanations in progress. They go on when their clients close the connection.
const MAX_EXPLANATIONS: usize = 2;
static EXPLANATIONS: Semaphore = Semaphore::const_new(MAX_EXPLANATIONS);

/// Concurrent connections, without those of servers that hold one.
const MAX_CONNECTIONS: usize = 64;

#[derive(Debug, Default, Deserialize)]
struct Ask {
    name: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// Answers on the socket until the task is dropped.
pub(crate) async fn serve(listener: UnixListener, api: Api) -> Infallible {
    let limit = ConnectionLimit::new(MAX_CONNECTIONS);
    telemetry::serve_within(listener, router(Arc::new(api)), limit).await
}

/// The routes of the API.
fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/services", get(services))
        .route("/v1/explain", get(explain))
        .route("/v1/diff", get(diff))
        .route("/v1/endpoint-connection", post(connection::open))
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "this agent has no such page") })
        .with_state(api)
}

async fn status(State(api): State<Arc<Api>>) -> Result<Json<HeadView>, Refusal> {
    let surroundings = api.handle.surroundings().await?;
    Ok(Json(answer::head(&api, &api.handle.pulse(), surroundings)))
}

async fn services(
    State(api): State<Arc<Api>>,
    Query(ask): Query<Ask>,
) -> Result<Json<PageView>, Refusal> {
    if let Some(name) = ask.name {
        let service = one(&api, &name).await?;
        return Ok(Json(answer::page(Page {
            services: vec![service],
            more: false,
        })));
    }
    let after = ask.after.as_deref().map(object_name).transpose()?;
    let limit = ask.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let page = api.handle.services(after, limit).await?;
    Ok(Json(answer::page(page)))
}

async fn explain(
    State(api): State<Arc<Api>>,
    Query(ask): Query<Ask>,
) -> Result<Json<Vec<ExplainView>>, Refusal> {
    let name = ask.name.ok_or_else(|| {
        Refusal::new(
            StatusCode::BAD_REQUEST,
            "say which Service with ?name=NAMESPACE/SERVICE",
        )
    })?;
    let name = object_name(&name)?;
    let turn = EXPLANATIONS.acquire().await;
    let Some(input) = api.handle.explain_input(name.clone()).await? else {
        return Err(missing(&api, name).await);
    };
    // What-if trials take a while with thousands of endpoints; other requests are served meanwhile.
    let explained = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        input.explain()
    })
    .await;
    let explained = explained
        .map_err(|stopped| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, stopped.to_string()))?;
    explained
        .map(Json)
        .map_err(|why| Refusal::new(StatusCode::NOT_FOUND, nothing(&name, &why)))
}

async fn one(api: &Api, name: &str) -> Result<ServiceState, Refusal> {
    let name = object_name(name)?;
    match api.handle.service(name.clone()).await? {
        Some(found) => Ok(found),
        None => Err(missing(api, name).await),
    }
}

/// The error for an unknown Service, with the reason.
async fn missing(api: &Api, name: ObjectName) -> Refusal {
    match api.handle.missing(name).await {
        Ok(words) => Refusal::new(StatusCode::NOT_FOUND, words),
        Err(stopped) => stopped.into(),
    }
}

async fn diff(State(api): State<Arc<Api>>) -> Result<Json<DiffView>, Refusal> {
    let steps = api.handle.plan().await?;
    let steps = steps.map_err(|why| Refusal::new(StatusCode::BAD_GATEWAY, why))?;
    Ok(Json(describe::diff(&steps)))
}

fn object_name(text: &str) -> Result<ObjectName, Refusal> {
    ObjectName::parse(text).ok_or_else(|| {
        let words = format!("{text:?} is not NAMESPACE/SERVICE");
        Refusal::new(StatusCode::BAD_REQUEST, words)
    })
}

#[cfg(test)]
mod tests;
