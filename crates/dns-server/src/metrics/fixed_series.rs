//! A metric whose labels have a closed list of values, so that clients cannot add series.

use std::hash::Hash;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// The series of a metric. A series exists after its first use; a later use needs no lock and no memory.
#[derive(Debug)]
pub(super) struct FixedSeries<L, M> {
    family: Family<L, M, fn() -> M>,
    series: Box<[(L, OnceLock<M>)]>,
}

impl<L: Clone + Eq + Hash, M: Clone> FixedSeries<L, M> {
    pub(super) fn new(labels: impl IntoIterator<Item = L>, make: fn() -> M) -> Self {
        let labels = labels.into_iter();
        Self {
            family: Family::new_with_constructor(make),
            series: labels.map(|labels| (labels, OnceLock::new())).collect(),
        }
    }

    /// The metric, for a registry.
    pub(super) fn family(&self) -> Family<L, M, fn() -> M> {
        self.family.clone()
    }

    /// The series at this position of the labels.
    pub(super) fn at(&self, position: usize) -> Option<&M> {
        let (labels, series) = self.series.get(position)?;
        Some(series.get_or_init(|| self.family.get_or_create_owned(labels)))
    }

    /// Makes every series exist.
    pub(super) fn start_all(&self) {
        for position in 0..self.series.len() {
            self.at(position);
        }
    }
}

impl<L: Clone + Eq + Hash> FixedSeries<L, Counter> {
    pub(super) fn increment(&self, position: usize) {
        if let Some(counter) = self.at(position) {
            counter.inc();
        }
    }
}
