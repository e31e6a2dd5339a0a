//! The engine from outside: vectors, kube-proxy's tables, the old topologyKeys, events, plans.

#[cfg(test)]
mod kube_proxy;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod resolution;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod topology_keys;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod world;
