//! What the core needs of a connection.

use std::future::Future;

#[cfg(feature = "tokio")]
use crate::transport::AsyncConnection;
use crate::transport::{Connection, Conversation, Error, Options, Socket};

/// A connection of either front.
pub(super) trait Talk: Send {
    /// Leads a conversation to its end.
    fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn options(&self) -> &Options;

    fn socket(&self) -> &Socket;
}

/// The future is ready when it is first polled.
impl Talk for Connection {
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
impl Talk for AsyncConnection {
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
