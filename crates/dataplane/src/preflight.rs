//! Checks the agent's requirements before anything is written. An error names the remedy.

use ipvs_netlink::ErrorKind;
use rustix::thread::{CapabilitySet, capabilities};
use subprocess::Program;

use crate::ipvs::Ipvs;

/// Why IPVS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The kernel has no IPVS and could not load it.
    #[error(
        "the kernel has no IPVS: its module ip_vs is not loaded and could not be loaded; run `modprobe ip_vs` on the \
         host (some distributions keep it in a package such as linux-modules-extra)"
    )]
    NoModule,
    /// The process lacks the permission to use IPVS.
    #[error(
        "not permitted to use IPVS: the agent needs CAP_NET_ADMIN in the initial user namespace; run it as root, or \
         give its container the capability NET_ADMIN"
    )]
    NotPermitted,
    /// Another error of IPVS.
    #[error("IPVS cannot be used: {0}")]
    Ipvs(#[source] ipvs_netlink::Error),
}

/// Checks that this process has the required capability. This check comes first, so that a process without it gets only
/// this message.
pub fn permission() -> Result<(), PreflightError> {
    match capabilities(None) {
        Ok(sets) if !sets.effective.contains(CapabilitySet::NET_ADMIN) => {
            Err(PreflightError::NotPermitted)
        }
        // If capabilities cannot be read, the IPVS probe decides.
        _ => Ok(()),
    }
}

/// Connects to IPVS. If the kernel did not load the module itself, runs `modprobe` once.
pub async fn ipvs() -> Result<Ipvs, PreflightError> {
    let mut ipvs = match Ipvs::open().await {
        Err(error) if error.kind() == ErrorKind::ModuleMissing => {
            load_module(&Program::new("modprobe", &["ip_vs"])).await;
            Ipvs::open().await.map_err(explain)?
        }
        result => result.map_err(explain)?,
    };
    ipvs.probe().await.map_err(explain)?;
    Ok(ipvs)
}

async fn load_module(modprobe: &Program<'_>) {
    // The next connection attempt shows whether it helped.
    if let Err(error) = subprocess::run(modprobe).await {
        tracing::warn!("modprobe ip_vs: {error}");
    }
}

fn explain(error: ipvs_netlink::Error) -> PreflightError {
    match error.kind() {
        ErrorKind::ModuleMissing => PreflightError::NoModule,
        ErrorKind::NotPermitted => PreflightError::NotPermitted,
        _ => PreflightError::Ipvs(error),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn d13_a_modprobe_that_hangs_does_not_block_the_start() {
        let began = Instant::now();
        // Time is paused: the deadline passes as soon as all tasks wait.
        load_module(&Program::new("sleep", &["1000000"])).await;
        assert!(began.elapsed() >= subprocess::DEADLINE);
    }
}
