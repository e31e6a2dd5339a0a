//! Flags of a virtual service (`IP_VS_SVC_F_*` in `include/uapi/linux/ip_vs.h`).

use std::fmt;

/// A set of service flags. Unknown bits are kept and written back.
///
/// The set never contains `IP_VS_SVC_F_HASHED`, the kernel's own bookkeeping bit that every service has when it is
/// read. Written with a new service, that bit would keep the service out of the kernel's table.
///
/// ```
/// use ipvs_netlink::ServiceFlags;
///
/// let flags = ServiceFlags::from_bits(0x8000) | ServiceFlags::ONE_PACKET;
/// assert!(flags.contains(ServiceFlags::ONE_PACKET));
/// assert_eq!(flags.bits(), 0x8004);
/// assert_eq!(flags.to_string(), "one-packet,0x8000");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceFlags(u32);

/// `IP_VS_SVC_F_HASHED`: the service is in the kernel's table. Only the kernel sets it.
const HASHED: u32 = 0x0002;

/// Names of flags, in the order of the text.
const NAMES: [(ServiceFlags, &str); 5] = [
    (ServiceFlags::PERSISTENT, "persistent"),
    (ServiceFlags::ONE_PACKET, "one-packet"),
    (ServiceFlags::SCHEDULER_1, "flag-1"),
    (ServiceFlags::SCHEDULER_2, "flag-2"),
    (ServiceFlags::SCHEDULER_3, "flag-3"),
];

impl ServiceFlags {
    /// A client keeps its real server (`ipvsadm -p`).
    pub const PERSISTENT: Self = Self(0x0001);
    /// Each datagram is scheduled on its own (`ipvsadm -o`); UDP only.
    pub const ONE_PACKET: Self = Self(0x0004);
    /// First flag of the scheduler (`ipvsadm -b flag-1`).
    pub const SCHEDULER_1: Self = Self(0x0008);
    /// Second flag of the scheduler (`ipvsadm -b flag-2`).
    pub const SCHEDULER_2: Self = Self(0x0010);
    /// Third flag of the scheduler (`ipvsadm -b flag-3`).
    pub const SCHEDULER_3: Self = Self(0x0020);
    /// `sh` and `mh`: use the next real server if the chosen one has weight 0 (`ipvsadm -b sh-fallback`).
    pub const HASH_FALLBACK: Self = Self::SCHEDULER_1;
    /// `sh` and `mh`: hash the client's port, too (`ipvsadm -b sh-port`).
    pub const HASH_PORT: Self = Self::SCHEDULER_2;

    /// The set with exactly these bits, except the kernel's own.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & !HASHED)
    }

    /// The bits, as in the kernel's header.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the set contains all of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Adds flags.
    pub fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Removes flags.
    pub fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

impl std::ops::BitOr for ServiceFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for ServiceFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut comma = "";
        for (flag, name) in NAMES {
            if self.contains(flag) {
                write!(f, "{comma}{name}")?;
                comma = ",";
                rest &= !flag.0;
            }
        }
        if rest != 0 {
            write!(f, "{comma}{rest:#x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_bookkeeping_bit_never_enters_a_set() {
        assert_eq!(ServiceFlags::from_bits(0x0003), ServiceFlags::PERSISTENT);
    }

    #[test]
    fn removing_a_flag_leaves_the_unknown_ones() {
        let mut flags = ServiceFlags::from_bits(0x4001);
        flags.remove(ServiceFlags::PERSISTENT);
        assert_eq!(flags.bits(), 0x4000);
    }
}
