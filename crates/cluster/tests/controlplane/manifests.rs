//! The manifests: applied, explained, applied again and deleted.

use crate::kubectl::{
    Namespace, eventually, files, folder, installed, is_oldest, kubectl, kubectl_with, ok,
    repository, run, service,
};

/// A kind, one of its fields, and a text that `kubectl explain` must print for the field.
const EXPLAINED: [(&str, &str, &str); 7] = [
    (
        "clustertopologypolicies",
        "spec.levels.minReadyPercent",
        "merges into the next outer one",
    ),
    (
        "topologypolicies",
        "spec.guard.maxOverloadPercent",
        "fair share",
    ),
    ("topologydrains", "spec.expiresAt", "72 hours"),
    ("topologymaps", "spec.nodes.podCIDRs", "of its pods"),
    ("podmaps", "spec.pods", "at each address"),
    ("podlocators", "spec.nodeLabels", "labels of the Node"),
    ("topologyagents", "status.fallbacks.reason", "BelowMin"),
];

#[test]
fn kubectl_explain_describes_every_kind() {
    installed();
    for (kind, field, words) in EXPLAINED {
        let whole = ok(&["explain", kind]);
        assert!(
            whole.contains("DESCRIPTION:") && !whole.contains("<empty>"),
            "{whole}"
        );
        let part = ok(&["explain", &format!("{kind}.{field}")]);
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(part.contains(words), "{part}");
    }
}

#[test]
fn every_kind_has_a_short_name_and_the_category() {
    installed();
    let listed = ok(&["api-resources", "--categories=ipvs-topo", "--no-headers"]);
    for short in [
        " ctp ", " tp ", " tdrain ", " tmap ", " pmap ", " ploc ", " tagent ",
    ] {
        assert!(listed.contains(short), "{listed}");
    }
}

#[test]
fn definitions_and_admission_are_the_same_when_they_are_applied_again() {
    installed();
    for folder in ["manifests/crds", "manifests/admission"] {
        let path = repository(folder);
        let again = ok(&["apply", "-k", &path]);
        assert!(
            again.lines().all(|line| line.ends_with(" unchanged")),
            "{again}"
        );
        assert_eq!(ok(&["diff", "-k", &path]), "");
    }
}

/// Moves the objects to another namespace, because their own may not exist.
fn elsewhere(text: &str, namespace: &str) -> String {
    let mut parts = text.split("namespace: ");
    let mut moved = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let (_, rest) = part.split_at(end.unwrap_or(part.len()));
        moved.extend(["namespace: ", namespace, rest]);
    }
    moved
}

