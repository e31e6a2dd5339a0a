//! The command line.

use std::collections::BTreeSet;
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
    /// Write where the Pods of these namespaces are: a `PodLocator` for each Pod, and a `PodMap` for
    /// each Node; `*` for all namespaces.
    #[arg(long, env = "POD_LOCATOR_NAMESPACES", value_name = "NAMESPACE", value_delimiter = ',', value_parser = pod_namespace)]
    pub pod_locator_namespaces: Vec<String>,
    /// The address that serves `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:10258", value_parser = bind_address)]
    pub bind_address: SocketAddr,
    /// The format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// The namespaces of `--pod-locator-namespaces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodNamespaces {
    All,
    Only(BTreeSet<String>),
}

const ALL_NAMESPACES: &str = "*";

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

    /// The namespaces whose Pods are followed; `None` if no Pods are.
    pub fn pod_namespaces(&self) -> Option<PodNamespaces> {
        let named = &self.pod_locator_namespaces;
        if named.is_empty() {
            None
        } else if named.iter().any(|namespace| namespace == ALL_NAMESPACES) {
            Some(PodNamespaces::All)
        } else {
            Some(PodNamespaces::Only(named.iter().cloned().collect()))
        }
    }
}

/// The API server refuses other names of namespaces, so a path from it needs no escapes.
fn pod_namespace(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text == ALL_NAMESPACES || (!text.is_empty() && text.len() <= 63 && text.bytes().all(fits)) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is not the name of a namespace; write for example shop, or * for all"
        ))
    }
}

fn bind_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_why| {
        format!("{text:?} is not IP:PORT; write for example 0.0.0.0:10258 or [::]:10258")
    })
}

fn label_key(text: &str) -> Result<String, String> {
    let key = LevelKey::parse_label(text)?;
    Ok(key.as_ref().to_owned())
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

    #[test]
    fn pods_are_followed_in_some_namespaces_in_all_or_not_at_all() {
        let namespaces = |more: &[&str]| {
            let words = [&["ipvs-topo-controller"], more].concat();
            let args = Args::try_parse_from(words).map_err(|error| error.to_string());
            args.map(|args| args.pod_namespaces())
        };
        assert_eq!(namespaces(&[]), Ok(None));
        let some = ["shop".to_owned(), "bank-1".to_owned()].into();
        assert_eq!(
            namespaces(&["--pod-locator-namespaces", "shop,bank-1,shop"]),
            Ok(Some(PodNamespaces::Only(some)))
        );
        let all = Ok(Some(PodNamespaces::All));
        assert_eq!(namespaces(&["--pod-locator-namespaces", "shop,*"]), all);
        for invalid in ["", "a/b", "Shop", "a,,b", "a?b"] {
            let error = namespaces(&["--pod-locator-namespaces", invalid]).unwrap_err();
            assert!(error.contains("--pod-locator-namespaces"), "{error}");
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
