//! PodMaps and PodLocators follow Pods and Nodes.

mod alone {
    //! A cluster has one Lease, and PodMaps have all Pods of a Node.

    use std::net::IpAddr;
    use std::path::Path;

    use cluster::ServiceSelection;
    use cluster::source::Options;
    use kube_io::Access;
    use serde_json::{Value, json};
    use topology_core::address_index::{AddressIndex, AddressSource};

    use crate::audit::{Audit, NAMESPACE, hired};
    use crate::gate::{Gate, Proxy};
    use crate::kubectl::{
        Namespace, established, eventually, kubectl, kubectl_with, ok, repository,
    };
    use crate::process::{ACCOUNT, Controller};

    const AGENT: &str = "ipvs-topo-agent";
    const READER: &str = "ipvs-topo-pod-maps";
    const WRITER: &str = "ipvs-topo-controller-pods";
    const NODES: [(&str, &str); 2] = [("pods-n1", "a"), ("pods-n2", "b")];

    fn nodes() {
        for (name, zone) in NODES {
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            });
            kubectl_with(&node.to_string(), &["apply", "-f", "-"]).unwrap();
        }
    }

    /// Creates a Pod that runs on a Node with these addresses.
    fn run(namespace: &Namespace, name: &str, node: &str, addresses: &[&str], on_host: bool) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "nodeName": node, "hostNetwork": on_host, "automountServiceAccountToken": false,
                "containers": [{"name": "it", "image": "none"}],
            },
        });
        eventually("the service account of the namespace", || {
            namespace.apply(&pod.to_string()).ok()
        });
        let ips: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
        let status = json!({"status": {"phase": "Running", "podIP": addresses[0], "podIPs": ips}});
        let status = status.to_string();
        let patch = ["patch", "pod", name, "--subresource=status", "-p"];
        let patch = [&patch[..], &[&*status]].concat();
        namespace.kubectl(&patch).unwrap();
    }

    fn kill(namespace: &Namespace, name: &str) {
        let words = ["delete", "pod", name, "--grace-period=0", "--force"];
        namespace.kubectl(&words).unwrap();
    }

    /// Waits until the PodMap of a Node has exactly these Pods; none if it does not exist.
    fn until_map(node: &str, expected: &Value) {
        eventually(&format!("PodMap {node} with {expected}"), || {
            let found = match kubectl(&["get", "pmap", node, "-o=jsonpath={.spec.pods}"]) {
                Ok(text) => serde_json::from_str(&text).ok()?,
                Err(error) if error.contains("NotFound") => json!({}),
                Err(_) => return None,
            };
            (found == *expected).then_some(())
        });
    }

    /// Waits until a PodLocator has this spec; `None` for no PodLocator.
    fn until_locator(namespace: &Namespace, name: &str, expected: Option<&Value>) {
        eventually(&format!("PodLocator {name} with {expected:?}"), || {
            let found = match namespace.kubectl(&["get", "ploc", name, "-o=jsonpath={.spec}"]) {
                Ok(text) => Some(serde_json::from_str::<Value>(&text).ok()?),
                Err(error) if error.contains("NotFound") => None,
                Err(_) => return None,
            };
            (found.as_ref() == expected).then_some(())
        });
    }

    fn locator(node: &str, zone: &str, addresses: &[&str]) -> Value {
        json!({
            "nodeName": node, "addresses": addresses,
            "nodeLabels": {"topology.kubernetes.io/zone": zone},
        })
    }

    /// The Node and the Pod of an address, as `ipvs-topo dns` with this account finds them.
    fn located(kubeconfig: &str, address: &str) -> Option<(String, Option<String>)> {
        let access = Access::kubeconfig(Path::new(kubeconfig), "tests");
        let options = Options {
            services: ServiceSelection::All,
            ..Options::default()
        };
        let loaded = cluster::api::read(&access, &options, |_| ()).unwrap();
        let address: IpAddr = address.parse().unwrap();
        let index = AddressIndex::of(&loaded.snapshot);
        let location = index.locate(&loaded.snapshot, address)?;
        assert_eq!(location.source, AddressSource::PodMap);
        let pod = location.pod.map(ToString::to_string);
        Some((location.node_name.to_string(), pod))
    }

    fn may(verb: &str, resource: &str) -> bool {
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:{AGENT}");
        let words = ["auth", "can-i", verb, resource, "--all-namespaces", &user];
        kubectl(&words).is_ok_and(|answer| answer.trim() == "yes")
    }

    fn only_the_controller_writes() {
        assert!(may("list", "podmaps.topology.ipvs-topo.io"));
        for verb in ["create", "update", "patch", "delete"] {
            for resource in ["podmaps", "podlocators"] {
                let resource = format!("{resource}.topology.ipvs-topo.io");
                assert!(!may(verb, &resource), "{verb} {resource}");
            }
        }
        assert!(!may("list", "pods"));
    }

    fn pods_come_move_and_die(shop: &Namespace) {
        let own = format!("{}/cart-0", shop.0);
        run(
            shop,
            "cart-0",
            "pods-n1",
            &["10.249.1.7", "fd00:249::7"],
            false,
        );
        run(shop, "on-host", "pods-n1", &["192.0.2.1"], true);
        until_map("pods-n1", &json!({"10.249.1.7": own, "fd00:249::7": own}));
        let both = ["10.249.1.7", "fd00:249::7"];
        until_locator(shop, "cart-0", Some(&locator("pods-n1", "a", &both)));

        let label = [
            "label",
            "node",
            "pods-n1",
            "topology.kubernetes.io/zone=c",
            "--overwrite",
        ];
        ok(&label);
        until_locator(shop, "cart-0", Some(&locator("pods-n1", "c", &both)));

        // Another Pod gets an address of the old one, and the old one dies.
        run(shop, "cart-1", "pods-n2", &["10.249.1.7"], false);
        until_locator(shop, "cart-1", Some(&locator("pods-n2", "b", &[])));
        kill(shop, "cart-0");
        let [next, third] = ["cart-1", "cart-2"].map(|name| format!("{}/{name}", shop.0));
        until_map("pods-n2", &json!({"10.249.1.7": next}));
        run(shop, "cart-2", "pods-n2", &["10.249.2.2"], false);
        until_map("pods-n2", &json!({"10.249.1.7": next, "10.249.2.2": third}));
        until_map("pods-n1", &json!({}));
        until_locator(shop, "cart-0", None);
        until_locator(
            shop,
            "cart-1",
            Some(&locator("pods-n2", "b", &["10.249.1.7"])),
        );
        until_locator(shop, "on-host", None);

        // Its containers end for good.
        let ended = r#"{"status":{"phase":"Succeeded"}}"#;
        run(shop, "job", "pods-n1", &["10.249.1.8"], false);
        until_locator(shop, "job", Some(&locator("pods-n1", "c", &["10.249.1.8"])));
        let patch = ["patch", "pod", "job", "--subresource=status", "-p", ended];
        shop.kubectl(&patch).unwrap();
        until_locator(shop, "job", None);
        until_map("pods-n1", &json!({}));
    }

    #[test]
    fn pod_maps_and_locators_follow_pods_and_only_the_controller_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        ok(&["apply", "-k", &repository("manifests/overlays/pod-locator")]);
        established();
        let env = "-o=jsonpath={.spec.template.spec.containers[0].env[-1:]}";
        let deployment = ["get", "deployment", ACCOUNT, "-n", NAMESPACE, env];
        let namespaces = json!({"name": "POD_LOCATOR_NAMESPACES", "value": "*"});
        assert_eq!(ok(&deployment), namespaces.to_string());
        let agent_folder = tempfile::tempdir().unwrap();
        let agent = hired(AGENT, &[], agent_folder.path());
        only_the_controller_writes();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        nodes();
        let (shop, other) = (Namespace::new(), Namespace::new());
        run(&other, "elsewhere", "pods-n1", &["10.249.9.9"], false);
        let audit = Audit::of(ACCOUNT);
        // The server sends pages only, so that every rule is needed.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        let kubeconfig = gate.kubeconfig(folder.path());
        let selected = ["--pod-locator-namespaces", &*shop.0];
        let controller = Controller::with(&kubeconfig, "pods", &selected);
        pods_come_move_and_die(&shop);
        until_locator(&other, "elsewhere", None);
        let found = located(&agent, "10.249.1.7");
        let pod = format!("{}/cart-1", shop.0);
        assert_eq!(found, Some(("pods-n2".to_owned(), Some(pod))));
        assert_eq!(located(&agent, "10.249.9.9"), None);

        // Without the permission the reader works without PodMaps.
        ok(&["delete", "clusterrole,clusterrolebinding", READER]);
        eventually("the end of the permission", || {
            (!may("list", "podmaps.topology.ipvs-topo.io")).then_some(())
        });
        assert_eq!(located(&agent, "10.249.1.7"), None);

        // Other namespaces are selected: objects of the old ones go.
        assert!(controller.end());
        let selected = ["--pod-locator-namespaces", &*other.0];
        let controller = Controller::with(&kubeconfig, "others", &selected);
        let elsewhere = json!({"10.249.9.9": format!("{}/elsewhere", other.0)});
        until_map("pods-n1", &elsewhere);
        until_map("pods-n2", &json!({}));
        until_locator(&shop, "cart-1", None);
        assert!(controller.end());
        audit.replay_role(WRITER);
        ok(&["delete", "clusterrole,clusterrolebinding", WRITER]);
        ok(&["delete", "pmap", "--all"]);
        ok(&["delete", "tmap", "--all"]);
        for (name, _) in NODES {
            ok(&["delete", "node", name]);
        }
    }
}
