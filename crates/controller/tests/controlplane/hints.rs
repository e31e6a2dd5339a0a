//! Hints on slices of other writers, with managers and writers of all kinds.

mod alone {
    //! Hints depend on all Nodes, and a cluster has one Lease.

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
    /// Limit for the Events.
    const TIMEOUT: Duration = Duration::from_secs(60);
    const ZONES: [&str; 3] = ["a", "b", "c"];
    /// The program that manages most slices.
    const MESH: &str = "mesh.example.com";

    struct Scene {
        namespace: Namespace,
        follower: Follower,
    }

    fn slice(service: &str, name: &str, manager: &str, zones: &str) -> Value {
        let zones = zones.split_whitespace().enumerate();
        let endpoints = zones.map(|(number, zone)| {
            // The second slice has other addresses.
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

    /// A Service that requests hints, and its slices, which `manager` manages.
    fn service(name: &str, manager: &str, slices: &[(&str, &str)]) -> Vec<Value> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "annotations": {"service.kubernetes.io/topology-mode": "Auto"}},
            "spec": {"ports": [{"port": 80}]},
        });
        let slices = slices
            .iter()
            .map(|(slice_name, zones)| slice(name, slice_name, manager, zones));
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

        /// Writes an object with this field manager.
        fn write(&self, verb: &str, manager: &str, object: &Value) {
            let manager = format!("--field-manager={manager}");
            let words = ["-n", &self.namespace.0, verb, &manager, "-f", "-"];
            kubectl_with(&object.to_string(), &words).unwrap();
        }

        /// Waits until the slices of a Service match.
        fn until(
            &mut self,
            service: &str,
            what: &str,
            matches: impl Fn(&[EndpointSlice]) -> bool,
        ) -> Vec<EndpointSlice> {
            let name = ObjectName::new(&*self.namespace.0, service);
            self.follower.until(&format!("{service}: {what}"), |me| {
                let slices = me.index.snapshot().slices(&name).to_vec();
                matches(&slices).then_some(slices)
            })
        }

        /// Waits until `count` endpoints have hints, which must be those of the allocator.
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

        /// The reasons of our Events, by Service. The API server writes Events about Services, too.
        fn events(&self) -> BTreeMap<String, Vec<String>> {
            let ours = "--field-selector=reportingComponent=ipvs-topo.io/controller";
            let path =
                "-o=jsonpath={range .items[*]}{.involvedObject.name} {.reason}{\"\\n\"}{end}";
            let listed = self.namespace.kubectl(&["get", "events", ours, path]);
            let lines = listed.unwrap();
            let mut events = BTreeMap::<String, Vec<String>>::new();
            for (service, reason) in lines.lines().filter_map(|line| line.split_once(' ')) {
                events
                    .entry(service.to_owned())
                    .or_default()
                    .push(reason.to_owned());
            }
            for reasons in events.values_mut() {
                reasons.sort();
            }
            events
        }

