//! Switches the source of Nodes between TopologyMaps and the Nodes themselves.

use std::time::Duration;

use kube_io::list_watch::chance;
use tokio::time::timeout;

use super::super::feed::Feed;
use super::topology_map::{MapGap, MapReadiness, NodeScope};

/// How long the agent waits before it reads all Nodes because of a gap in TopologyMaps that were
/// ready; at random up to twice as long. The controller fills a gap within seconds, and lists of all
/// Nodes by a thousand agents at once are a burden for the API server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Switches when the readiness of the TopologyMaps changes. Ends when the receiver of the batches
/// is gone.
pub(in crate::api::watch) async fn select(feed: &Feed) -> Option<()> {
    loop {
        let (readiness, scope, complete) = state(feed);
        match (readiness, scope) {
            (Some(MapReadiness::Ready), NodeScope::All) => switch(feed, NodeScope::Own).await?,
            (Some(MapReadiness::Missing(_)), NodeScope::Own) if !complete => {
                switch(feed, NodeScope::All).await?;
            }
            (Some(MapReadiness::Missing(_)), NodeScope::Own) => {
                let patience = PATIENCE.mul_f64(1.0 + chance());
                if timeout(patience, until_ready(feed)).await.is_err() {
                    switch(feed, NodeScope::All).await?;
                }
            }
            (Some(MapReadiness::Missing(gap)), NodeScope::All) => {
                feed.sync_status.set_map_gap(Some(gap));
                feed.readiness_changed.notified().await;
            }
            _ => feed.readiness_changed.notified().await,
        }
    }
}

fn state(feed: &Feed) -> (Option<MapReadiness>, NodeScope, bool) {
    let reflector = feed.reflector.borrow();
    (
        reflector.readiness().cloned(),
        reflector.node_scope(),
        reflector.is_complete(),
    )
}

fn gap(feed: &Feed) -> Option<MapGap> {
    match feed.reflector.borrow().readiness() {
        Some(MapReadiness::Missing(gap)) => Some(gap.clone()),
        _ => None,
    }
}

async fn until_ready(feed: &Feed) {
    while gap(feed).is_some() {
        feed.readiness_changed.notified().await;
    }
}

async fn switch(feed: &Feed, scope: NodeScope) -> Option<()> {
    feed.reflector.borrow_mut().set_node_scope(scope);
    feed.sync_status.set_map_gap(gap(feed));
    feed.query_changed.notify_one();
    feed.send_batches().await
}
