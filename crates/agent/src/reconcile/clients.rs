//! Computes the rules about clients: who is inside the cluster, and whose connections to cluster IPs are masqueraded.

use std::collections::BTreeSet;
use std::net::IpAddr;

use dataplane::nftables::{ArpRequests, LocalPods, Masquerade, RuleOptions};
use dataplane::routes::covers;
use topology_core::model::{Family, IpNetwork, Node};

use crate::agent_config::{DetectLocal, StrictArp};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// The part of the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientConfig<'a> {
    /// `--cluster-cidr`.
    pub(super) cluster_cidrs: &'a [IpNetwork],
    /// `--detect-local-mode`.
    pub(super) detect_local: &'a DetectLocal,
    /// `--masquerade-all`.
    pub(super) masquerade_all: bool,
    /// `--ipvs-strict-arp`.
    pub(super) strict_arp: StrictArp,
}

impl ClientConfig<'_> {
    /// The addresses of pods: a client at another address is outside of the cluster. Without `--cluster-cidr` they are
    /// the ranges of this node's pods, since pods of other nodes reach Services at their own node. Empty if links
    /// decide.
    pub(super) fn inside(&self, node: Option<&Node>) -> Vec<IpNetwork> {
        let of_family = |family: Family| {
            let configured = self.detected(node, family);
            match self.detect_local {
                DetectLocal::ClusterCidr if configured.is_empty() => node_ranges(node, family),
                DetectLocal::ClusterCidr | DetectLocal::NodeCidr | DetectLocal::Links(_) => {
                    configured
                }
            }
        };
        without_covered(FAMILIES.into_iter().flat_map(of_family).collect())
    }

    pub(super) fn rules(&self, node: Option<&Node>) -> RuleOptions {
        let masquerade = |family| {
            let is_detected = match self.detect_local {
                DetectLocal::Links(_) => true,
                DetectLocal::ClusterCidr | DetectLocal::NodeCidr => {
                    !self.detected(node, family).is_empty()
                }
            };
            match (self.masquerade_all, is_detected) {
                (true, _) => Masquerade::Everything,
                (false, true) => Masquerade::NotLocal,
                (false, false) => Masquerade::Nothing,
            }
        };
        RuleOptions {
            local_pods: match self.detect_local {
                DetectLocal::Links(links) => LocalPods::ByLink(links.clone()),
                DetectLocal::ClusterCidr | DetectLocal::NodeCidr => LocalPods::BySource,
            },
            masquerade_v4: masquerade(Family::V4),
            masquerade_v6: masquerade(Family::V6),
            arp: match self.strict_arp {
                StrictArp::NoReplies | StrictArp::NoRepliesAndOwnSender => ArpRequests::Dropped,
                StrictArp::Off => ArpRequests::Answered,
            },
        }
    }

    /// KP-LM-06: a family that has Services and no range, if ranges recognize local pods.
    pub(super) fn warnings(&self, node: Option<&Node>, vips: &BTreeSet<IpAddr>) -> Vec<String> {
        let remedy = match self.detect_local {
            DetectLocal::ClusterCidr if self.cluster_cidrs.is_empty() => return Vec::new(),
            DetectLocal::ClusterCidr => "--cluster-cidr has no such range; add it",
            DetectLocal::NodeCidr => {
                "spec.podCIDRs of this Node has no such range; set it, or choose another --detect-local-mode"
            }
            DetectLocal::Links(_) => return Vec::new(),
        };
        let is_missing = |family: &Family| {
            let has_services = vips.iter().any(|vip| Family::of(*vip) == *family);
            has_services && self.detected(node, *family).is_empty()
        };
        let text = |family| {
            format!(
                "the {family} addresses of pods are not known, so connections from outside to {family} cluster IPs \
                 are not masqueraded: {remedy}"
            )
        };
        let missing = FAMILIES.into_iter().filter(is_missing);
        missing.map(text).collect()
    }

    /// A family in which all pods are outside clients, since no range is `inside`, although some ports are `marked` for
    /// such clients.
    pub(super) fn outside_pods(
        &self,
        inside: &[IpNetwork],
        marked: &BTreeSet<Family>,
    ) -> Vec<String> {
        let remedy = match self.detect_local {
            DetectLocal::ClusterCidr => "give the ranges of all pods with --cluster-cidr",
            DetectLocal::NodeCidr => {
                "set spec.podCIDRs of this Node, or choose another --detect-local-mode"
            }
            DetectLocal::Links(_) => return Vec::new(),
        };
        let text = |family| {
            format!(
                "the {family} addresses of pods are not known, so pods are clients from outside, which get only \
                 endpoints of this node at {family} addresses with externalTrafficPolicy: Local: {remedy}"
            )
        };
        let is_missing = |family: &&Family| of_family(inside, **family).is_empty();
        let missing = marked.iter().filter(is_missing);
        missing.map(text).collect()
    }

    /// The ranges by which local pods are recognized.
    fn detected(&self, node: Option<&Node>, family: Family) -> Vec<IpNetwork> {
        match self.detect_local {
            DetectLocal::ClusterCidr => of_family(self.cluster_cidrs, family),
            DetectLocal::NodeCidr => node_ranges(node, family),
            DetectLocal::Links(_) => Vec::new(),
        }
    }
}

