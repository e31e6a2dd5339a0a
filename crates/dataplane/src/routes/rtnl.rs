//! Sends and receives `NETLINK_ROUTE` messages of `netlink-packet-route` through the pipelined transport.

use netlink_packet_core::{NetlinkSerializable as _, ParseableParametrized as _};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_pipeline::{
    AsyncConnection, Batch, DecodeError, Message, NetlinkProtocol, Options, Request, RequestResult,
};

/// `NLM_F_EXCL | NLM_F_CREATE` of `linux/netlink.h`: fail if it exists, create it if not.
const CREATE: u16 = 0x200 | 0x400;

/// A socket for links, addresses and routes.
#[derive(Debug)]
pub(crate) struct Rtnl {
    connection: AsyncConnection,
}

impl Rtnl {
    /// Opens the socket in the current network namespace.
    pub(crate) fn open() -> Result<Self, netlink_pipeline::Error> {
        let mut options = Options::default();
        // The kernel filters dumps.
        options.strict = true;
        let connection = AsyncConnection::open(NetlinkProtocol::ROUTE, &options)?;
        Ok(Self { connection })
    }

    /// Sends all messages; returns one result for each, in order.
    pub(crate) async fn send(
        &mut self,
        messages: impl Iterator<Item = RouteNetlinkMessage>,
    ) -> Result<Vec<RequestResult>, netlink_pipeline::Error> {
        let mut batch = Batch::new();
        for message in messages {
            let flags = match message {
                RouteNetlinkMessage::NewRoute(_) | RouteNetlinkMessage::NewLink(_) => CREATE,
                _ => 0,
            };
            batch.push(
                Request::new(message.message_type(), flags),
                &payload(&message),
            );
        }
        self.connection.execute(batch).await
    }

    /// Sends a request and returns its reply; `None` if the kernel refuses it.
    pub(crate) async fn request(
        &mut self,
        message: &RouteNetlinkMessage,
    ) -> Result<Option<RouteNetlinkMessage>, netlink_pipeline::Error> {
        let mut batch = Batch::new();
        batch.push(
            Request::new(message.message_type(), 0).with_answer(),
            &payload(message),
        );
        let mut answer = None;
        let read = |_, message: Message<'_>| {
            answer = parse(message);
            Ok(())
        };
        self.connection.execute_with(batch, read).await?;
        Ok(answer)
    }

    /// Dumps a table.
    pub(crate) async fn dump<T: Send>(
        &mut self,
        request: &RouteNetlinkMessage,
        mut read: impl FnMut(RouteNetlinkMessage) -> Option<T> + Send,
    ) -> Result<Vec<T>, netlink_pipeline::Error> {
        let kind = Request::new(request.message_type(), 0);
        let decode = |message: Message<'_>| -> Result<Option<T>, DecodeError> {
            Ok(parse(message).and_then(&mut read))
        };
        self.connection.dump(kind, &payload(request), decode).await
    }
}

fn payload(message: &RouteNetlinkMessage) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// Decodes a message; `None` for one that the crate cannot read, so that one unusual route does not hide the others.
pub(crate) fn parse(message: Message<'_>) -> Option<RouteNetlinkMessage> {
    parse_payload(message.kind, message.payload)
}

/// Does the same for a type and a payload.
pub(crate) fn parse_payload(kind: u16, payload: &[u8]) -> Option<RouteNetlinkMessage> {
    RouteNetlinkMessage::parse_with_param(payload, kind).ok()
}
