//! Tests of the public API: vectors, kube-proxy's tables, topologyKeys, events, plans.

#[cfg(test)]
mod annotations;
#[cfg(test)]
mod dirty;
#[cfg(test)]
mod disconnected;
#[cfg(test)]
mod endpoint_limit;
#[cfg(test)]
mod frontends;
#[cfg(test)]
mod headless;
mod health_check;
#[cfg(test)]
mod infrastructure;
#[cfg(test)]
mod kernel;
#[cfg(test)]
#[path = "../oracle/kernel.rs"]
mod kernel_model;
#[cfg(test)]
mod kube_proxy;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod locations;
#[cfg(test)]
mod many_policies;
#[cfg(test)]
mod options;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod plan_properties;
#[cfg(test)]
mod precedence;
#[cfg(test)]
mod resolution;
mod restarts;
#[cfg(test)]
mod same_decision;
#[cfg(test)]
mod schedulers;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod time;
#[cfg(test)]
mod topology_keys;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod world;
#[cfg(test)]
mod zones;
