//! The sysctls of connection tracking: kube-proxy's `conntrack` settings (KP-SC-10).

use std::path::Path;

use super::setting::{DesiredValue, Setting, read_number};

/// Settings of connection tracking. `None` leaves a sysctl as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConntrackSettings {
    /// The number of connections that are tracked at least.
    pub table: Option<u64>,
    /// Timeouts in seconds.
    pub tcp_established: Option<u64>,
    pub tcp_close_wait: Option<u64>,
    pub udp: Option<u64>,
    pub udp_stream: Option<u64>,
    /// Accept TCP segments outside of the window.
    pub tcp_be_liberal: bool,
}

/// Timeouts of connection tracking, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConntrackTimeouts {
    /// Established TCP connections.
    pub tcp: Option<u64>,
    /// TCP connections after both FINs.
    pub tcp_fin: Option<u64>,
    /// UDP with packets in both directions.
    pub udp: Option<u64>,
}

const ESTABLISHED: &str = "net/netfilter/nf_conntrack_tcp_timeout_established";
const TIME_WAIT: &str = "net/netfilter/nf_conntrack_tcp_timeout_time_wait";
const UDP_STREAM: &str = "net/netfilter/nf_conntrack_udp_timeout_stream";

const NOT_AS_CONFIGURED: &str = "connections are forgotten at another time than configured";

impl ConntrackSettings {
    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> + use<> {
        let size = self.table.map(DesiredValue::AtLeast);
        let exactly = |value: Option<u64>| value.map(DesiredValue::Exactly);
        let liberal = self.tcp_be_liberal.then_some(DesiredValue::Exactly(1));
        // Chains of four entries are kube-proxy's measure (KP-SC-10). It writes the module's parameter in /sys, which is
        // read-only in pods; the kernel has had the sysctl since 4.8.
        let buckets = self.table.map(|size| DesiredValue::AtLeast(size / 4));
        let rows = [
            (
                "net/netfilter/nf_conntrack_max",
                size,
                "new connections fail when the table is full",
            ),
            (
                "net/netfilter/nf_conntrack_buckets",
                buckets,
                "finding a connection takes longer when the table is full",
            ),
            (
                ESTABLISHED,
                exactly(self.tcp_established),
                NOT_AS_CONFIGURED,
            ),
            (
                "net/netfilter/nf_conntrack_tcp_timeout_close_wait",
                exactly(self.tcp_close_wait),
                NOT_AS_CONFIGURED,
            ),
            (
                "net/netfilter/nf_conntrack_tcp_be_liberal",
                liberal,
                "connections end if a segment is outside of the window",
            ),
            (
                "net/netfilter/nf_conntrack_udp_timeout",
                exactly(self.udp),
                NOT_AS_CONFIGURED,
            ),
            (UDP_STREAM, exactly(self.udp_stream), NOT_AS_CONFIGURED),
        ];
        rows.into_iter().filter_map(|(file, value, without)| {
            value.map(|value| Setting {
                file,
                value,
                without,
            })
        })
    }
}

impl ConntrackTimeouts {
    /// Reads those in effect.
    pub(crate) fn read(root: &Path) -> Self {
        let read = |file| read_number(root, file);
        Self {
            tcp: read(ESTABLISHED),
            tcp_fin: read(TIME_WAIT),
            udp: read(UDP_STREAM),
        }
    }
}