        fn until_events(&self, expected: &BTreeMap<String, Vec<String>>) {
            let deadline = Instant::now() + TIMEOUT;
            while self.events() != *expected && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(200));
            }
            assert_eq!(self.events(), *expected);
        }
    }

    fn is_bare(slice: &EndpointSlice) -> bool {
        slice
            .endpoints
            .iter()
            .all(|endpoint| endpoint.hints.is_none())
    }

    /// Other writers change slices with our hints, and one Service no longer requests hints.
    fn others_write(scene: &Scene) {
        let other = json!([{
            "op": "replace", "path": "/endpoints/0/hints/forZones/0/name", "value": "z",
        }]);
        scene.patch("other", "foreign-1", &other);
        scene.write(
            "replace",
            "mesh",
            &slice("strict", "strict-1", MESH, "a b c"),
        );
        scene.write(
            "replace",
            "mesh",
            &slice("moving", "moving-1", MESH, "b b a a c c"),
        );
        let words = [
            "annotate",
            "service",
            "plain",
            "service.kubernetes.io/topology-mode-",
        ];
        scene.namespace.kubectl(&words).unwrap();
    }

    /// Waits until foreign hints are kept and ours are removed where necessary.
    fn foreign_hints_are_kept(scene: &mut Scene) {
        scene.until("plain", "no hints", |slices| slices.iter().all(is_bare));
        scene.hinted("moving", 6);
        let left = scene.until("foreign", "our hints removed", |slices| {
            slices
                .iter()
                .any(|slice| is_bare(slice) && slice.name.name.ends_with('2'))
        });
        let theirs = left.iter().find(|slice| !is_bare(slice)).unwrap();
        assert_eq!(&*theirs.endpoints[0].hints.as_ref().unwrap().zones[0], "z");
        let expected = |reasons: &[&str]| {
            reasons
                .iter()
                .map(|reason| format!("TopologyAwareHints{reason}"))
                .collect()
        };
        let expected: BTreeMap<String, Vec<String>> = BTreeMap::from([
            ("foreign".to_owned(), expected(&["Enabled", "Left"])),
            ("strict".to_owned(), expected(&["Enabled", "Left"])),
            ("plain".to_owned(), expected(&["Disabled", "Enabled"])),
            ("moving".to_owned(), expected(&["Enabled"])),
            ("applied".to_owned(), expected(&["Left"])),
        ]);
        scene.until_events(&expected);
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
                .filter(|field| field["fieldsV1"].get("f:endpoints").is_some());
            assert!(
                owners.all(|owner| owner["manager"] == author),
                "{name}: {fields:?}"
            );
            let bare = object["endpoints"]
                .as_array()
                .unwrap()
                .iter()
                .all(|endpoint| endpoint.get("hints").is_none());
            assert_eq!(bare, name != "foreign-1", "{name}");
        }
    }

    /// Services that request hints, with slices of all kinds.
    fn services(scene: &Scene) {
        let kubernetes = "endpointslice-controller.k8s.io";
        let mut objects = service(
            "foreign",
            MESH,
            &[("foreign-1", "a a b c"), ("foreign-2", "b c")],
        );
        for name in ["strict", "moving", "plain"] {
            objects.extend(service(name, MESH, &[(&format!("{name}-1"), "a b c")]));
        }
        objects.extend(service("theirs", kubernetes, &[("theirs-1", "a b c")]));
        objects.extend(service("applied", MESH, &[]));
        scene.write("create", "mesh", &list(&objects));
        let applied = slice("applied", "applied-1", MESH, "a b c");
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

    /// Applies `slice` with the controller's token, and writes nothing.
    fn apply_as_controller(
        scene: &Scene,
        kubeconfig: &str,
        slice: &Value,
    ) -> Result<String, String> {
        let words = [
            "--kubeconfig",
            kubeconfig,
            "-n",
            &scene.namespace.0,
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            "-",
        ];
        kubectl_with(&slice.to_string(), &words)
    }

    fn nothing_but_hints_may_change(scene: &Scene, kubeconfig: &str) {
        let with = |field: &str, value: Value| {
            let mut slice = slice("plain", "plain-1", MESH, "a b c");
            let (parents, name) = field.rsplit_once('/').unwrap();
            slice.pointer_mut(parents).unwrap()[name] = value;
            apply_as_controller(scene, kubeconfig, &slice)
        };
        // The API server enforces admission policies some time after they are written.
        eventually("the first refusal by the policy", || {
            let answer = with("/endpoints/0/addresses", json!(["10.247.9.9"]));
            answer
                .err()
                .filter(|error| error.contains("ipvs-topo-hints-only"))
        });
        let target = json!({"kind": "Pod", "name": "mine", "namespace": "shop"});
        let owner = json!([{"apiVersion": "v1", "kind": "Service", "name": "mine", "uid": "1"}]);
        let refused = [
            ("/endpoints/0/addresses", json!(["10.247.9.9"])),
            ("/endpoints/0/conditions", json!({"ready": false})),
            ("/endpoints/0/hostname", json!("mine")),
            ("/endpoints/1/nodeName", json!("hints-a")),
            ("/endpoints/1/zone", json!("a")),
            ("/endpoints/2/targetRef", target),
            ("/ports", json!([{"port": 81}])),
            ("/metadata/annotations", json!({"mine": "1"})),
            ("/metadata/ownerReferences", owner),
            ("/metadata/finalizers", json!(["example.com/mine"])),
            (
                "/metadata/labels",
                json!({"kubernetes.io/service-name": "theirs"}),
            ),
        ];
        for (field, value) in refused {
            let Err(error) = with(field, value) else {
                panic!("{field} was changed");
            };
            let path: Vec<&str> = field.trim_start_matches('/').split('/').collect();
            let path = match path[..] {
                ["endpoints", _, name] => format!("endpoints[].{name}"),
                _ => path.join("."),
            };
            let words = format!(
                "the controller changes only the hints of an EndpointSlice, and not {path};"
            );
            assert!(error.contains(&words), "{error}");
        }
        let hints = json!({"forZones": [{"name": "a"}], "forNodes": [{"name": "hints-a"}]});
        with("/endpoints/0/hints", hints.clone()).unwrap();
        // The API server limits the cost of a check, and the endpoints of a slice to 1,000.
        let mut largest = slice("none", "largest", MESH, "");
        let endpoints = (0..1_000).map(|number| {
            let address = format!("10.246.{}.{}", number / 250, number % 250);
            let target =
                json!({"kind": "Pod", "name": format!("pod-{number}"), "namespace": "shop"});
            json!({
                "addresses": [address], "conditions": {"ready": true, "serving": true},
                "nodeName": "hints-a", "zone": "a", "targetRef": target,
            })
        });
        largest["endpoints"] = endpoints.collect();
        scene.write("create", "mesh", &largest);
        largest["endpoints"][999]["hints"] = hints;
        apply_as_controller(scene, kubeconfig, &largest).unwrap();
    }

    #[test]
    fn hints_are_written_only_on_slices_without_foreign_hints() {
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
        nothing_but_hints_may_change(&scene, &kubeconfig);
        let audit = Audit::of(ACCOUNT);
        // The server sends pages only, so that every rule is needed.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        let kubeconfig = gate.kubeconfig(folder.path());
        let controller = Controller::with(&kubeconfig, "hints", &["--write-hints"]);
        scene.hinted("foreign", 6);
        for name in ["strict", "moving", "plain"] {
            scene.hinted(name, 3);
        }
        eventually("the Events", || (scene.events().len() == 5).then_some(()));
        others_write(&scene);
        foreign_hints_are_kept(&mut scene);
        assert!(controller.end());
        audit.replay_role(ROLE);
        let patches = audit.requests();
        let patches = patches.iter().filter(|request| {
            request.verb == "patch" && request.resource == "endpointslices" && request.code == 200
        });
        // Five slices get hints, one gets them again, and two lose ours.
        assert_eq!(patches.count(), 8);
        ok(&["delete", "clusterrole,clusterrolebinding", ROLE]);
        let policies = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        ok(&["delete", policies, "ipvs-topo-hints-only"]);
        ok(&["delete", "nodes", "--all"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
