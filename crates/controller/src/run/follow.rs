//! Follows one collection, and tells what matters of it.

use std::collections::BTreeSet;

use cluster::api::{Change, Connection};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::trouble::Trouble;
use crate::world::{Collection, Name, name_of};

/// What was heard of a collection.
#[derive(Debug)]
pub(super) enum Heard {
    /// An object is so now.
    Exists(Collection, Value),
    /// An object is gone.
    Gone(Collection, Name),
    /// These are all that there are.
    Listed(Collection, BTreeSet<Name>),
    /// A request came to nothing, and is tried again.
    Trouble,
}

/// Follows until nobody listens.
pub(super) async fn follow(
    connection: Connection,
    collection: Collection,
    listener: mpsc::Sender<Heard>,
) {
    let mut source =
        cluster::api::Collection::selected(connection, collection.all(), collection.selector());
    let mut listed: Option<BTreeSet<Name>> = None;
    let (mut troubled, mut trouble) = (false, Trouble::default());
    loop {
        let heard = match source.next().await {
            Change::Begin => {
                listed = Some(BTreeSet::new());
                continue;
            }
            Change::Exists(object) => {
                if let Some(listed) = &mut listed {
                    listed.insert(name_of(&object));
                }
                Heard::Exists(collection, object)
            }
            Change::Gone(object) => Heard::Gone(collection, name_of(&object)),
            Change::Listed => Heard::Listed(collection, listed.take().unwrap_or_default()),
            // A watch that breaks once is nothing that anybody must know.
            Change::Trouble(_) if !std::mem::replace(&mut troubled, true) => continue,
            Change::Trouble(error) => {
                trouble.lasts(&error);
                Heard::Trouble
            }
        };
        troubled = matches!(heard, Heard::Trouble);
        if !troubled {
            trouble.is_over();
        }
        if listener.send(heard).await.is_err() {
            return;
        }
    }
}
