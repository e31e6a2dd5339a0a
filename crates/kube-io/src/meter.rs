//! Counts requests and received bytes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::path::{Target, Verb};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requests {
    pub verb: Verb,
    /// The resource with its group: `endpointslices.discovery.k8s.io`.
    pub resource: String,
    /// The HTTP status; none without an answer.
    pub code: Option<u16>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests that were answered or failed.
    pub requests: BTreeMap<Requests, u64>,
    /// Received bytes of bodies, by resource.
    pub bytes: BTreeMap<String, u64>,
}

impl Count {
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Meter {
    count: Mutex<Count>,
}

impl Meter {
    pub(crate) fn request(&self, verb: Verb, target: &Target, code: Option<u16>) {
        let resource = target.full_resource();
        let key = Requests {
            verb,
            resource,
            code,
        };
        self.change(|count| *count.requests.entry(key).or_default() += 1);
    }

    pub(crate) fn received(&self, resource: &str, bytes: usize) {
        self.change(|count| {
            if let Some(sum) = count.bytes.get_mut(resource) {
                *sum += bytes as u64;
            } else {
                count.bytes.insert(resource.to_owned(), bytes as u64);
            }
        });
    }

    pub(crate) fn read(&self) -> Count {
        let mut copy = Count::default();
        self.change(|count| copy.clone_from(count));
        copy
    }

    /// A panic cannot leave the counters half written.
    fn change(&self, change: impl FnOnce(&mut Count)) {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
