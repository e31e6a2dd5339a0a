//! An agent that reads Nodes from the map, on the real API server: without a map, and with one.

mod alone {
    //! A cluster has one map.

    use cluster::api::MapGap;

    use crate::follower::Follower;
    use crate::kubectl::{installed, kubectl_with, ok, variable};

    const THE_MAP: &str = "topologymaps.topology.ipvs-topo.io";

    const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: mapped-n1, labels: {pool: web}}}
---
{apiVersion: v1, kind: Node, metadata: {name: mapped-n2, labels: {pool: web}}}
";

    const MAP: &str = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyMap
metadata: {name: mapped}
spec:
  shard: 0
  keys: [topology.kubernetes.io/zone, topology.kubernetes.io/region, topology.ipvs-topo.io/capacity]
  nodes:
    mapped-n1: {v: [a, '', ''], ips: [192.168.7.1], cpuMilli: 4000, ready: true}
    mapped-n2: {v: [b, '', ''], ips: [192.168.7.2, 'fd00::7:2'], podCIDRs: [10.7.2.0/24, 'fd00:7:2::/64'], ready: true}
";

    /// Name, label values and addresses of the Nodes of this test.
    fn labels(me: &Follower) -> Vec<String> {
        let nodes = me.index.snapshot().nodes();
        let ours = nodes.filter(|node| node.name.starts_with("mapped-"));
        let mut labels: Vec<String> = ours
            .map(|node| {
                let labels: Vec<_> = node.labels.iter().map(|(_, value)| &**value).collect();
                format!("{} {labels:?} {:?}", node.name, node.addresses)
            })
            .collect();
        labels.sort();
        labels
    }

    #[test]
    fn all_nodes_are_read_until_there_is_a_map_and_then_only_the_own_node() {
        installed();
        kubectl_with(NODES, &["apply", "-f", "-"]).unwrap();
        let mut me = Follower::mapped("mapped-n1", &variable("KUBECONFIG"));
        me.until_whole();
        assert_eq!(me.state(THE_MAP).map_gap, Some(MapGap::Map));
        let both = [r#"mapped-n1 ["web"] []"#, "mapped-n2 [] []"];
        assert_eq!(labels(&me), both);
        me.until_warned(&["there is no TopologyMap"]);
        kubectl_with(MAP, &["apply", "-f", "-"]).unwrap();
        me.until("the change to the map", |me| {
            let expected = [
                r#"mapped-n1 ["web"] []"#,
                r#"mapped-n2 ["b"] [192.168.7.2, fd00::7:2]"#,
            ];
            (labels(me) == expected && me.state("nodes").objects == 1).then_some(())
        });
        assert_eq!(me.state(THE_MAP).map_gap, None);
        let other = me.index.snapshot().node("mapped-n2").unwrap();
        let ranges = ["10.7.2.0/24", "fd00:7:2::/64"].map(|range| range.parse().unwrap());
        assert_eq!(other.pod_cidrs, ranges);
        ok(&["label", "--overwrite", "node", "mapped-n1", "pool=else"]);
        me.until("the label of the own Node", |me| {
            labels(me)[0].contains("else").then_some(())
        });
        ok(&["delete", "tmap", "mapped"]);
        ok(&["delete", "node", "mapped-n1", "mapped-n2"]);
    }
}
