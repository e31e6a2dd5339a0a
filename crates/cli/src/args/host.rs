//! Settings of the host: timeouts of connections, the table of connection tracking, and ARP, as in kube-proxy (KP-CF-28,
//! KP-CF-29, KP-CF-35 to KP-CF-38).

use std::fs;

use agent::agent_config::{Estimation, StrictArp};
use clap::{Args, ValueEnum};
use dataplane::ipvs::IpvsTimeouts;
use dataplane::sysctl::ConntrackSettings;
use rustix::thread::sched_getaffinity;

use super::values::{self, Timeout};

/// The processors of the machine, as a list such as `0-3,8`.
const PROCESSORS: &str = "/sys/devices/system/cpu/online";

/// kube-proxy's defaults.
const MAX_PER_CORE: u64 = 32_768;
const MIN: u64 = 131_072;
/// kube-proxy's limit for all processors together.
const MOST: u64 = 1_048_576;
const TCP_ESTABLISHED: u64 = 24 * 60 * 60;
const TCP_CLOSE_WAIT: u64 = 60 * 60;

/// Sizes of the connection tracking table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimits {
    /// Connections for each processor; 0 keeps the kernel's limit, and `min` has no effect then.
    pub per_core: u64,
    pub min: u64,
}

/// When `net.ipv4.vs.run_estimation` is 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum EstimationMode {
    #[default]
    Auto,
    On,
    Off,
}

impl From<EstimationMode> for Estimation {
    fn from(mode: EstimationMode) -> Self {
        match mode {
            EstimationMode::Auto => Self::Auto,
            EstimationMode::On => Self::On,
            EstimationMode::Off => Self::Off,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct HostArgs {
    /// ARP for Service addresses that are on no link of the node. Without the flag the node answers
    /// no requests for them; `true` also keeps them out of its own requests; `false` lets it answer.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = values::boolean
    )]
    pub ipvs_strict_arp: Option<bool>,

    /// Estimation: whether the kernel adds up counters and rates of virtual and real servers. `auto`
    /// stops it with 10,000 of them or more, because packets wait meanwhile; with fewer it changes
    /// nothing.
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    pub estimation: EstimationMode,

    /// The timeout of IPVS for idle TCP connections; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub ipvs_tcp_timeout: Option<Timeout>,

    /// The timeout of IPVS for TCP connections after a FIN; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub ipvs_tcpfin_timeout: Option<Timeout>,

    /// The timeout of IPVS for UDP; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub ipvs_udp_timeout: Option<Timeout>,

    /// The number of tracked connections for each processor; 0 keeps the kernel's limit. This and
    /// the next six flags have kube-proxy's defaults with `--config`; without it, the kernel's
    /// settings stay as they are.
    #[arg(long, value_name = "CONNECTIONS", allow_negative_numbers = true, value_parser = values::connections)]
    pub conntrack_max_per_core: Option<u64>,

    /// The number of tracked connections at least, unless --conntrack-max-per-core is 0.
    #[arg(long, value_name = "CONNECTIONS", allow_negative_numbers = true, value_parser = values::connections)]
    pub conntrack_min: Option<u64>,

    /// The timeout of connection tracking for idle TCP connections; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub conntrack_tcp_timeout_established: Option<Timeout>,

    /// The timeout of connection tracking for TCP connections that one side has closed; 0 keeps
    /// the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub conntrack_tcp_timeout_close_wait: Option<Timeout>,

    /// Let connection tracking accept TCP segments outside of the window.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_parser = values::boolean
    )]
    pub conntrack_tcp_be_liberal: bool,

    /// The timeout of connection tracking for UDP without replies; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub conntrack_udp_timeout: Option<Timeout>,

    /// The timeout of connection tracking for UDP with replies; 0 keeps the kernel's.
    #[arg(long, value_name = "DURATION")]
    pub conntrack_udp_timeout_stream: Option<Timeout>,
}

impl HostArgs {
    /// What the node does about ARP.
    pub const fn strict_arp(&self) -> StrictArp {
        match self.ipvs_strict_arp {
            None => StrictArp::NoReplies,
            Some(true) => StrictArp::NoRepliesAndOwnSender,
            Some(false) => StrictArp::Off,
        }
    }

    /// The timeouts of IPVS.
    pub fn ipvs(&self) -> IpvsTimeouts {
        let seconds = |timeout: Option<Timeout>| {
            let seconds = timeout?.seconds();
            Some(u32::try_from(seconds).unwrap_or(u32::MAX))
        };
        IpvsTimeouts {
            tcp: seconds(self.ipvs_tcp_timeout),
            tcp_fin: seconds(self.ipvs_tcpfin_timeout),
            udp: seconds(self.ipvs_udp_timeout),
        }
    }

