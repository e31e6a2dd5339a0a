//! Whether the map stands for the Nodes, or the Nodes are read themselves.

use std::time::Duration;

use tokio::time::timeout;

use super::hub::{Fitness, Lack, Reading};
use super::input::MAPS;
use super::runner::{Shared, chance};

/// How long a map that told enough may lack something before all Nodes are read, up to twice as long: the controller
/// writes what it lacks within seconds, and a thousand agents that read all Nodes at once are a burden.
const PATIENCE: Duration = Duration::from_secs(60);

/// Turns from one to the other. Ends when nobody listens any more.
pub(super) async fn choose(shared: &Shared) -> Option<()> {
    loop {
        let (fitness, reading, complete) = stands(shared);
        match (fitness, reading) {
            (Some(Fitness::Fit), Reading::All) => turn(shared, Reading::Own).await?,
            (Some(Fitness::Lacks(_)), Reading::Own) if !complete => {
                turn(shared, Reading::All).await?;
            }
            (Some(Fitness::Lacks(_)), Reading::Own) => {
                let patience = PATIENCE.mul_f64(1.0 + chance());
                if timeout(patience, until_fit(shared)).await.is_err() {
                    turn(shared, Reading::All).await?;
                }
            }
            (Some(Fitness::Lacks(lack)), Reading::All) => {
                shared.board.lacks(MAPS, Some(lack));
                shared.judged.notified().await;
            }
            _ => shared.judged.notified().await,
        }
    }
}

fn stands(shared: &Shared) -> (Option<Fitness>, Reading, bool) {
    let hub = shared.hub.borrow();
    (hub.fitness().cloned(), hub.reading(), hub.is_complete())
}

fn lack(shared: &Shared) -> Option<Lack> {
    match shared.hub.borrow().fitness() {
        Some(Fitness::Lacks(lack)) => Some(lack.clone()),
        _ => None,
    }
}

async fn until_fit(shared: &Shared) {
    while lack(shared).is_some() {
        shared.judged.notified().await;
    }
}

async fn turn(shared: &Shared, reading: Reading) -> Option<()> {
    shared.hub.borrow_mut().turn(reading);
    shared.board.lacks(MAPS, lack(shared));
    shared.turned.notify_one();
    shared.tell().await
}
