//! Computes the share of new connections that each real server gets.

use std::net::IpAddr;

use super::{Scheduler, buckets};
use crate::model::Protocol;
use crate::ratio::Ratio;

impl Scheduler {
    /// Returns each real server's share of new connections, if the real servers are added to an empty virtual server in
    /// the order of `weights` and there are no connections yet.
    ///
    /// `destinations` has the virtual addresses that clients use: one, or several for a firewall mark. `dh` selects by
    /// them; the result assumes that each gets as many clients.
    ///
    /// For schedulers that count connections, the result assumes connections of equal duration. In another order of
    /// real servers the shares differ by at most one round of the bucket table.
    pub fn shares(
        self,
        weights: &[u32],
        protocol: Protocol,
        destinations: &[IpAddr],
    ) -> Vec<Ratio> {
        // The kernel inserts a new real server at the head of its list.
        let list: Vec<u32> = weights.iter().rev().copied().collect();
        let mut parts = self.parts(&list, protocol, destinations);
        parts.reverse();
        let all = parts.iter().sum();
        parts.into_iter().map(|own| Ratio::new(own, all)).collect()
    }

    /// The shares of the real servers in the order of the kernel's list.
    fn parts(self, list: &[u32], protocol: Protocol, destinations: &[IpAddr]) -> Vec<u64> {
        let counts_none = protocol == Protocol::Udp;
        match self {
            Self::Sed if counts_none => only(list, heaviest(list)),
            Self::Nq if counts_none => only(list, first(list)),
            Self::Wrr | Self::Wlc | Self::Twos | Self::Sed | Self::Nq => weighted(list),
            Self::Rr | Self::Lc => list.iter().map(|own| u64::from(*own > 0)).collect(),
            Self::Fo | Self::Ovf => only(list, heaviest(list)),
            Self::Lblc | Self::Lblcr => only(list, first(list)),
            Self::Dh => buckets::of_destinations(list, destinations),
            Self::Mh => buckets::of_mh(list),
            Self::Sh => buckets::of_sh(list),
        }
    }
}

fn weighted(list: &[u32]) -> Vec<u64> {
    list.iter().map(|weight| u64::from(*weight)).collect()
}

/// Everything for one real server, or nothing for all.
fn only(list: &[u32], chosen: Option<usize>) -> Vec<u64> {
    (0..list.len())
        .map(|at| u64::from(chosen == Some(at)))
        .collect()
}

fn first(list: &[u32]) -> Option<usize> {
    list.iter().position(|weight| *weight > 0)
}

/// The first one with the largest weight.
fn heaviest(list: &[u32]) -> Option<usize> {
    let largest = list.iter().copied().max().filter(|weight| *weight > 0)?;
    list.iter().position(|weight| *weight == largest)
}
