//! Hints on slices that somebody else makes, beside managers and writers of all kinds.

mod alone {
    //! What is dealt out depends on all Nodes, and there is one Lease.

    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};
    use topology_core::hints::{self, HintMode, Zones};
    use topology_core::model::{EndpointSlice, Node, ObjectName};

    use crate::audit::{Audit, hired};
    use crate::follower::Follower;
    use crate::gate::{Gate, Proxy};
    use crate::kubectl::{Namespace, established, eventually, kubectl_with, ok, repository};
    use crate::process::{ACCOUNT, Controller};

    const ROLE: &str = "ipvs-topo-controller-hints";
    /// How long it may take until everything is told.
    const PATIENCE: Duration = Duration::from_secs(60);
    const ZONES: [&str; 3] = ["a", "b", "c"];

    struct Scene {
        namespace: Namespace,
        follower: Follower,
    }

    fn slice(service: &str, name: &str, manager: &str, zones: &str) -> Value {
        let zones = zones.split_whitespace().enumerate();
        let endpoints = zones.map(|(number, zone)| {
            // The last octets of what is in the second slice are others.
            let number = number + 100 * usize::from(name.ends_with('2'));
            json!({
                "addresses": [format!("10.247.0.{number}")], "conditions": {"ready": true},
                "nodeName": format!("hints-{zone}"), "zone": zone,
            })
        });
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": manager,
            }},
            "addressType": "IPv4", "ports": [{"port": 80}],
            "endpoints": endpoints.collect::<Vec<_>>(),
        })
    }

    fn list(items: &[Value]) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn nodes() {
        ok(&["delete", "nodes", "--all"]);
        let nodes = ZONES.map(|zone| {
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("hints-{zone}"), "labels": {"topology.kubernetes.io/zone": zone}},
                "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
            })
        });
        kubectl_with(&list(&nodes).to_string(), &["create", "-f", "-"]).unwrap();
    }

    /// A Service that asks for hints, and slices that `manager` makes for it.
    fn service(name: &str, manager: &str, slices: &[(&str, &str)]) -> Vec<Value> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "annotations": {"service.kubernetes.io/topology-mode": "Auto"}},
            "spec": {"ports": [{"port": 80}]},
        });
        let slices = slices
            .iter()
            .map(|(one, zones)| slice(name, one, manager, zones));
        [service].into_iter().chain(slices).collect()
    }

    impl Scene {
        fn new() -> Self {
            let mut follower = Follower::administrator();
            follower.until_whole();
            Self {
                namespace: Namespace::new(),
                follower,
            }
        }

        /// Writes an object, as the program `manager`.
        fn write(&self, verb: &str, manager: &str, object: &Value) {
            let manager = format!("--field-manager={manager}");
            let words = ["-n", &self.namespace.0, verb, &manager, "-f", "-"];
            kubectl_with(&object.to_string(), &words).unwrap();
        }

        /// The slices of a Service, once they are as wanted.
        fn until(
            &mut self,
            service: &str,
            what: &str,
            wanted: impl Fn(&[EndpointSlice]) -> bool,
        ) -> Vec<EndpointSlice> {
            let name = ObjectName::new(&*self.namespace.0, service);
            self.follower.until(&format!("{service}: {what}"), |me| {
                let slices = me.index.snapshot().slices(&name).to_vec();
                wanted(&slices).then_some(slices)
            })
        }

        /// Once so many endpoints have hints they are those of the allocator.
        fn hinted(&mut self, service: &str, count: usize) {
            let found = self.until(service, "hints", |slices| {
                let all = slices.iter().flat_map(|slice| &slice.endpoints);
                let hinted: Vec<bool> = all.map(|endpoint| endpoint.hints.is_some()).collect();
                hinted == vec![true; count]
            });
            let nodes: Vec<Node> = self.follower.index.snapshot().nodes().cloned().collect();
            let zones = Zones::of(&nodes);
            let mut expected = found.clone();
            hints::write(HintMode::Auto, zones.as_ref(), &mut expected);
            assert_eq!(found, expected, "{service}");
        }

        fn object(&self, name: &str) -> Value {
            let words = [
                "get",
                "endpointslice",
                name,
                "-o",
                "json",
                "--show-managed-fields",
            ];
            serde_json::from_str(&self.namespace.kubectl(&words).unwrap()).unwrap()
        }

        fn patch(&self, manager: &str, name: &str, patch: &Value) {
            let manager = format!("--field-manager={manager}");
            let words = [
                "patch",
                "endpointslice",
                name,
                "--type=json",
                &manager,
                "-p",
            ];
            let patch = patch.to_string();
            self.namespace
                .kubectl(&[&words[..], &[&patch]].concat())
                .unwrap();
        }

        /// Reasons of our Events, by Service: the API server itself may tell of a Service, such as `ClusterIPNotAllocated`.
        fn told(&self) -> BTreeMap<String, Vec<String>> {
            let ours = "--field-selector=reportingComponent=ipvs-topo.io/controller";
            let path =
                "-o=jsonpath={range .items[*]}{.involvedObject.name} {.reason}{\"\\n\"}{end}";
            let listed = self.namespace.kubectl(&["get", "events", ours, path]);
            let lines = listed.unwrap();
            let mut told = BTreeMap::<String, Vec<String>>::new();
            for (service, reason) in lines.lines().filter_map(|line| line.split_once(' ')) {
                told.entry(service.to_owned())
                    .or_default()
                    .push(reason.to_owned());
            }
            for reasons in told.values_mut() {
                reasons.sort();
            }
            told
        }

        fn until_told(&self, expected: &BTreeMap<String, Vec<String>>) {
            let deadline = Instant::now() + PATIENCE;
            while self.told() != *expected && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(200));
            }
            assert_eq!(self.told(), *expected);
        }
    }

    fn is_bare(slice: &EndpointSlice) -> bool {
        slice
            .endpoints
            .iter()
            .all(|endpoint| endpoint.hints.is_none())
    }

    /// What others do to Services that have hints of ours.
    fn others_write(scene: &Scene) {
        let other = json!([{
            "op": "replace", "path": "/endpoints/0/hints/forZones/0/name", "value": "z",
        }]);
        scene.patch("other", "foreign-1", &other);
        let mesh = "mesh.example.com";
        scene.write(
            "replace",
            "mesh",
            &slice("strict", "strict-1", mesh, "a b c"),
        );
        scene.write(
            "replace",
            "mesh",
            &slice("moving", "moving-1", mesh, "b b a a c c"),
        );
        let words = [
            "annotate",
            "service",
            "plain",
            "service.kubernetes.io/topology-mode-",
        ];
        scene.namespace.kubectl(&words).unwrap();
    }

    /// What came of it, once the controller had time for each.
    fn nobody_is_fought(scene: &mut Scene) {
        scene.until("plain", "no hints", |slices| slices.iter().all(is_bare));
        scene.hinted("moving", 6);
        let left = scene.until("foreign", "ours taken back", |slices| {
            slices
                .iter()
                .any(|slice| is_bare(slice) && slice.name.name.ends_with('2'))
        });
        let theirs = left.iter().find(|slice| !is_bare(slice)).unwrap();
        assert_eq!(&*theirs.endpoints[0].hints.as_ref().unwrap().zones[0], "z");
        let expected = |reasons: &[&str]| {
            reasons
                .iter()
                .map(|one| format!("TopologyAwareHints{one}"))
                .collect()
        };
        let expected: BTreeMap<String, Vec<String>> = BTreeMap::from([
            ("foreign".to_owned(), expected(&["Enabled", "Left"])),
            ("strict".to_owned(), expected(&["Enabled", "Left"])),
            ("plain".to_owned(), expected(&["Disabled", "Enabled"])),
            ("moving".to_owned(), expected(&["Enabled"])),
            ("applied".to_owned(), expected(&["Left"])),
        ]);
        scene.until_told(&expected);
        for (name, author) in [
            ("strict-1", "mesh"),
            ("foreign-1", "other"),
            ("theirs-1", "mesh"),
            ("applied-1", "argocd"),
        ] {
            let object = scene.object(name);
            let fields = object["metadata"]["managedFields"].as_array().unwrap();
            let mut owners = fields
                .iter()
                .filter(|one| one["fieldsV1"].get("f:endpoints").is_some());
            assert!(
                owners.all(|one| one["manager"] == author),
                "{name}: {fields:?}"
            );
            let bare = object["endpoints"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one.get("hints").is_none());
            assert_eq!(bare, name != "foreign-1", "{name}");
        }
    }

    /// Services that ask, with slices of all kinds.
    fn services(scene: &Scene) {
        let (mesh, kubernetes) = ("mesh.example.com", "endpointslice-controller.k8s.io");
        let mut objects = service(
            "foreign",
            mesh,
            &[("foreign-1", "a a b c"), ("foreign-2", "b c")],
        );
        for name in ["strict", "moving", "plain"] {
            objects.extend(service(name, mesh, &[(&format!("{name}-1"), "a b c")]));
        }
        objects.extend(service("theirs", kubernetes, &[("theirs-1", "a b c")]));
        objects.extend(service("applied", mesh, &[]));
        scene.write("create", "mesh", &list(&objects));
        let applied = slice("applied", "applied-1", mesh, "a b c");
        let words = [
            "apply",
            "--server-side",
            "--field-manager=argocd",
            "-f",
            "-",
        ];
        let words = [&["-n", &scene.namespace.0][..], &words].concat();
        kubectl_with(&applied.to_string(), &words).unwrap();
    }

    #[test]
    fn hints_are_written_where_nobody_else_does_and_nobody_is_fought() {
        let folder = tempfile::tempdir().unwrap();
        ok(&["apply", "-k", &repository("manifests/overlays/hints")]);
        established();
        let args = "-o=jsonpath={.spec.template.spec.containers[0].args}";
        let deployment = [
            "get",
            "deployment",
            ACCOUNT,
            "-n",
            crate::audit::NAMESPACE,
            args,
        ];
        assert_eq!(ok(&deployment), r#"["--write-hints"]"#);
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        nodes();
        let mut scene = Scene::new();
        services(&scene);
        let audit = Audit::of(ACCOUNT);
        // The server gives pages only, so that every rule is needed.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        let kubeconfig = gate.kubeconfig(folder.path());
        let controller = Controller::with(&kubeconfig, "hints", &["--write-hints"]);
        scene.hinted("foreign", 6);
        for name in ["strict", "moving", "plain"] {
            scene.hinted(name, 3);
        }
        eventually("hints are told", || (scene.told().len() == 5).then_some(()));
        others_write(&scene);
        nobody_is_fought(&mut scene);
        assert!(controller.end());
        audit.replay_role(ROLE, &[]);
        let patches = audit.requests();
        let patches = patches.iter().filter(|one| {
            one.verb == "patch" && one.resource == "endpointslices" && one.code == 200
        });
        // Five that get hints, one that gets them again, two that lose ours.
        assert_eq!(patches.count(), 8);
        ok(&["delete", "clusterrole,clusterrolebinding", ROLE]);
        ok(&["delete", "nodes", "--all"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
