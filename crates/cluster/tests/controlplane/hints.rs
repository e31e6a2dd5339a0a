//! Compares the hints of the real EndpointSlice controller with those of our allocator, for a
//! hundred random placements.

mod alone {
    //! The hints depend on all Nodes of the cluster.

    use std::collections::BTreeMap;

    use kube_io::{Access, Connection, Patch};
    use serde_json::{Value, json};
    use tokio::runtime::Runtime;
    use topology_core::hints::{self, HintEvent, HintMode, HintProblem, Zones};
    use topology_core::model::{EndpointSlice, Node, ObjectName};

    use crate::follower::Follower;
    use crate::kubectl::{Namespace, eventually, is_oldest, variable};
    use crate::placement::{Placement, placements, pods};

    /// The annotation that asks for Topology Aware Hints.
    const MODE: &str = "service.kubernetes.io/topology-mode";

    /// Name, zone, CPU, and whether the Node is ready. Zones `a` and `b` are equal, so that there
    /// are ties. The last Node has no zone.
    const NODES: [(&str, &str, &str, bool); 8] = [
        ("hint-a1", "a", "4", true),
        ("hint-a2", "a", "3500m", true),
        ("hint-b1", "b", "3500m", true),
        ("hint-b2", "b", "4", true),
        ("hint-c1", "c", "2", true),
        ("hint-c2", "c", "4", true),
        ("hint-c3", "c", "5200m", true),
        ("hint-lost", "", "4", false),
    ];

    struct Cluster {
        runtime: Runtime,
        api: Connection,
        namespace: Namespace,
    }

    impl Cluster {
        fn new() -> Self {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
            let api = runtime.block_on(Connection::open(&access)).unwrap();
            Self {
                runtime,
                api,
                namespace: Namespace::new(),
            }
        }

        fn path(&self, resource: &str) -> String {
            format!("/api/v1/namespaces/{}/{resource}", self.namespace.0)
        }

        fn create(&self, path: &str, object: &Value, status: Option<Value>) {
            let name = object["metadata"]["name"].as_str().unwrap();
            self.runtime.block_on(async {
                self.api.create(path, object).await.unwrap();
                if let Some(status) = status {
                    let path = format!("{path}/{name}/status");
                    self.api
                        .patch(&path, Patch::Merge, &json!({"status": status}))
                        .await
                        .unwrap();
                }
            });
        }

        fn node(&self, (name, zone, cpu, ready): (&str, &str, &str, bool)) {
            let mut labels = json!({"kubernetes.io/hostname": name});
            if !zone.is_empty() {
                labels["topology.kubernetes.io/zone"] = json!(zone);
            }
            let ready = if ready { "True" } else { "False" };
            let status = json!({"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            self.create("/api/v1/nodes", &node, Some(status));
        }

        fn nodes(&self) {
            self.runtime
                .block_on(self.api.delete("/api/v1/nodes"))
                .unwrap();
            for node in NODES {
                self.node(node);
            }
        }

        fn pods(&self) {
            // The server refuses Pods until the namespace has its default account.
            eventually("the account", || {
                self.namespace
                    .kubectl(&["get", "serviceaccount", "default"])
                    .ok()
            });
            let nodes = NODES.map(|(name, ..)| name);
            for pod in pods(&nodes) {
                self.create(&self.path("pods"), &pod.object, Some(pod.status));
            }
        }

        fn services(&self, placements: &[Placement]) {
            for placement in placements {
                self.create(&self.path("services"), &placement.service(MODE), None);
            }
        }

        /// Waits until the slices of a Service have all of its endpoints.
        fn slices(&self, follower: &mut Follower, placement: &Placement) -> Vec<EndpointSlice> {
            let name = ObjectName::new(&*self.namespace.0, &*placement.name);
            follower.until(&format!("the endpoints of {}", placement.name), |me| {
                let slices = me.index.snapshot().slices(&name).to_vec();
                let count: usize = slices.iter().map(|slice| slice.endpoints.len()).sum();
                (!slices.is_empty() && count == placement.pods).then_some(slices)
            })
        }

        /// The last Event of each Service; waits until every Service with the annotation has one.
        fn messages(&self, placements: &[Placement]) -> BTreeMap<String, String> {
            eventually("an event on every Service", || {
                let listed = self
                    .runtime
                    .block_on(self.api.list(&self.path("events")))
                    .unwrap();
                let events = listed["items"].as_array().unwrap().iter();
                let messages: BTreeMap<String, String> = events
                    .filter(|event| event["involvedObject"]["kind"] == "Service")
                    .map(|event| {
                        ["/involvedObject/name", "/message"]
                            .map(|at| event.pointer(at).unwrap().as_str().unwrap().to_owned())
                    })
                    .map(|[name, message]| (name, message))
                    .collect();
                let has_annotation = |placement: &&Placement| placement.distribution.is_none();
                placements
                    .iter()
                    .filter(has_annotation)
                    .all(|placement| messages.contains_key(&placement.name))
                    .then_some(messages)
            })
        }
    }

    /// A part of the message that Kubernetes writes for the same result.
    fn words(event: &HintEvent) -> &'static str {
        match event {
            HintEvent::Enabled { .. } => "Topology Aware Hints has been enabled",
            HintEvent::Disabled { problem, .. } => match problem {
                HintProblem::Nodes => "Insufficient Node information",
                HintProblem::TooFewEndpoints { .. } => "Insufficient number of endpoints",
                HintProblem::Overload { .. } => "without exceeding overload threshold",
                HintProblem::EndpointWithoutZone => "do not have a zone specified",
                HintProblem::NoLongerRequested => "has been disabled",
            },
        }
    }

