//! Follows one collection and sends its changes to the loop.

use std::collections::BTreeSet;

use cluster::api::{Change, Connection};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::log_once::LogOnce;
use crate::state::{Collection, Name, name_of};

/// A change in a collection.
#[derive(Debug)]
pub(super) enum Update {
    /// An object was added or changed.
    Applied(Collection, Value),
    /// An object was deleted.
    Deleted(Collection, Name),
    /// The names of all objects.
    Listed(Collection, BTreeSet<Name>),
    /// A request failed and is retried.
    Failed,
}

/// Follows until the receiver is gone.
pub(super) async fn follow(
    connection: Connection,
    collection: Collection,
    updates: mpsc::Sender<Update>,
) {
    let mut source =
        cluster::api::Collection::selected(connection, collection.all(), collection.selector());
    let mut listed: Option<BTreeSet<Name>> = None;
    let (mut has_failed, mut log) = (false, LogOnce::default());
    loop {
        let update = match source.next().await {
            Change::Begin => {
                listed = Some(BTreeSet::new());
                continue;
            }
            Change::Exists(object) => {
                if let Some(listed) = &mut listed {
                    listed.insert(name_of(&object));
                }
                Update::Applied(collection, object)
            }
            Change::Gone(object) => Update::Deleted(collection, name_of(&object)),
            Change::Listed => Update::Listed(collection, listed.take().unwrap_or_default()),
            // A watch that breaks once is normal.
            Change::Trouble(_) if !std::mem::replace(&mut has_failed, true) => continue,
            Change::Trouble(error) => {
                log.failed(&error);
                Update::Failed
            }
        };
        has_failed = matches!(update, Update::Failed);
        if !has_failed {
            log.succeeded();
        }
        if updates.send(update).await.is_err() {
            return;
        }
    }
}
