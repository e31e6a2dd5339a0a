//! `TopologyAgent`: what this agent tells of itself, as an object of the API server.
//!
//! ```text
//!  the loop ──(each Service, when it is resolved)──> Ledger ──> Account ──┐
//!  Pulse, collections ────────────────────────────────────────────────────┴─> Report ──> Pace ──> Desk ──> API server
//! ```
//!
//! The [`Ledger`] is kept up to date Service by Service, so a report costs what it tells, whatever the size of
//! the cluster. `Pace` says when it may be written; [`Desk`] writes it. Nothing here can stop or delay the loop.

pub(crate) mod keeper;
pub(crate) mod ledger;
pub(crate) mod pace;

mod desk;
mod told;

#[cfg(test)]
mod tests;

use cluster::schema::MAX_FALLBACKS;
use serde::{Deserialize, Serialize};

pub use desk::{Desk, Filed};
pub use ledger::{Account, Ledger};
pub use told::Told;

/// The status of a `TopologyAgent`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The version of the agent.
    pub version: String,
    /// How it goes.
    pub phase: Phase,
    /// What it acts by, and what it does instead.
    #[serde(flatten)]
    pub account: Account,
    /// How much there is.
    pub counts: Counts,
}

/// How it goes with an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Some input has not finished its first list.
    #[default]
    Starting,
    /// Everything is programmed.
    Serving,
    /// The kernel refuses something, or what the API server says may be stale.
    Degraded,
}

/// A policy that an agent acts by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActedBy {
    /// Its kind.
    pub kind: String,
    /// Its namespace; none for a `ClusterTopologyPolicy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The generation of its spec.
    pub generation: u64,
    /// How many Services it decides for here.
    pub services: u64,
}

/// A drain that an agent acts by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Drained {
    /// Its name.
    pub name: String,
    /// The generation of its spec.
    pub generation: u64,
    /// How many endpoints take no new connections because of it.
    pub endpoints: u64,
    /// How many Services it passes over.
    pub services_skipped: u64,
}

/// A Service that gets something else than asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fallback {
    /// Namespace and name: `shop/cart`.
    pub service: String,
    /// The policy that asked; none = annotations of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Why, in one word.
    pub reason: String,
    /// What was asked: a mode; none where that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What decides now: a mode, `Uniform` or `Nothing`.
    pub to: String,
    /// Since when.
    pub since: String,
}

/// How much there is on a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Services that it serves.
    pub services: u64,
    /// Virtual servers in the kernel.
    pub virtual_servers: u64,
    /// Real servers in the kernel.
    pub real_servers: u64,
    /// Virtual servers, routes and tables that failed, to be tried again.
    pub failed: u64,
    /// Services that get something else than asked.
    pub fallbacks: u64,
}

/// How a report differs from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// In nothing.
    None,
    /// In how much there is, which changes with every endpoint of the cluster.
    Amounts,
    /// In what somebody may wait for.
    News,
}

impl Report {
    /// How it differs from what was written before.
    pub fn differs(&self, before: Option<&Self>) -> Difference {
        let Some(before) = before else {
            return Difference::News;
        };
        let Counts {
            services,
            virtual_servers,
            real_servers,
            ..
        } = self.counts;
        let same_amounts = Self {
            counts: Counts {
                services,
                virtual_servers,
                real_servers,
                ..before.counts
            },
            ..before.clone()
        };
        if self == before {
            Difference::None
        } else if *self == same_amounts {
            Difference::Amounts
        } else {
            Difference::News
        }
    }

    /// A fallback that was told before is as old as was told, whatever restarted since.
    pub fn keep_times(&mut self, before: &Self) {
        for fallback in &mut self.account.fallbacks {
            let mut told = before.account.fallbacks.iter();
            let told = told.find(|told| {
                let since = fallback.since.clone();
                *fallback
                    == Fallback {
                        since,
                        ..(*told).clone()
                    }
            });
            if let Some(told) = told.filter(|told| told.since < fallback.since) {
                fallback.since.clone_from(&told.since);
            }
        }
        sort(&mut self.account.fallbacks);
    }
}

/// The latest first, then by name; no more than one report may name.
fn sort(fallbacks: &mut Vec<Fallback>) {
    fallbacks.sort_by(|one, other| (&other.since, &one.service).cmp(&(&one.since, &other.service)));
    fallbacks.truncate(MAX_FALLBACKS);
}
