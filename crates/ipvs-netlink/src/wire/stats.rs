//! `IPVS_STATS_ATTR_*`: the same numbers in 32 and in 64 bits.

use netlink_pipeline::{AttributeValue, Counter, DecodeError, Raw, attribute_table};

use crate::{Rates, Stats};

attribute_table! {
    /// Counters and rates of a service or destination.
    StatsAttributes {
        IPVS_STATS_ATTR_CONNS = 1 => connections: Counter,
        IPVS_STATS_ATTR_INPKTS = 2 => in_packets: Counter,
        IPVS_STATS_ATTR_OUTPKTS = 3 => out_packets: Counter,
        IPVS_STATS_ATTR_INBYTES = 4 => in_bytes: Counter,
        IPVS_STATS_ATTR_OUTBYTES = 5 => out_bytes: Counter,
        IPVS_STATS_ATTR_CPS = 6 => connection_rate: Counter,
        IPVS_STATS_ATTR_INPPS = 7 => in_packet_rate: Counter,
        IPVS_STATS_ATTR_OUTPPS = 8 => out_packet_rate: Counter,
        IPVS_STATS_ATTR_INBPS = 9 => in_byte_rate: Counter,
        IPVS_STATS_ATTR_OUTBPS = 10 => out_byte_rate: Counter,
        IPVS_STATS_ATTR_PAD = 11 => pad: Raw<'a>,
    }
}

/// Decodes the counters, from the 64-bit attribute if the kernel sends it (4.1 and newer).
pub(crate) fn read(wide: Option<Raw<'_>>, narrow: Option<Raw<'_>>) -> Result<Stats, DecodeError> {
    let Some(Raw(bytes)) = wide.or(narrow) else {
        return Ok(Stats::default());
    };
    let table = StatsAttributes::read(bytes, "statistics")?;
    let number = |counter: Option<Counter>| counter.unwrap_or_default().0;
    Ok(Stats {
        connections: number(table.connections),
        in_packets: number(table.in_packets),
        out_packets: number(table.out_packets),
        in_bytes: number(table.in_bytes),
        out_bytes: number(table.out_bytes),
        rates: Rates {
            connections: number(table.connection_rate),
            in_packets: number(table.in_packet_rate),
            out_packets: number(table.out_packet_rate),
            in_bytes: number(table.in_byte_rate),
            out_bytes: number(table.out_byte_rate),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes 1 to 10, each with its own number as the value.
    fn counters<const N: usize>(value: impl Fn(u8) -> [u8; N]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for kind in 1..=10 {
            let length = u16::try_from(4 + N).unwrap();
            bytes.extend(length.to_ne_bytes());
            bytes.extend(u16::from(kind).to_ne_bytes());
            bytes.extend(value(kind));
        }
        bytes
    }

    #[test]
    fn counters_of_kernels_before_4_1_are_read_and_the_wide_ones_win() {
        let narrow = counters(|kind| u32::from(kind).to_ne_bytes());
        let wide = counters(|kind| (u64::from(kind) << 32).to_ne_bytes());
        let stats = read(None, Some(Raw(&narrow))).unwrap();
        assert_eq!(
            (stats.connections, stats.out_bytes, stats.rates.out_bytes),
            (1, 5, 10)
        );
        let stats = read(Some(Raw(&wide)), Some(Raw(&narrow))).unwrap();
        assert_eq!(
            (stats.connections, stats.rates.connections),
            (1 << 32, 6 << 32)
        );
        assert_eq!(read(None, None).unwrap(), Stats::default());
    }
}