fn node_ranges(node: Option<&Node>, family: Family) -> Vec<IpNetwork> {
    node.map_or_else(Vec::new, |node| of_family(&node.pod_cidrs, family))
}

/// Leaves out ranges inside of others: nft refuses a set with ranges that overlap.
fn without_covered(mut ranges: Vec<IpNetwork>) -> Vec<IpNetwork> {
    let all = ranges.clone();
    ranges.retain(|range| {
        let mut others = all.iter().filter(|other| *other != range);
        !others.any(|other| covers(other, range))
    });
    ranges
}

fn of_family(ranges: &[IpNetwork], family: Family) -> Vec<IpNetwork> {
    let ranges = ranges.iter();
    ranges
        .filter(|range| Family::of_range(range) == family)
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use dataplane::nftables::Links;

    use super::*;

    fn ranges(texts: &[&str]) -> Vec<IpNetwork> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn node() -> Node {
        Node {
            pod_cidrs: ranges(&["10.244.1.0/24", "fd00:10:244:1::/64"]),
            ..Node::new("n1")
        }
    }

    fn config<'a>(
        detect_local: &'a DetectLocal,
        cluster_cidrs: &'a [IpNetwork],
    ) -> ClientConfig<'a> {
        ClientConfig {
            cluster_cidrs,
            detect_local,
            masquerade_all: false,
            strict_arp: StrictArp::NoReplies,
        }
    }

    /// What is masqueraded in each family.
    fn masqueraded(config: &ClientConfig<'_>, node: Option<&Node>) -> [Masquerade; 2] {
        let rules = config.rules(node);
        [rules.masquerade_v4, rules.masquerade_v6]
    }

    #[test]
    fn pods_are_inside_by_the_configured_ranges_or_those_of_this_node() {
        let node = node();
        let mode = DetectLocal::ClusterCidr;
        assert_eq!(config(&mode, &[]).inside(None), []);
        assert_eq!(config(&mode, &[]).inside(Some(&node)), node.pod_cidrs);
        let given = ranges(&["10.244.0.0/16"]);
        assert_eq!(
            config(&mode, &given).inside(Some(&node)),
            ranges(&["10.244.0.0/16", "fd00:10:244:1::/64"])
        );
        let mode = DetectLocal::NodeCidr;
        assert_eq!(config(&mode, &given).inside(Some(&node)), node.pod_cidrs);
    }

    #[test]
    fn ranges_inside_of_other_ranges_are_no_elements_of_their_own() {
        let given = ranges(&["10.244.0.0/16", "10.0.0.0/8", "fd00::/48", "10.0.0.0/8"]);
        let inside = config(&DetectLocal::ClusterCidr, &given).inside(None);
        let expected = ranges(&["10.0.0.0/8", "10.0.0.0/8", "fd00::/48"]);
        assert_eq!(inside, expected, "a set has equal elements once");
    }

    #[test]
    fn kp_lm_02_ranges_detect_local_pods_only_in_their_family_and_only_if_configured() {
        use Masquerade::{NotLocal, Nothing};
        let (node, v4) = (node(), ranges(&["10.244.0.0/16"]));
        let (cluster, of_node) = (DetectLocal::ClusterCidr, DetectLocal::NodeCidr);
        let unset = config(&cluster, &[]);
        assert_eq!(masqueraded(&unset, Some(&node)), [Nothing; 2]);
        let one = config(&cluster, &v4);
        assert_eq!(masqueraded(&one, Some(&node)), [NotLocal, Nothing]);
        let own = config(&of_node, &v4);
        assert_eq!(masqueraded(&own, Some(&node)), [NotLocal; 2]);
        assert_eq!(masqueraded(&own, None), [Nothing; 2]);
        let links = DetectLocal::Links(Links::Named("cbr0".parse().unwrap()));
        let links = config(&links, &[]);
        assert_eq!(masqueraded(&links, None), [NotLocal; 2]);
        assert_eq!(links.inside(Some(&node)), []);
        let all = ClientConfig {
            masquerade_all: true,
            ..unset
        };
        assert_eq!(masqueraded(&all, None), [Masquerade::Everything; 2]);
    }

    #[test]
    fn kp_lm_06_a_family_without_a_range_is_warned_of_if_it_has_services() {
        let vips = ["10.96.0.1", "fd00::1"].map(|ip| ip.parse().unwrap());
        let (vips, v4) = (BTreeSet::from(vips), ranges(&["10.244.0.0/16"]));
        let lines = |mode: &DetectLocal, given: &[IpNetwork], node: Option<&Node>| {
            config(mode, given).warnings(node, &vips)
        };
        let (cluster, of_node) = (DetectLocal::ClusterCidr, DetectLocal::NodeCidr);
        assert_eq!(lines(&cluster, &[], None), Vec::<String>::new());
        assert_eq!(lines(&of_node, &v4, Some(&node())), Vec::<String>::new());
        let missing = lines(&cluster, &v4, Some(&node()));
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(
            missing[0].contains("the IPv6 addresses of pods"),
            "{missing:?}"
        );
        let missing = lines(&of_node, &v4, None);
        assert_eq!(missing.len(), 2, "{missing:?}");
        assert!(missing[0].contains("spec.podCIDRs"), "{missing:?}");
    }

    #[test]
    fn a_family_whose_pods_are_outside_is_warned_of_if_outside_clients_count() {
        let (node, v4) = (node(), ranges(&["10.244.0.0/16"]));
        let lines = |mode: &DetectLocal, given: &[IpNetwork], node: Option<&Node>| {
            let config = config(mode, given);
            config.outside_pods(&config.inside(node), &FAMILIES.into())
        };
        let cluster = DetectLocal::ClusterCidr;
        assert_eq!(lines(&cluster, &[], Some(&node)), Vec::<String>::new());
        let missing = lines(&cluster, &v4, None);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(
            missing[0].contains("at IPv6 addresses") && missing[0].contains("--cluster-cidr"),
            "{missing:?}"
        );
        assert_eq!(lines(&DetectLocal::NodeCidr, &v4, None).len(), 2);
        let by_link = DetectLocal::Links(Links::Named("cbr0".parse().unwrap()));
        assert_eq!(lines(&by_link, &[], None), Vec::<String>::new());
        let unused = config(&cluster, &[]).outside_pods(&[], &BTreeSet::new());
        assert_eq!(unused, Vec::<String>::new());
    }
}
