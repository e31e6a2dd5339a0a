//! An agent that shall know Nodes from the map, on the real API server: without one, and with one.

mod alone {
    //! There is one map in a cluster.

    use cluster::api::MapGap;

    use crate::follower::Follower;
    use crate::kubectl::{installed, kubectl_with, ok, variable};

    const THE_MAP: &str = "topologymaps.topology.ipvs-topo.io";

    const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: told-n1, labels: {pool: told}}}
---
{apiVersion: v1, kind: Node, metadata: {name: told-n2, labels: {pool: told}}}
";

    const MAP: &str = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyMap
metadata: {name: told}
spec:
  shard: 0
  keys: [topology.kubernetes.io/zone, topology.kubernetes.io/region, topology.ipvs-topo.io/capacity]
  nodes:
    told-n1: {v: [a, '', ''], ips: [192.168.7.1], cpuMilli: 4000, ready: true}
    told-n2: {v: [b, '', ''], ips: [192.168.7.2, 'fd00::7:2'], ready: true}
";

    /// The labels of the Nodes of this test, by name: one's own in full, of the other what something goes by, or the
    /// map tells.
    fn labels(me: &Follower) -> Vec<String> {
        let nodes = me.index.snapshot().nodes();
        let ours = nodes.filter(|node| node.name.starts_with("told-"));
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
    fn nodes_are_read_until_there_is_a_map_and_then_only_ones_own() {
        installed();
        kubectl_with(NODES, &["apply", "-f", "-"]).unwrap();
        let mut me = Follower::mapped("told-n1", &variable("KUBECONFIG"));
        me.until_whole();
        assert_eq!(me.state(THE_MAP).map_gap, Some(MapGap::Map));
        let both = [r#"told-n1 ["told"] []"#, "told-n2 [] []"];
        assert_eq!(labels(&me), both);
        me.until_warned(&["there is no TopologyMap"]);
        kubectl_with(MAP, &["apply", "-f", "-"]).unwrap();
        me.until("the turn to the map", |me| {
            let told = [
                r#"told-n1 ["told"] []"#,
                r#"told-n2 ["b"] [192.168.7.2, fd00::7:2]"#,
            ];
            (labels(me) == told && me.state("nodes").objects == 1).then_some(())
        });
        assert_eq!(me.state(THE_MAP).map_gap, None);
        ok(&["label", "--overwrite", "node", "told-n1", "pool=else"]);
        me.until("its own label", |me| {
            labels(me)[0].contains("else").then_some(())
        });
        ok(&["delete", "tmap", "told"]);
        ok(&["delete", "node", "told-n1", "told-n2"]);
    }
}
