//! The control plane of the tests behaves like that of a real cluster.

use std::process::Command;

use crate::kubectl::{Namespace, eventually, kubectl, variable};

const WEB: &str = "\
apiVersion: v1
kind: Node
metadata:
  name: NODE
  labels:
    topology.kubernetes.io/zone: a
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ipFamilyPolicy: PreferDualStack
  selector:
    app: web
  ports:
  - port: 80
    targetPort: 8080
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  labels:
    app: web
spec:
  nodeName: NODE
  containers:
  - name: web
    image: none
";

const RUNNING: &str = r#"{"status": {"phase": "Running", "podIP": "10.244.1.2",
    "podIPs": [{"ip": "10.244.1.2"}, {"ip": "fd00:10:244:1::2"}],
    "conditions": [{"type": "Ready", "status": "True"}]}}"#;

#[test]
fn a_ready_pod_without_a_kubelet_is_in_the_slices_of_the_real_controller() {
    let namespace = Namespace::new();
    // Another controller creates the account, which every Pod needs.
    eventually("the account", || {
        namespace
            .kubectl(&["get", "serviceaccount", "default"])
            .ok()
    });
    let node = format!("node-of-{}", namespace.0);
    namespace.apply(&WEB.replace("NODE", &node)).unwrap();
    let patch = ["patch", "pod", "web-1", "--subresource=status", "--patch"];
    namespace
        .kubectl(&[&patch[..], &[RUNNING]].concat())
        .unwrap();
    let addresses = [
        "get",
        "endpointslices",
        "--selector=kubernetes.io/service-name=web",
        "-o=jsonpath={range .items[*]}{range .endpoints[*]}{.addresses[0]},{.conditions.ready},{.zone} {end}{end}",
    ];
    let found = eventually("both slices", || {
        let found = namespace.kubectl(&addresses).unwrap();
        let mut found: Vec<String> = found.split_whitespace().map(str::to_owned).collect();
        found.sort();
        (found.len() == 2).then_some(found)
    });
    assert_eq!(found, ["10.244.1.2,true,a", "fd00:10:244:1::2,true,a"]);
    kubectl(&["delete", "node", &node]).unwrap();
}

#[test]
fn a_service_account_token_has_only_the_rights_of_its_role() {
    let namespace = Namespace::new();
    namespace
        .kubectl(&["create", "serviceaccount", "reader"])
        .unwrap();
    let account = format!("--serviceaccount={}:reader", namespace.0);
    let role = [
        "create",
        "role",
        "reader",
        "--verb=list",
        "--resource=services",
    ];
    namespace.kubectl(&role).unwrap();
    let binding = ["create", "rolebinding", "reader", "--role=reader", &account];
    namespace.kubectl(&binding).unwrap();
    let token = namespace.kubectl(&["create", "token", "reader"]).unwrap();
    let server = "-o=jsonpath={.clusters[0].cluster.server}";
    let server = kubectl(&["config", "view", server]).unwrap();
    // Without the administrator's kubeconfig, because its certificate would be used instead of the
    // token.
    let get = |resource: &str| {
        let authority = format!("{}/ca.crt", variable("CONTROLPLANE_FOLDER"));
        let output = Command::new(variable("CONTROLPLANE_PROGRAM"))
            .args(["kubectl", "--server", &server, "--token", token.trim()])
            .args(["--certificate-authority", &authority])
            .args(["--namespace", &namespace.0, "get", resource])
            .env("KUBECONFIG", "/dev/null")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    eventually("the role", || {
        get("services").contains("No resources found").then_some(())
    });
    let refused = get("secrets");
    let reader = format!(
        "\"system:serviceaccount:{}:reader\" cannot list",
        namespace.0
    );
    assert!(refused.contains(&reader), "{refused}");
}

mod alone {
    use super::{Command, Namespace, kubectl, variable};

    fn xtask(arguments: &[&str]) {
        let status = Command::new(variable("CONTROLPLANE_XTASK"))
            .arg("controlplane")
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_component_that_was_stopped_or_killed_restarts_with_its_data() {
        let namespace = Namespace::new();
        let get = ["get", "namespace", &namespace.0, "-o=name"];
        let name = format!("namespace/{}\n", namespace.0);
        assert_eq!(kubectl(&get).unwrap(), name);
        xtask(&["stop", "kube-apiserver", "--kill"]);
        let refused = kubectl(&get).unwrap_err();
        assert!(refused.contains("refused"), "{refused}");
        xtask(&["stop", "etcd"]);
        xtask(&["start", "etcd"]);
        xtask(&["start", "kube-apiserver"]);
        assert_eq!(kubectl(&get).unwrap(), name);
    }
}
