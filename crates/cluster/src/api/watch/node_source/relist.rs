//! Lists Nodes again when a policy uses a label that was not kept of them.

use std::time::Duration;

use tokio::time::{sleep, timeout, timeout_at};

use super::super::driver::{Feed, chance};
use super::super::resources::NODES;
use super::relist_pace::{LabelOwner, RelistPaces};

/// As many Nodes as there are agents ask for the same list at the same time: on average one in half of this.
const APART: Duration = Duration::from_millis(10);
/// Nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// For so long a start waits for a list that was asked for.
const LATE: Duration = Duration::from_secs(30);

/// Asks for a list whenever something waits for one and the pace allows it. Does not end.
pub(in crate::api::watch) async fn relist(shared: &Feed) {
    let mut paces = RelistPaces::default();
    loop {
        let Some(label_owner) = label_owner(shared) else {
            shared.lacking.notified().await;
            continue;
        };
        let allowed = paces.not_before(label_owner);
        if shared.epoch.elapsed() < allowed {
            // What comes meanwhile may have to wait for less.
            shared.reflector.borrow_mut().delay_nodes();
            let _early = timeout_at(shared.epoch + allowed, shared.lacking.notified()).await;
            continue;
        }
        sleep(pause(shared, chance())).await;
        if self::label_owner(shared) == Some(label_owner) {
            paces.asked(label_owner, shared.epoch.elapsed());
            shared.reflector.borrow_mut().ask_for_nodes();
            shared.turned.notify_one();
            until_begun(shared).await;
        }
    }
}

/// At the start everything waits for the list, but not for long.
async fn until_begun(shared: &Feed) {
    let begun = async {
        while !shared.reflector.borrow().is_complete() {
            shared.lacking.notified().await;
        }
    };
    if timeout(LATE, begun).await.is_err() {
        shared.reflector.borrow_mut().node_list_late();
        // Whoever listens no more ends the feed.
        let _told = shared.tell().await;
    }
}

fn label_owner(shared: &Feed) -> Option<LabelOwner> {
    shared.reflector.borrow().label_owner_waiting()
}

/// What comes meanwhile is read with the same list. Before anything is known everything waits for it.
fn pause(shared: &Feed, chance: f64) -> Duration {
    let reflector = shared.reflector.borrow();
    if !reflector.is_complete() {
        return Duration::ZERO;
    }
    let nodes = u32::try_from(reflector.count(NODES)).unwrap_or(u32::MAX);
    APART.saturating_mul(nodes).min(LONGEST).mul_f64(chance)
}
