//! The schedulers of the kernel: names, flags, and the shares that they achieve with weights.
//!
//! | scheduler | weights | shares |
//! |---|---|---|
//! | `wrr`, `wlc`, `twos` | exact | those of the weights; `wlc` and `twos` while connections last equally long |
//! | `sed`, `nq` | exact | those of the weights over TCP; over UDP, whose connections they do not count, one takes all |
//! | `mh` | 1 to 63 | those of the weights, as near as 4,093 buckets come |
//! | `sh` | parts of 256 | those of the weights, as near as 256 buckets come |
//! | `rr`, `lc` | ignored | all alike |
//! | `fo`, `ovf`, `lblc`, `lblcr`, `dh` | | one real server takes all |
//!
//! Source: `net/netfilter/ipvs/ip_vs_*.c`.

mod buckets;
mod shares;

use std::fmt;
use std::str::FromStr;

/// Number of buckets of `mh`: the prime for `CONFIG_IP_VS_MH_TAB_INDEX=12`, the kernel's default.
pub const MH_BUCKETS: u32 = 4_093;
/// The largest weight that `mh` does not round, because it keeps six bits.
pub const MH_WEIGHT: u32 = 63;
/// Number of buckets of `sh`: `CONFIG_IP_VS_SH_TAB_BITS=8`, the kernel's default.
pub const SH_BUCKETS: u32 = 256;

/// A scheduler of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheduler {
    /// Round robin.
    Rr,
    /// Weighted round robin, whose long-run shares are exact.
    #[default]
    Wrr,
    /// Least connections.
    Lc,
    /// Weighted least connections.
    Wlc,
    /// Weighted fail-over.
    Fo,
    /// Weighted overflow.
    Ovf,
    /// Locality-based least connections.
    Lblc,
    /// The same with replication.
    Lblcr,
    /// Destination hashing.
    Dh,
    /// Source hashing.
    Sh,
    /// Shortest expected delay.
    Sed,
    /// Never queue.
    Nq,
    /// Maglev hashing.
    Mh,
    /// Weighted random, the better of two.
    Twos,
}

impl Scheduler {
    /// All schedulers, in the order of [`Self::NAMES`].
    pub const ALL: [Self; 14] = [
        Self::Rr,
        Self::Wrr,
        Self::Lc,
        Self::Wlc,
        Self::Fo,
        Self::Ovf,
        Self::Lblc,
        Self::Lblcr,
        Self::Dh,
        Self::Sh,
        Self::Sed,
        Self::Nq,
        Self::Mh,
        Self::Twos,
    ];

    /// All names: annotations, options and the API server's validation are checked against this list.
    pub const NAMES: [&'static str; 14] = {
        let mut names = [""; 14];
        let mut rest = (names.as_mut_slice(), Self::ALL.as_slice());
        while let ([name, names @ ..], [one, all @ ..]) = rest {
            *name = one.name();
            rest = (names, all);
        }
        names
    };

    /// The kernel's name for it; its module is `ip_vs_` plus this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rr => "rr",
            Self::Wrr => "wrr",
            Self::Lc => "lc",
            Self::Wlc => "wlc",
            Self::Fo => "fo",
            Self::Ovf => "ovf",
            Self::Lblc => "lblc",
            Self::Lblcr => "lblcr",
            Self::Dh => "dh",
            Self::Sh => "sh",
            Self::Sed => "sed",
            Self::Nq => "nq",
            Self::Mh => "mh",
            Self::Twos => "twos",
        }
    }

    /// The scheduler flag of `ipvsadm -b` without which the scheduler refuses clients whose bucket belongs to a real
    /// server of weight 0 (the first flag, `IP_VS_SVC_F_SCHED_MH_FALLBACK` and `IP_VS_SVC_F_SCHED_SH_FALLBACK`).
    pub const fn fallback(self) -> Option<&'static str> {
        match self {
            Self::Mh => Some("mh-fallback"),
            Self::Sh => Some("sh-fallback"),
            Self::Rr
            | Self::Wrr
            | Self::Lc
            | Self::Wlc
            | Self::Fo
            | Self::Ovf
            | Self::Lblc
            | Self::Lblcr
            | Self::Dh
            | Self::Sed
            | Self::Nq
            | Self::Twos => None,
        }
    }

    /// Why it may not achieve the desired shares.
    pub(crate) const fn limits(self) -> &'static str {
        match self {
            Self::Wrr | Self::Wlc | Self::Twos => "no weights up to 65535 are near enough",
            Self::Sed | Self::Nq => {
                "the scheduler counts active connections only, and UDP has none; wrr keeps to the weights"
            }
            Self::Mh => {
                "the scheduler distinguishes weights 1 to 63 and has 4093 buckets; wrr is exact"
            }
            Self::Sh => "the scheduler has 256 buckets; wrr is exact",
            Self::Rr | Self::Lc => "the scheduler ignores weights; wrr keeps to them",
            Self::Fo | Self::Ovf | Self::Lblc | Self::Lblcr | Self::Dh => {
                "the scheduler gives one real server everything; wrr keeps to the weights"
            }
        }
    }

    /// Whether the shares are those of the weights, for any connections and any order of the real servers.
    pub const fn keeps_weights(self) -> bool {
        matches!(self, Self::Wrr | Self::Wlc | Self::Twos)
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that no scheduler of the kernel has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scheduler; use one of {names}", names = Scheduler::NAMES.join(", "))]
pub struct UnknownScheduler(String);

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|scheduler| scheduler.name() == text);
        found.ok_or_else(|| UnknownScheduler(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
