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
    const DNS_SERVER: &str = "ipvs-topo-dns";
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

    /// The account of the DNS servers and its rules, in the namespace of the other accounts.
    fn dns_account() -> String {
        let path = repository("manifests/components/dns/account.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        text.replace("namespace: kube-system", &format!("namespace: {NAMESPACE}"))
    }

    fn may(account: &str, verb: &str, resource: &str) -> bool {
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
        let words = ["auth", "can-i", verb, resource, "--all-namespaces", &user];
        kubectl(&words).is_ok_and(|answer| answer.trim() == "yes")
    }

    fn only_the_controller_writes() {
        let maps = "podmaps.topology.ipvs-topo.io";
        eventually("the rules of DNS servers", || {
            may(DNS_SERVER, "list", maps).then_some(())
        });
        assert!(!may(AGENT, "list", maps), "agents use no PodMaps");
        for account in [AGENT, DNS_SERVER] {
            for verb in ["create", "update", "patch", "delete"] {
                for resource in ["podmaps", "podlocators"] {
                    let resource = format!("{resource}.topology.ipvs-topo.io");
                    assert!(
                        !may(account, verb, &resource),
                        "{account} {verb} {resource}"
                    );
                }
            }
            assert!(!may(account, "list", "pods"), "{account}");
        }
    }

    /// Takes the permission to read PodMaps from the DNS servers.
    fn without_pod_maps() {
        let account = dns_account();
        let less = account.replace(", podmaps]", "]");
        assert_ne!(less, account);
        kubectl_with(&less, &["apply", "-f", "-"]).unwrap();
        eventually("the end of the permission", || {
            (!may(DNS_SERVER, "list", "podmaps.topology.ipvs-topo.io")).then_some(())
        });
    }

    /// Takes the Pods of the whole cluster from the controller, and grants those of a namespace as docs/controller.md
    /// shows.
    fn only_pods_of(namespace: &Namespace) {
        let first = r#"[{"op": "remove", "path": "/rules/0"}]"#;
        ok(&["patch", "clusterrole", WRITER, "--type=json", "-p", first]);
        let page = std::fs::read_to_string(repository("docs/controller.md")).unwrap();
        let mut blocks = page
            .split("```yaml\n")
            .filter_map(|rest| rest.split("```").next());
        let roles = blocks.find(|block| block.contains("kind: Role\n")).unwrap();
        let here = format!("namespace: {}}}", namespace.0);
        let roles = roles.replace("namespace: shop}", &here);
        kubectl_with(&roles, &["apply", "-f", "-"]).unwrap();
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        eventually("the Pods of one namespace only", || {
            let words = ["auth", "can-i", "watch", "pods", "-n", &namespace.0, &user];
            let is_granted = kubectl(&words).is_ok_and(|answer| answer.trim() == "yes");
            (is_granted && !may(ACCOUNT, "watch", "pods")).then_some(())
        });
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
        kubectl_with(&dns_account(), &["apply", "-f", "-"]).unwrap();
        let dns_folder = tempfile::tempdir().unwrap();
        let dns_server = hired(DNS_SERVER, &[], dns_folder.path());
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
        let found = located(&dns_server, "10.249.1.7");
        let pod = format!("{}/cart-1", shop.0);
        assert_eq!(found, Some(("pods-n2".to_owned(), Some(pod))));
        assert_eq!(located(&dns_server, "10.249.9.9"), None);

        // Without the permission the server works without PodMaps.
        without_pod_maps();
        assert_eq!(located(&dns_server, "10.249.1.7"), None);

        // Other namespaces are selected: objects of the old ones go.
        assert!(controller.end());
        only_pods_of(&other);
        let selected = ["--pod-locator-namespaces", &*other.0];
        let controller = Controller::with(&kubeconfig, "others", &selected);
        let elsewhere = json!({"10.249.9.9": format!("{}/elsewhere", other.0)});
        until_map("pods-n1", &elsewhere);
        until_map("pods-n2", &json!({}));
        until_locator(&shop, "cart-1", None);
        assert!(controller.end());
        // All rules again, to compare them with the requests.
        ok(&["apply", "-k", &repository("manifests/overlays/pod-locator")]);
        audit.replay_role(WRITER);
        ok(&["delete", "clusterrole,clusterrolebinding", WRITER]);
        kubectl_with(&dns_account(), &["delete", "-f", "-"]).unwrap();
        ok(&["delete", "pmap", "--all"]);
        ok(&["delete", "tmap", "--all"]);
        for (name, _) in NODES {
            ok(&["delete", "node", name]);
        }
    }
}
