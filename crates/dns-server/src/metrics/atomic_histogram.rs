//! A histogram that is observed without a lock: a query observes three of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The first of the upper bounds in nanoseconds, each twice the one before. `CoreDNS` begins with 0.25 ms; an answer from
/// memory takes less.
const FIRST_NANOSECONDS: u64 = 31_250;

/// The last upper bound is 8.192 s, as that of `CoreDNS`.
const DOUBLINGS: u32 = 18;

/// `CoreDNS`' upper bounds in bytes.
const BYTES: [u64; 14] = [
    0, 100, 200, 300, 400, 511, 1_023, 2_047, 4_095, 8_291, 16_000, 32_000, 48_000, 64_000,
];

/// Clones share their counts.
#[derive(Debug, Clone)]
pub(super) struct AtomicHistogram(Arc<AtomicBuckets>);

#[derive(Debug)]
struct AtomicBuckets {
    bounds: Box<[u64]>,
    /// The observed integers in one unit of the exposition.
    per_unit: f64,
    /// One more than the bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl AtomicHistogram {
    pub(super) fn of_seconds() -> Self {
        let bounds = (0..=DOUBLINGS).map(|doublings| FIRST_NANOSECONDS << doublings);
        Self::new(bounds.collect(), 1e9)
    }

    pub(super) fn of_bytes() -> Self {
        Self::new(BYTES.into(), 1.0)
    }

    fn new(bounds: Box<[u64]>, per_unit: f64) -> Self {
        Self(Arc::new(AtomicBuckets {
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            bounds,
            per_unit,
            sum: AtomicU64::new(0),
        }))
    }

    pub(super) fn observe_duration(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn observe_bytes(&self, bytes: usize) {
        self.observe(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn observe(&self, value: u64) {
        let buckets = &self.0;
        let at = buckets.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = buckets.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        buckets.sum.fetch_add(value, Ordering::Relaxed);
    }
}

impl EncodeMetric for AtomicHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let buckets = &self.0;
        let bounds = buckets.bounds.iter();
        let bounds = bounds.map(|bound| to_f64(*bound) / buckets.per_unit);
        let counts = buckets.counts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        let pairs: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        let sum = to_f64(buckets.sum.load(Ordering::Relaxed)) / buckets.per_unit;
        let count = pairs.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &pairs, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for AtomicHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an exposition has no more digits"
)]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn exposition(histogram: &AtomicHistogram) -> String {
        let mut registry = Registry::default();
        let name = "h";
        registry.register(name, "Help", histogram.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_value_counts_in_every_bucket_whose_bound_is_not_below_it() {
        let histogram = AtomicHistogram::of_bytes();
        for bytes in [100, 101, 70_000] {
            histogram.observe_bytes(bytes);
        }
        let text = exposition(&histogram);
        for line in [
            "# TYPE h histogram",
            "h_sum 70201.0",
            "h_count 3",
            "h_bucket{le=\"0.0\"} 0",
            "h_bucket{le=\"100.0\"} 1",
            "h_bucket{le=\"200.0\"} 2",
            "h_bucket{le=\"64000.0\"} 2",
            "h_bucket{le=\"+Inf\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn durations_are_exposed_in_seconds() {
        let histogram = AtomicHistogram::of_seconds();
        histogram.observe_duration(Duration::from_micros(250));
        histogram.observe_duration(Duration::from_secs(9));
        let text = exposition(&histogram);
        for line in [
            "h_sum 9.00025",
            "h_bucket{le=\"0.00003125\"} 0",
            "h_bucket{le=\"0.000125\"} 0",
            "h_bucket{le=\"0.00025\"} 1",
            "h_bucket{le=\"8.192\"} 1",
            "h_bucket{le=\"+Inf\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
