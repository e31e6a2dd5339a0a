//! What the servers are asked.

use serde::{Deserialize, Serialize};

use crate::bench::kubernetes::ENDPOINTS;

/// The kinds of queries. All are for A records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum QueryKind {
    ClusterIp,
    Headless,
    /// A name with a search domain, which pods ask for first.
    NoSuchName,
}

impl QueryKind {
    pub(super) const ALL: [Self; 3] = [Self::ClusterIp, Self::Headless, Self::NoSuchName];

    /// The name to ask for.
    pub(super) fn name(self, number: u32) -> String {
        let domain = "bench.svc.cluster.local";
        match self {
            Self::ClusterIp => format!("s-{number:05}.{domain}"),
            Self::Headless => format!("h-{number:05}.{domain}"),
            Self::NoSuchName => format!("h-{number:05}.{domain}.{domain}"),
        }
    }

    pub(super) fn is_answer(self, code: u8, records: u16) -> bool {
        match self {
            Self::ClusterIp => (code, records) == (0, 1),
            Self::Headless => code == 0 && u32::from(records) == ENDPOINTS,
            Self::NoSuchName => (code, records) == (3, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_for_services_of_their_kind() {
        assert_eq!(
            QueryKind::ClusterIp.name(7),
            "s-00007.bench.svc.cluster.local"
        );
        assert_eq!(
            QueryKind::Headless.name(6),
            "h-00006.bench.svc.cluster.local"
        );
        assert!(QueryKind::NoSuchName.is_answer(3, 0) && !QueryKind::Headless.is_answer(0, 9));
    }
}
