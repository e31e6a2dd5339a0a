//! UDP connection tracking entries of real servers that are gone.
//!
//! A client that keeps its source port would go on sending to the old pod as long as the entry
//! lives (PAIN-01), so it is deleted as soon as the real server is. The kernel is asked for the
//! entries of one Service address at a time; no process is started.

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipvs_netlink::transport::{
    self, AsyncConnection, Batch, Message, NetlinkProtocol, Options, Request,
};

/// What identifies the entries to delete: where clients sent to, and who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Flow {
    /// The Service's address and port.
    pub(crate) service: (IpAddr, u16),
    /// The real server's address and port.
    pub(crate) server: (IpAddr, u16),
}

/// A socket for connection tracking.
#[derive(Debug)]
pub(crate) struct Conntrack {
    connection: AsyncConnection,
}

impl Conntrack {
    /// Opens the socket in the current network namespace.
    pub(crate) fn open() -> Result<Self, transport::Error> {
        let connection = AsyncConnection::open(NetlinkProtocol::NETFILTER, &Options::default())?;
        Ok(Self { connection })
    }

    /// Deletes the entries of `flows`; returns how many there were.
    pub(crate) async fn forget(
        &mut self,
        flows: &BTreeSet<Flow>,
    ) -> Result<usize, transport::Error> {
        let mut servers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for flow in flows {
            servers.entry(flow.service).or_default().insert(flow.server);
        }
        let mut deleted = 0;
        for ((address, port), servers) in servers {
            let wanted = |entry: &wire::Entry| {
                entry.flow.service == (address, port) && servers.contains(&entry.flow.server)
            };
            let decode = |message: Message<'_>| Ok(wire::parse(message.payload).filter(wanted));
            let request = Request::new(wire::GET, 0);
            let entries = self
                .connection
                .dump(request, &wire::list(address, port), decode)
                .await?;
            deleted += self.delete(&entries).await?;
        }
        Ok(deleted)
    }

    async fn delete(&mut self, entries: &[wire::Entry]) -> Result<usize, transport::Error> {
        let mut batch = Batch::new();
        for entry in entries {
            batch.push(Request::new(wire::DELETE, 0), &wire::delete(entry));
        }
        let outcomes = self.connection.execute(batch).await?;
        // A refusal is no trouble: the entry ended by itself meanwhile.
        Ok(outcomes.iter().filter(|outcome| outcome.is_ok()).count())
    }
}
