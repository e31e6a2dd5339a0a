//! Nodes are read again when something comes to go by a label that was not kept of them.

use std::time::Duration;

use tokio::time::sleep;

use super::input::NODES;
use super::runner::{Shared, chance};

/// As many Nodes as there are agents ask for the same list at the same time: on average one in half of this.
const APART: Duration = Duration::from_millis(10);
/// Nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// Asks for a list whenever something waits for one. Does not end.
pub(super) async fn read_anew(shared: &Shared) {
    loop {
        while !shared.hub.borrow().lacks_labels() {
            shared.lacking.notified().await;
        }
        sleep(pause(shared, chance())).await;
        let mut hub = shared.hub.borrow_mut();
        if hub.lacks_labels() {
            hub.ask_for_nodes();
            shared.turned.notify_one();
        }
    }
}

/// What comes meanwhile is read with the same list. Before anything is known everything waits for it.
fn pause(shared: &Shared, chance: f64) -> Duration {
    let hub = shared.hub.borrow();
    if !hub.is_complete() {
        return Duration::ZERO;
    }
    let nodes = u32::try_from(hub.count(NODES)).unwrap_or(u32::MAX);
    APART.saturating_mul(nodes).min(LONGEST).mul_f64(chance)
}
