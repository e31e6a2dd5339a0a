//! The operations that blocking and asynchronous connections share, as a trait.

use std::future::Future;

#[cfg(feature = "tokio")]
use netlink_pipeline::AsyncConnection;
use netlink_pipeline::{Connection, Conversation, Error, Options, Socket};

/// A blocking or asynchronous connection.
pub(super) trait NetlinkConnection: Send {
    /// Runs a conversation until it is done.
    fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn options(&self) -> &Options;

    fn socket(&self) -> &Socket;
}

/// Its future is ready when it is first polled.
impl NetlinkConnection for Connection {
    async fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> Result<(), Error> {
        Self::converse(self, conversation)
    }

    fn options(&self) -> &Options {
        self.options()
    }

    fn socket(&self) -> &Socket {
        self.socket()
    }
}

#[cfg(feature = "tokio")]
impl NetlinkConnection for AsyncConnection {
    async fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> Result<(), Error> {
        Self::converse(self, conversation).await
    }

    fn options(&self) -> &Options {
        self.options()
    }

    fn socket(&self) -> &Socket {
        self.socket()
    }
}
