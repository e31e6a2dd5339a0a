//! Relists Nodes when an object uses a label that was not kept.

use std::time::Duration;

use kube_io::list_watch::chance;
use tokio::time::{sleep, timeout, timeout_at};

use super::super::feed::Feed;
use super::super::resources::ResourceId;
use super::relist_pace::{LabelOwner, RelistPaces};

/// Spreads the lists of all agents: a random pause of up to this time for each Node.
const APART: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(60);

/// How long the start waits for a requested list.
const LATE: Duration = Duration::from_secs(30);

/// Requests a list when an object waits for labels and the pace allows a list. Does not end.
pub(in crate::api::watch) async fn relist(feed: &Feed) {
    let mut paces = RelistPaces::default();
    loop {
        let Some(label_owner) = label_owner(feed) else {
            feed.labels_missing.notified().await;
            continue;
        };
        let allowed = paces.not_before(label_owner);
        if feed.epoch.elapsed() < allowed {
            // An object of an administrator may come meanwhile, and has its own pace.
            feed.reflector.borrow_mut().mark_delayed();
            let _early = timeout_at(feed.epoch + allowed, feed.labels_missing.notified()).await;
            continue;
        }
        sleep(pause(feed, chance())).await;
        if self::label_owner(feed) == Some(label_owner) {
            paces.requested(label_owner, feed.epoch.elapsed());
            feed.reflector.borrow_mut().request_nodes();
            feed.query_changed.notify_one();
            until_begun(feed).await;
        }
    }
}

/// Waits until the start is complete. After [`LATE`], reports that the list of Nodes is late.
async fn until_begun(feed: &Feed) {
    let begun = async {
        while !feed.reflector.borrow().is_complete() {
            feed.labels_missing.notified().await;
        }
    };
    if timeout(LATE, begun).await.is_err() {
        feed.reflector.borrow_mut().node_list_late();
        // The feed ends by itself when the receiver is gone.
        let _gone = feed.send_batches().await;
    }
}

fn label_owner(feed: &Feed) -> Option<LabelOwner> {
    feed.reflector.borrow().label_owner_waiting()
}

/// The pause before a list. Labels that come into use during it need no other list. Zero before the
/// start is complete.
fn pause(feed: &Feed, chance: f64) -> Duration {
    let reflector = feed.reflector.borrow();
    if !reflector.is_complete() {
        return Duration::ZERO;
    }
    let nodes = u32::try_from(reflector.count(ResourceId::NODES)).unwrap_or(u32::MAX);
    APART.saturating_mul(nodes).min(LONGEST).mul_f64(chance)
}
