//! Summarises traffic in a few numbers.

use serde::Serialize;

use super::flow::Flow;
use super::matrix::Matrix;
use super::node_zones::NodeZones;

/// Above this multiple of its even share an endpoint is overloaded, as for Topology Aware Hints.
pub const OVERLOADED: f64 = 1.2;

/// Tolerance for sums of fractions at the threshold.
const ROUNDING: f64 = 1e-9;

/// The distribution of traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The part that stays in its zone, 0 to 1.
    pub in_zone: f64,
    /// The part that leaves its zone, 0 to 1.
    pub cross_zone: f64,
    /// The part that is refused, 0 to 1.
    pub refused: f64,
    /// The smallest load of an endpoint, relative to an even split; absent without endpoints.
    pub load_min: Option<f64>,
    pub load_median: Option<f64>,
    pub load_max: Option<f64>,
    /// Endpoints with more than 1.2 times an even split.
    pub overloaded: usize,
    pub endpoints: usize,
    /// GiB that leave their zone; only for measured rates.
    pub cross_gib: Option<f64>,
    /// Their cost; without measured rates, the average cost of a GiB.
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub(crate) matrix: Matrix,
    refused: f64,
    loads: Vec<f64>,
    volume: f64,
}

impl Sum {
    /// Adds `flows`, each with an equal part of `volume`.
    pub(crate) fn add(&mut self, flows: &[Flow], volume: f64) {
        let each = volume / f64::from(u32::try_from(flows.len().max(1)).unwrap_or(u32::MAX));
        for flow in flows {
            self.matrix.add_all(&flow.matrix, each);
            self.refused += flow.refused * each;
            self.loads
                .extend(flow.endpoints.iter().map(|load| load.relative));
            self.volume += each;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.matrix.add_all(&other.matrix, 1.0);
        self.refused += other.refused;
        self.loads.extend(&other.loads);
        self.volume += other.volume;
    }

    /// The numbers; with GiB if volumes are `measured`, with costs if there is a `price`.
    pub(crate) fn figures(
        &self,
        node_zones: &NodeZones,
        measured: bool,
        price: Option<f64>,
    ) -> Figures {
        let part = |amount: f64| {
            if self.volume > 0.0 {
                amount / self.volume
            } else {
                0.0
            }
        };
        let zones = node_zones.zones.iter().zip(self.matrix.diagonal());
        let inside: f64 = zones
            .filter(|(zone, _)| !zone.is_empty())
            .map(|(_, amount)| amount)
            .sum();
        let cross = (self.matrix.sum() - inside).max(0.0);
        let mut loads = self.loads.clone();
        loads.sort_unstable_by(f64::total_cmp);
        Figures {
            in_zone: part(inside),
            cross_zone: part(cross),
            refused: part(self.refused),
            load_min: loads.first().copied(),
            load_median: median(&loads),
            load_max: loads.last().copied(),
            overloaded: loads
                .iter()
                .filter(|load| **load > OVERLOADED + ROUNDING)
                .count(),
            endpoints: loads.len(),
            cross_gib: measured.then_some(cross),
            cost: price.map(|price| price * if measured { cross } else { part(cross) }),
        }
    }

    /// The matrix as parts of all traffic.
    pub(crate) fn parts(&self) -> Vec<Vec<f64>> {
        let part = |amount: &f64| {
            if self.volume > 0.0 {
                amount / self.volume
            } else {
                0.0
            }
        };
        self.matrix
            .rows()
            .map(|row| row.iter().map(part).collect())
            .collect()
    }
}

/// The median of sorted numbers.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len().max(1) - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0]), Some(1.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
    }
}
