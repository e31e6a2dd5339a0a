//! Why tables cannot be read or written.

use std::io;

use subprocess::ChildError;

use super::table::TABLE;

/// Why the tables are not in place. Virtual servers work without them.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The program is not in the `PATH`.
    #[error(
        "nft: not found: Service addresses are not guarded (unknown ports reach the host, a pod cannot call \
         its own Service, ARP requests for Service addresses are answered); install the nftables package"
    )]
    Missing,
    /// The program returned no result: it could not be run, hung, wrote too much or was killed.
    #[error(
        "nft: {0}: Service addresses may be unguarded until it works; run `nft list ruleset` on the node"
    )]
    NotRun(#[source] ChildError),
    /// The kernel or nft refused the transaction.
    #[error(
        "nft: refused the table {TABLE}: {0}; load the nf_tables module, and see that nft is 1.0 or newer"
    )]
    Refused(String),
    /// The tables cannot be read over netlink, or the kernel refused a change of set elements.
    #[error("table {TABLE}: {0}")]
    Netlink(#[from] netlink_pipeline::Error),
}

impl From<ChildError> for NftError {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::NotRun(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            error => Self::NotRun(error),
        }
    }
}