#[test]
fn the_examples_are_accepted() {
    installed();
    let namespace = Namespace::new();
    // The server refuses Pods until the namespace has this account.
    let account = ["get", "serviceaccount", "default", "-n", &namespace.0];
    eventually("the default account", || kubectl(&account).ok());
    let mut count = 0;
    for path in files("manifests/examples") {
        let text = std::fs::read_to_string(&path).unwrap();
        // The API server no longer has this field; it is read from files only.
        let text = text
            .split("\n---\n")
            .filter(|object| !object.contains("topologyKeys:"));
        let mut text = text.collect::<Vec<_>>().join("\n---\n");
        if !text.contains("kind: ") {
            continue;
        }
        if is_oldest() {
            // Kubernetes 1.34 added these values.
            for value in ["PreferSameZone", "PreferSameNode"] {
                text = text.replace(value, "PreferClose");
            }
        }
        let folder = folder(&[elsewhere(&text, &namespace.0)]);
        let output = run(&[
            "apply",
            "--dry-run=server",
            "-f",
            folder.path().to_str().unwrap(),
        ]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{}: {stderr}", path.display());
        count += String::from_utf8(output.stdout).unwrap().lines().count();
    }
    assert!(count > 100, "{count}");
}

mod alone {
    //! Removes the CRDs, which all other tests need.

    use crate::kubectl::{
        established, installed, kubectl, kubectl_with, ok, remove_manifests, repository,
    };

    /// `kubectl apply` prints "configured" for these kinds, although `kubectl diff` finds no
    /// difference: it always sends the selector of a disruption budget, and the API server adds
    /// defaults to the levels of a policy.
    const ALWAYS: [&str; 3] = [
        "poddisruptionbudget.",
        "clustertopologypolicy.",
        "topologypolicy.",
    ];

    /// The lines of `kubectl apply` that report a change.
    fn changes(output: &str) -> Vec<&str> {
        let lines = output.lines();
        let changed = lines.filter(|line| !line.ends_with(" unchanged"));
        changed
            .filter(|line| !ALWAYS.iter().any(|kind| line.starts_with(kind)))
            .collect()
    }

    /// Whether kubectl did not know the kind of the policy, which is the only accepted error: the
    /// same command also applies its definition.
    fn is_not_known(result: Result<String, String>) -> bool {
        match result {
            Ok(_) => false,
            Err(error) => {
                let kinds = ["ClusterTopologyPolicy", "TopologyPolicy"];
                let missing = kinds.map(|kind| format!("no matches for kind \"{kind}\""));
                let lines = error.lines().filter(|line| !line.is_empty());
                let others = lines.filter(|line| {
                    !missing.iter().any(|kind| line.contains(kind))
                        && !line.starts_with("ensure CRDs are installed")
                });
                assert_eq!(others.collect::<Vec<_>>(), Vec::<&str>::new());
                true
            }
        }
    }

    #[test]
    fn base_and_overlays_are_applied_again_without_changes_and_deleted_completely() {
        installed();
        for part in ["crds", "admission"] {
            remove_manifests(&format!("manifests/{part}"));
        }
        for (folder, has_policy) in [
            ("base", false),
            ("overlays/kubeadm", false),
            ("overlays/zone-aware", true),
            ("overlays/edge", true),
            ("overlays/hints", false),
            ("overlays/dns", true),
            ("overlays/pod-locator", false),
        ] {
            let path = repository(&format!("manifests/{folder}"));
            // kubectl caches the list of kinds for hours.
            let cache = tempfile::tempdir().unwrap();
            let cache = format!("--cache-dir={}", cache.path().display());
            let first = kubectl(&["apply", "-k", &path, &cache]);
            assert_eq!(is_not_known(first), has_policy, "{folder}");
            established();
            ok(&["apply", "-k", &path]);
            let again = ok(&["apply", "-k", &path]);
            assert_eq!(changes(&again), Vec::<&str>::new(), "{folder}");
            assert_eq!(ok(&["diff", "-k", &path]), "", "{folder}");
            let kept = ok(&["get", "ctp,tp,tdrain", "-A", "-o", "yaml"]);
            remove_manifests(&format!("manifests/{folder}"));
            let cache = tempfile::tempdir().unwrap();
            let cache = format!("--cache-dir={}", cache.path().display());
            let again = kubectl(&["delete", "-k", &path, "--ignore-not-found", &cache]);
            assert_eq!(is_not_known(again), has_policy, "{folder}");
            let left = [
                "get",
                "crd,validatingadmissionpolicy,validatingadmissionpolicybinding,clusterrole,clusterrolebinding,namespace",
                "-o",
                "name",
            ];
            let left = ok(&left);
            let ours = left.lines().filter(|line| line.contains("ipvs-topo"));
            assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new(), "{folder}");
            assert!(kubectl(&["get", "namespace", "kube-system"]).is_ok());
            if has_policy {
                ok(&["apply", "-k", &repository("manifests/crds")]);
                established();
                kubectl_with(&kept, &["apply", "-f", "-"]).unwrap();
                ok(&["delete", "ctp", "--all"]);
                ok(&["delete", "tp", "--all", "--all-namespaces"]);
                remove_manifests("manifests/crds");
            }
        }
        for part in ["crds", "admission"] {
            ok(&["apply", "-k", &repository(&format!("manifests/{part}"))]);
        }
        established();
    }

    #[test]
    fn the_base_has_the_settings_that_a_node_proxy_needs() {
        let text = ok(&["kustomize", &repository("manifests/base")]);
        for words in [
            "hostNetwork: true",
            "priorityClassName: system-node-critical",
            "readOnlyRootFilesystem: true",
            "automountServiceAccountToken: false",
            "maxSurge: 0",
            "pod-security.kubernetes.io/enforce: privileged",
        ] {
            assert!(text.contains(words), "{words}");
        }
        let count = |words: &str| text.matches(words).count();
        assert_eq!(
            (count("image: "), count("imagePullPolicy: Never")),
            (2, 2),
            "no image is pulled from a public registry"
        );
        // No rule grants more than it needs.
        assert!(
            !text.contains("- '*'") && !text.contains("secrets"),
            "{text}"
        );
    }
}

/// Their patches name arguments of the components by their position.
#[test]
fn the_manifests_of_the_conformance_suite_can_be_built() {
    for folder in ["manifests", "dns"] {
        let built = ok(&[
            "kustomize",
            &repository(&format!("xtask/src/conformance/{folder}")),
        ]);
        assert!(!built.contains("--upstream"), "{built}");
    }
}

