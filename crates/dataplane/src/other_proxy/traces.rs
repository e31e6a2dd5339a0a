//! Looks up, by name, the objects that kube-proxy creates in the kernel in addition to virtual servers.
//!
//! Numbers are those of `include/uapi/linux/netfilter/nf_tables.h` and `ip_set.h`. The names are KP-IT-01 and KP-IS-01
//! for iptables and ipvs mode, and `tableName` of kube-proxy's `pkg/proxy/nftables` for nftables mode.

use std::path::Path;

use netlink_pipeline::{AsyncConnection, Batch, NetlinkProtocol, Options, Request, Writer};

/// `NFT_MSG_GETTABLE` and `NFT_MSG_GETCHAIN` of the subsystem `NFNL_SUBSYS_NFTABLES`.
const GET_TABLE: u16 = 0x0a01;
const GET_CHAIN: u16 = 0x0a04;
/// `IPSET_CMD_HEADER` of the subsystem `NFNL_SUBSYS_IPSET`: one set without its elements.
const GET_SET: u16 = 0x060c;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const IPSET_ATTR_PROTOCOL: u16 = 1;
const IPSET_ATTR_SETNAME: u16 = 2;
/// Supported by every kernel since 2.6.39 (`IPSET_PROTOCOL_MIN`).
const IPSET_PROTOCOL: u8 = 6;

const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

const TABLE: &str = "kube-proxy";
const CHAIN: &str = "KUBE-SERVICES";
/// The sets of IPv4 and of IPv6.
const SETS: [&str; 2] = ["KUBE-CLUSTER-IP", "KUBE-6-CLUSTER-IP"];

/// Without this module there are no sets, and a request about a set would make the kernel load it.
const SET_MODULE: &str = "/sys/module/ip_set";

/// Objects of kube-proxy in either family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traces {
    /// The chain `KUBE-SERVICES` in the iptables table `nat` (nft backend).
    pub(super) chains: bool,
    /// The first of the sets of ipvs mode that exists.
    pub(super) set: Option<&'static str>,
    /// The nftables table `kube-proxy`.
    pub(super) tables: bool,
}

impl Traces {
    /// The objects as an operator would look them up.
    pub(super) fn describe(self) -> Option<String> {
        let chain = self.chains.then(|| "the chain KUBE-SERVICES".to_owned());
        let set = self.set.map(|set| format!("the ipset {set}"));
        let table = self
            .tables
            .then(|| "the nftables table kube-proxy".to_owned());
        let found: Vec<String> = [chain, set, table].into_iter().flatten().collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// The mode that creates these objects.
    pub(super) fn mode(self) -> Option<&'static str> {
        match self {
            Self { tables: true, .. } => Some("nftables"),
            Self { set: Some(_), .. } => Some("ipvs"),
            Self { chains: true, .. } => Some("iptables"),
            Self { .. } => None,
        }
    }
}

/// A socket for lookups by name; `None` if the kernel has no netfilter, and so no traces.
pub(super) struct NameQueries {
    connection: Option<AsyncConnection>,
}

impl NameQueries {
    /// Opens the socket in the current network namespace.
    pub(super) fn open() -> Self {
        Self {
            connection: AsyncConnection::open(NetlinkProtocol::NETFILTER, &Options::default()).ok(),
        }
    }

    /// Looks up every name.
    pub(super) async fn find_traces(&mut self) -> Traces {
        Traces {
            chains: self.exists(GET_CHAIN, chain).await,
            set: self.set().await,
            tables: self.exists(GET_TABLE, table).await,
        }
    }

    async fn set(&mut self) -> Option<&'static str> {
        if !Path::new(SET_MODULE).exists() {
            return None;
        }
        for name in SETS {
            if self.exists(GET_SET, |out| set(out, name)).await {
                return Some(name);
            }
        }
        None
    }

    /// Whether the object exists in either family.
    async fn exists(&mut self, kind: u16, fill: impl Fn(&mut Writer<'_>)) -> bool {
        let Some(connection) = &mut self.connection else {
            return false;
        };
        for family in [NFPROTO_IPV4, NFPROTO_IPV6] {
            let mut payload = Vec::new();
            let mut out = Writer::new(&mut payload);
            // `struct nfgenmsg`: family, version, resource id.
            out.bytes(&[family, 0, 0, 0]);
            fill(&mut out);
            let mut batch = Batch::new();
            batch.push(Request::new(kind, 0).with_answer(), &payload);
            let mut found = false;
            let answered = connection.execute_with(batch, |_, _| {
                found = true;
                Ok(())
            });
            // The kernel reports ENOENT for a name that does not exist.
            if answered.await.is_ok() && found {
                return true;
            }
        }
        false
    }
}

fn table(out: &mut Writer<'_>) {
    out.attribute(NFTA_TABLE_NAME, &terminated(TABLE));
}

fn chain(out: &mut Writer<'_>) {
    out.attribute(NFTA_CHAIN_TABLE, &terminated("nat"));
    out.attribute(NFTA_CHAIN_NAME, &terminated(CHAIN));
}

fn set(out: &mut Writer<'_>, name: &str) {
    out.attribute(IPSET_ATTR_PROTOCOL, &[IPSET_PROTOCOL]);
    out.attribute(IPSET_ATTR_SETNAME, &terminated(name));
}

fn terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}
