//! What Services may use.

use clap::Args;
use cluster::AllowLists;
use topology_core::model::IpNetwork;

use super::values;

/// Must be equal to the agents' settings for the same decisions.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct AllowListArgs {
    /// Node labels that Service annotations may use besides zone, region and capacity; default:
    /// any.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = values::label_key)]
    pub annotation_label_keys: Option<Vec<String>>,

    /// Ranges of external IPs that Services may use; default: none, because any tenant could take
    /// any address with them (CVE-2020-8554).
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = values::cidr)]
    pub external_ip_ranges: Vec<IpNetwork>,
}

impl AllowListArgs {
    pub fn get(&self) -> AllowLists {
        let keys = self.annotation_label_keys.as_ref();
        let keys = keys.map(|keys| keys.iter().map(|key| key.as_str().into()).collect());
        AllowLists {
            annotation_keys: keys,
            external_ips: self.external_ip_ranges.clone(),
        }
    }
}