/// The lines of the DNS servers' `DaemonSet`.
fn dns_servers(folder: &str) -> String {
    let text = ok(&["kustomize", &repository(folder)]);
    let mut objects = text.split("\n---\n");
    let found = objects.find(|object| {
        object.contains("kind: DaemonSet") && object.contains("name: ipvs-topo-dns")
    });
    found.unwrap().to_owned()
}

#[test]
fn dns_servers_are_endpoints_of_cluster_dns_without_privileges() {
    let folder = "manifests/overlays/dns";
    let servers = dns_servers(folder);
    for words in [
        "k8s-app: kube-dns",
        "--node-source=map",
        "--listen=[::]:53",
        "--upstream=/etc/resolv.conf",
        "dnsPolicy: Default",
        "priorityClassName: system-node-critical",
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "path: /readyz",
        "imagePullPolicy: Never",
        "--agent-socket=/run/ipvs-topo/agent.sock",
        "- mountPath: /run/ipvs-topo\n          name: run\n          readOnly: true",
    ] {
        assert!(servers.contains(words), "{words}: {servers}");
    }
    assert_eq!(servers.matches("hostPath:").count(), 1, "{servers}");
    for words in ["add:", "hostNetwork", "privileged: true"] {
        assert!(!servers.contains(words), "{words}: {servers}");
    }
    let all = ok(&["kustomize", &repository(folder)]);
    assert_eq!(all.matches("kind: TopologyPolicy\nmetadata:").count(), 1);
}

#[test]
fn dns_servers_for_nodelocal_dnscache_are_no_endpoints_of_cluster_dns() {
    let folder = "manifests/components/dns-node-local";
    let servers = dns_servers(folder);
    for words in [
        "--node-source=map",
        "--listen=127.0.0.1:5353",
        "hostNetwork: true",
        "maxSurge: 0",
        "runAsNonRoot: true",
    ] {
        assert!(servers.contains(words), "{words}: {servers}");
    }
    for words in [
        "k8s-app",
        "sysctls",
        "add:",
        "--upstream",
        "[::]",
        "hostPath",
        "POD_IPS",
    ] {
        assert!(!servers.contains(words), "{words}: {servers}");
    }
    let all = ok(&["kustomize", &repository(folder)]);
    assert!(!all.contains("kind: TopologyPolicy"), "{all}");
}

#[test]
fn the_component_label_keys_refuses_labels_in_annotations_that_are_not_allowed() {
    installed();
    let namespace = Namespace::new();
    // Limits the policy to this namespace, because other tests use other labels.
    let path = repository("manifests/components/label-keys/policy.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let here = format!("kubernetes.io/metadata.name: {}", namespace.0);
    let text = text.replacen("\"[]\"", "\"['example.com/rack']\"", 1)
        + &format!("  matchResources: {{namespaceSelector: {{matchLabels: {{{here}}}}}}}\n");
    kubectl_with(&text, &["apply", "-f", "-"]).unwrap();
    let created = |annotations: &[(&str, &str)]| {
        let service = service("s", annotations);
        let arguments = ["-n", &namespace.0, "create", "--dry-run=server", "-f", "-"];
        kubectl_with(&service, &arguments)
    };
    let refusal = eventually("the first refusal", || {
        created(&[("keys", "example.com/x,*")]).err()
    });
    assert!(
        refusal.contains("only the labels that the administrators"),
        "{refusal}"
    );
    let many: Vec<String> = (0..16)
        .map(|number| format!("example.com/a{number}"))
        .collect();
    for (name, value) in [
        ("keys", "zone,example.com/x"),
        ("weights", "zone=80,example.com/x=15,*=5"),
        ("avoid", "example.com/rack, example.com/x:soft"),
        ("avoid", &many.join(",")),
    ] {
        let refusal = created(&[(name, value)]).unwrap_err();
        let place = format!("topology.ipvs-topo.io/{name}: annotations may use only");
        assert!(refusal.contains(&place), "{value}: {refusal}");
    }
    for (name, value) in [
        ("keys", "node, example.com/rack,zone,region,*"),
        (
            "weights",
            "example.com/rack=80,topology.kubernetes.io/zone=15,*=5",
        ),
        ("avoid", "example.com/rack,node:soft"),
    ] {
        created(&[(name, value)]).unwrap();
    }
    let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
    ok(&["delete", kinds, "ipvs-topo-annotation-labels"]);
}
