//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use telemetry::log::LogFormat;
use topology_core::policy::LevelKey;

use crate::state::StateOptions;

/// Writes what agents share: the map of Nodes, and the status of policies and drains. Agents keep
/// working without it.
#[derive(Debug, Clone, Parser)]
#[command(name = "ipvs-topo-controller", version)]
pub struct Args {
    /// The kubeconfig; default: `KUBECONFIG`, else `~/.kube/config`, else the account of the pod.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// The namespace of the lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "ipvs-topo-system")]
    pub namespace: String,
    /// The name of this replica, which must be unique.
    #[arg(long, env = "POD_NAME")]
    pub name: Option<String>,
    /// Labels of Nodes that the map holds even before a policy, a drain or an annotation of a
    /// Service uses them.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = label_key)]
    pub label_keys: Vec<String>,
    /// Node labels that Service annotations may use besides zone, region and capacity, as for the
    /// agents; default: any.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = label_key)]
    pub annotation_label_keys: Option<Vec<String>>,
    /// Write Topology Aware Hints on the endpoints of Services without a selector, for which
    /// Kubernetes writes no hints.
    #[arg(long)]
    pub write_hints: bool,
    /// The address that serves `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:10258", value_parser = bind_address)]
    pub bind_address: SocketAddr,
    /// The format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

impl Args {
    pub fn state_options(&self) -> StateOptions {
        let allowed = self.annotation_label_keys.as_ref();
        StateOptions {
            label_keys: self.label_keys.iter().cloned().collect(),
            annotation_label_keys: allowed
                .map(|keys| keys.iter().map(|key| key.as_str().into()).collect()),
            writes_hints: self.write_hints,
        }
    }
}

fn bind_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_why| {
        format!("{text:?} is not IP:PORT; write for example 0.0.0.0:10258 or [::]:10258")
    })
}

fn label_key(text: &str) -> Result<String, String> {
    match LevelKey::parse(text)? {
        LevelKey::Label(key) => Ok(key.as_ref().to_owned()),
        LevelKey::Node | LevelKey::Any => {
            Err("not the key of a label; use keys of Node labels".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_bind_address_is_refused_with_an_example() {
        for invalid in ["10258", "localhost:10258", "0.0.0.0"] {
            let arguments = ["ipvs-topo-controller", "--bind-address", invalid];
            let error = Args::try_parse_from(arguments).unwrap_err().to_string();
            let expected = format!("{invalid:?} is not IP:PORT; write for example 0.0.0.0:10258");
            assert!(error.contains(&expected), "{error}");
        }
    }

    fn keys(text: &str) -> Result<Vec<String>, String> {
        Args::try_parse_from(["ipvs-topo-controller", "--label-keys", text])
            .map(|args| args.label_keys)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn label_keys_are_valid_keys_or_their_short_forms() {
        assert_eq!(
            keys("example.com/rack,zone").unwrap(),
            ["example.com/rack", "topology.kubernetes.io/zone"]
        );
        for invalid in ["bad key!", "*", "a,,b"] {
            assert!(
                keys(invalid).unwrap_err().contains("--label-keys"),
                "{invalid}"
            );
        }
    }
}
