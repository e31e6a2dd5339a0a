//! Whether the map stands for the Nodes, or the Nodes are read themselves.

use std::time::Duration;

use tokio::time::timeout;

use super::super::driver::{Feed, chance};
use super::super::resources::MAPS;
use super::topology_map::{MapGap, MapReadiness, NodeScope};

/// How long a map that told enough may lack something before all Nodes are read, up to twice as long: the controller
/// writes what it lacks within seconds, and a thousand agents that read all Nodes at once are a burden.
const PATIENCE: Duration = Duration::from_secs(60);

/// Turns from one to the other. Ends when nobody listens any more.
pub(in crate::api::watch) async fn select(shared: &Feed) -> Option<()> {
    loop {
        let (readiness, reading, complete) = stands(shared);
        match (readiness, reading) {
            (Some(MapReadiness::Ready), NodeScope::All) => turn(shared, NodeScope::Own).await?,
            (Some(MapReadiness::Missing(_)), NodeScope::Own) if !complete => {
                turn(shared, NodeScope::All).await?;
            }
            (Some(MapReadiness::Missing(_)), NodeScope::Own) => {
                let patience = PATIENCE.mul_f64(1.0 + chance());
                if timeout(patience, until_fit(shared)).await.is_err() {
                    turn(shared, NodeScope::All).await?;
                }
            }
            (Some(MapReadiness::Missing(lack)), NodeScope::All) => {
                shared.board.lacks(MAPS, Some(lack));
                shared.judged.notified().await;
            }
            _ => shared.judged.notified().await,
        }
    }
}

fn stands(shared: &Feed) -> (Option<MapReadiness>, NodeScope, bool) {
    let reflector = shared.reflector.borrow();
    (
        reflector.readiness().cloned(),
        reflector.reading(),
        reflector.is_complete(),
    )
}

fn lack(shared: &Feed) -> Option<MapGap> {
    match shared.reflector.borrow().readiness() {
        Some(MapReadiness::Missing(lack)) => Some(lack.clone()),
        _ => None,
    }
}

async fn until_fit(shared: &Feed) {
    while lack(shared).is_some() {
        shared.judged.notified().await;
    }
}

async fn turn(shared: &Feed, reading: NodeScope) -> Option<()> {
    shared.reflector.borrow_mut().turn(reading);
    shared.board.lacks(MAPS, lack(shared));
    shared.turned.notify_one();
    shared.tell().await
}