    /// Number of endpoints by hinted zone. The counts of the equal zones are sorted, because either
    /// may give endpoints to the other.
    fn counts(slices: &[EndpointSlice]) -> (usize, [usize; 2]) {
        let of = |zone: &str| {
            let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
            let hints = endpoints.filter_map(|endpoint| endpoint.hints.as_ref());
            hints
                .filter(|hints| hints.zones.iter().any(|hinted| **hinted == *zone))
                .count()
        };
        let mut equal = [of("a"), of("b")];
        equal.sort_unstable();
        (of("c"), equal)
    }

    /// The hints of our allocator for the same endpoints.
    fn ours(
        mode: HintMode,
        zones: Option<&Zones>,
        theirs: &[EndpointSlice],
    ) -> (Vec<EndpointSlice>, Vec<HintEvent>) {
        let mut slices = theirs.to_vec();
        let events = hints::write(mode, zones, &mut slices);
        (slices, events)
    }

    /// Compares the hints; returns how often each result occurred.
    fn compare(
        cluster: &Cluster,
        follower: &mut Follower,
        placements: &[Placement],
    ) -> BTreeMap<&'static str, usize> {
        let messages = cluster.messages(placements);
        let theirs: Vec<_> = placements
            .iter()
            .map(|placement| cluster.slices(follower, placement))
            .collect();
        let nodes: Vec<Node> = follower.index.snapshot().nodes().cloned().collect();
        let zones = Zones::of(&nodes);
        let mut reasons = BTreeMap::new();
        for (placement, theirs) in placements.iter().zip(theirs) {
            let mode = HintMode::of(
                None,
                Some("Auto").filter(|_| placement.distribution.is_none()),
                placement.distribution,
            );
            let (ours, events) = ours(mode, zones.as_ref(), &theirs);
            if placement.distribution.is_some() {
                assert_eq!(theirs, ours, "{}", placement.name);
                continue;
            }
            let words = words(events.first().unwrap());
            assert!(
                messages[&placement.name].contains(words),
                "{}: {words}, but the controller: {}",
                placement.name,
                messages[&placement.name]
            );
            assert_eq!(
                counts(&theirs),
                counts(&ours),
                "{}: {theirs:?}",
                placement.name
            );
            *reasons.entry(words).or_default() += 1;
        }
        reasons
    }

    #[test]
    fn a_hundred_random_placements_get_the_same_hints_or_the_same_reason() {
        let cluster = Cluster::new();
        cluster.nodes();
        cluster.pods();
        let mut follower = Follower::administrator();
        follower.until_whole();
        // The controller knows the Nodes before it sees the first Service.
        let mut probes = (0..).map(|number| Placement::probe(&format!("probe-{number}")));
        let mut probe = |words: &str| {
            eventually(words, || {
                let next = [probes.next().unwrap()];
                cluster.services(&next);
                cluster.messages(&next)[&next[0].name]
                    .contains(words)
                    .then_some(())
            });
        };
        probe("has been enabled");
        // Kubernetes 1.34 added the other two.
        let distributions = if is_oldest() {
            ["PreferClose"; 3]
        } else {
            ["PreferClose", "PreferSameZone", "PreferSameNode"]
        };
        let all = placements(100, &distributions, 20);
        cluster.services(&all);
        let reasons = compare(&cluster, &mut follower, &all);
        assert_eq!(reasons.values().sum::<usize>(), 100);
        assert!(
            reasons.len() == 4,
            "each result but that of the Nodes occurred: {reasons:?}"
        );

        cluster.node(("hint-poor", "a", "0", true));
        follower.until("the new Node", |me| {
            me.index.snapshot().node("hint-poor").map(drop)
        });
        probe("Insufficient Node information");
        let more: Vec<Placement> = (0..5)
            .map(|number| Placement::probe(&format!("more-{number}")))
            .collect();
        cluster.services(&more);
        let reasons = compare(&cluster, &mut follower, &more);
        assert_eq!(
            reasons,
            BTreeMap::from([("Insufficient Node information", 5)])
        );
        cluster
            .runtime
            .block_on(cluster.api.delete("/api/v1/nodes"))
            .unwrap();
    }
}