    /// The settings of connection tracking on this machine. With a file of kube-proxy its defaults apply.
    pub fn conntrack(&self, has_file: bool) -> ConntrackSettings {
        let seconds = |timeout: Option<Timeout>, default: Option<u64>| {
            let seconds = timeout.map(Timeout::seconds);
            seconds.or(default.filter(|_| has_file)).filter(|s| *s != 0)
        };
        ConntrackSettings {
            table: self.table(has_file, cores()),
            tcp_established: seconds(
                self.conntrack_tcp_timeout_established,
                Some(TCP_ESTABLISHED),
            ),
            tcp_close_wait: seconds(self.conntrack_tcp_timeout_close_wait, Some(TCP_CLOSE_WAIT)),
            udp: seconds(self.conntrack_udp_timeout, None),
            udp_stream: seconds(self.conntrack_udp_timeout_stream, None),
            tcp_be_liberal: self.conntrack_tcp_be_liberal,
        }
    }

    fn table(&self, has_file: bool, cores: u64) -> Option<u64> {
        let TableLimits { per_core, min } = self.table_limits(has_file);
        let size = per_core.saturating_mul(cores).min(MOST);
        (per_core != 0).then(|| size.max(min))
    }

    /// The limits of the connection tracking table. With a file of kube-proxy its defaults apply.
    pub fn table_limits(&self, has_file: bool) -> TableLimits {
        let (per_core, min) = (self.conntrack_max_per_core, self.conntrack_min);
        let is_set = has_file || per_core.is_some() || min.is_some();
        let default = if is_set { MAX_PER_CORE } else { 0 };
        TableLimits {
            per_core: per_core.unwrap_or(default),
            min: min.unwrap_or(MIN),
        }
    }
}

/// The processors of the machine. This process may use fewer of them, if kubelet's CPU manager gives some to other pods.
fn cores() -> u64 {
    let online = fs::read_to_string(PROCESSORS);
    let online = online.ok().and_then(|ranges| processors(&ranges));
    online.unwrap_or_else(|| sched_getaffinity(None).map_or(1, |set| u64::from(set.count())))
}

/// The number of processors in a list of ranges.
fn processors(ranges: &str) -> Option<u64> {
    let size = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    ranges.trim().split(',').map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kp_cf_35_the_table_has_kube_proxys_size_with_its_file_and_the_given_one_otherwise() {
        let sized = |per_core: Option<u64>, min: Option<u64>, has_file: bool, cores: u64| {
            let args = HostArgs {
                conntrack_max_per_core: per_core,
                conntrack_min: min,
                ..HostArgs::default()
            };
            args.table(has_file, cores)
        };
        let table = |per_core, min, has_file| sized(per_core, min, has_file, 8);
        assert_eq!(table(None, None, false), None);
        assert_eq!(table(None, None, true), Some(262_144));
        assert_eq!(table(Some(1_000), None, false), Some(131_072));
        assert_eq!(table(Some(1_000), Some(0), true), Some(8_000));
        assert_eq!(table(None, Some(500_000), true), Some(500_000));
        assert_eq!(table(Some(0), Some(500_000), true), None);
        assert_eq!(sized(None, None, true, 64), Some(1_048_576));
        let large = sized(None, Some(2_000_000), true, 64);
        assert_eq!(large, Some(2_000_000));
    }

    #[test]
    fn all_processors_of_the_machine_count() {
        assert_eq!(processors("0-3,8,10-11\n"), Some(7));
        assert_eq!(processors("0"), Some(1));
        for text in ["", "\n", "3-0", "0-", "all"] {
            assert_eq!(processors(text), None, "{text:?}");
        }
        assert!(cores() > 0);
    }

    #[test]
    fn kp_cf_36_defaults_of_timeouts_apply_only_with_a_file_and_0_keeps_a_timeout() {
        let mut args = HostArgs::default();
        assert_eq!(args.conntrack(false), ConntrackSettings::default());
        let settings = args.conntrack(true);
        assert_eq!(settings.tcp_established, Some(86_400));
        assert_eq!(settings.tcp_close_wait, Some(3_600));
        assert_eq!((settings.udp, settings.udp_stream), (None, None));
        let timeout = |text: &str| Some(text.parse().unwrap());
        args.conntrack_tcp_timeout_established = timeout("0s");
        args.conntrack_udp_timeout = timeout("10s");
        args.ipvs_udp_timeout = timeout("1m");
        let settings = args.conntrack(true);
        assert_eq!(settings.tcp_established, None);
        assert_eq!(settings.tcp_close_wait, Some(3_600));
        assert_eq!(settings.udp, Some(10));
        let ipvs = args.ipvs();
        assert_eq!((ipvs.tcp, ipvs.tcp_fin, ipvs.udp), (None, None, Some(60)));
        assert!("-1s".parse::<Timeout>().is_err());
    }
}
