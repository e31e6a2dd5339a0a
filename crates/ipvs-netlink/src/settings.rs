//! Settings and properties of IPVS in one network namespace.

/// Connection timeouts in seconds (`ipvsadm --set TCP TCPFIN UDP`).
///
/// When written, `None` and 0 both leave a timeout unchanged; the largest is `i32::MAX / HZ`. When read, `None` means
/// that the kernel was built without the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Established TCP connections.
    pub tcp: Option<u32>,
    /// TCP connections after a FIN.
    pub tcp_fin: Option<u32>,
    /// UDP exchanges.
    pub udp: Option<u32>,
}

/// Version and table size of the kernel's IPVS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The version, as in `IP_VS_VERSION_CODE`: 0x010201 is 1.2.1.
    pub version: u32,
    /// Buckets of the connection table; 0 while it does not exist, as in Linux 7 before a namespace's first service.
    pub connection_table_size: u32,
}

impl Info {
    /// Major, minor and patch level.
    pub const fn version_parts(&self) -> (u8, u8, u8) {
        let [_, major, minor, patch] = self.version.to_be_bytes();
        (major, minor, patch)
    }
}
