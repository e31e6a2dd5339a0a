//! Following the real API server. Tests that stop it or change definitions run alone.

use cluster::api::Phase;
use kube_io::{Access, Connection, Fault, Patch};
use serde_json::json;

use crate::days::user;
use crate::follower::{Follower, compact, xtask};
use crate::kubectl::{Namespace, config, installed, ok, server, variable};

pub(crate) fn create(namespace: &str, name: &str) {
    ok(&[
        "create",
        "service",
        "clusterip",
        name,
        "--tcp=80",
        "-n",
        namespace,
    ]);
}

#[test]
fn changes_arrive_except_services_of_other_proxies() {
    installed();
    let namespace = Namespace::new();
    let mut follower = Follower::administrator();
    follower.until_whole();
    create(&namespace.0, "a");
    follower.until_service(&namespace.0, "a");
    create(&namespace.0, "b");
    follower.until_service(&namespace.0, "b");
    // KP-IN-06: a watch with a label selector reports a Service that gets the label as deleted.
    namespace
        .kubectl(&[
            "label",
            "service",
            "a",
            "service.kubernetes.io/service-proxy-name=other",
        ])
        .unwrap();
    follower.until("the end of a", |me| {
        (me.services(&namespace.0) == ["b"]).then_some(())
    });
    let state = follower.state("services");
    assert_eq!(state.phase, Phase::Following);
    assert!(state.error.is_none(), "{state:?}");
}

#[test]
fn lists_arrive_compressed() {
    installed();
    let namespace = Namespace::new();
    create(&namespace.0, "large");
    // The server compresses pages from 128 KiB on, and an argument cannot be longer than that.
    let note = "well compressible ".repeat(5_500);
    let [first, second] = ["first", "second"].map(|key| format!("{key}={note}"));
    namespace
        .kubectl(&["annotate", "service", "large", &first, &second])
        .unwrap();
    let mut follower = Follower::administrator();
    follower.until_whole();
    assert!(follower.services(&namespace.0) == ["large"]);
    let received = follower.bytes("services");
    assert!(received < 2 * note.len() as u64, "{received} bytes");
    create(&namespace.0, "next");
    follower.until_service(&namespace.0, "next");
}

#[test]
fn requests_succeed_and_refusals_are_typed() {
    let namespace = Namespace::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
        let api = Connection::open(&access).await.unwrap();
        let path = format!("/api/v1/namespaces/{}/configmaps", namespace.0);
        let item = format!("{path}/it");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"a": "1"}});
        assert_eq!(api.get(&item).await.unwrap_err().fault, Fault::NotFound);
        let made = api.create(&path, &object).await.unwrap();
        assert_eq!(api.create(&path, &object).await.unwrap_err().fault, Fault::AlreadyExists);
        let merged = api.patch(&item, Patch::Merge, &json!({"data": {"b": "2"}})).await.unwrap();
        assert_eq!(merged["data"], json!({"a": "1", "b": "2"}));
        assert_eq!(api.replace(&item, &made).await.unwrap_err().fault, Fault::Conflict);
        let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"c": "3"}});
        let apply = Patch::Apply { manager: "tests", force: false };
        let after = api.patch(&item, apply, &applied).await.unwrap();
        assert_eq!(after["data"], json!({"a": "1", "b": "2", "c": "3"}));
        let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}});
        assert_eq!(api.create(&path, &wrong).await.unwrap_err().fault, Fault::Invalid);
        assert_eq!(api.list(&path).await.unwrap()["kind"], "ConfigMapList");
        api.delete(&item).await.unwrap();
        assert_eq!(api.get(&item).await.unwrap_err().fault, Fault::NotFound);
    });
}

#[test]
fn a_server_with_a_certificate_of_another_authority_is_not_trusted() {
    let namespace = Namespace::new();
    let account = crate::follower::Account::new(&namespace.0, "stranger");
    let text = std::fs::read_to_string(account.kubeconfig()).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Without an authority in the kubeconfig, those of the machine are used.
    config["clusters"][0]["cluster"]
        .as_object_mut()
        .unwrap()
        .remove("certificate-authority");
    std::fs::write(account.kubeconfig(), config.to_string()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let error = runtime.block_on(async {
        let access = Access::kubeconfig(account.kubeconfig().as_ref(), "tests");
        let api = Connection::open(&access).await.unwrap();
        api.get("/version").await.unwrap_err()
    });
    assert_eq!(error.fault, Fault::Certificate, "{error}");
    assert!(
        error.to_string().contains("certificate authority"),
        "{error}"
    );
}

#[test]
fn a_replaced_authority_file_is_read_again() {
    installed();
    let namespace = Namespace::new();
    let user = user(&namespace.0, "-1h", "1h");
    let mut config: serde_json::Value = serde_json::from_str(&config(&server(), &user)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [authority, kubeconfig] = ["ca.crt", "kubeconfig"].map(|name| folder.path().join(name));
    let entry = &mut config["clusters"][0]["cluster"]["certificate-authority"];
    let original = std::mem::replace(entry, authority.to_str().into());
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    // This certificate did not sign the one of the server.
    std::fs::copy(user["client-certificate"].as_str().unwrap(), &authority).unwrap();
    let mut follower = Follower::new("waiting", kubeconfig.to_str().unwrap());
    follower.until_warned(&["services: Certificate", "another one signed"]);
    std::fs::copy(original.as_str().unwrap(), &authority).unwrap();
    follower.until_whole();
    follower.until_no_warnings();
}

mod alone {
    use super::{Follower, Namespace, Phase, compact, create, installed, ok, xtask};
    use crate::follower::Account;
    use crate::kubectl::{established, kubectl, remove_manifests, repository};

    const KINDS: [&str; 3] = [
        "clustertopologypolicies.topology.ipvs-topo.io",
        "topologypolicies.topology.ipvs-topo.io",
        "topologydrains.topology.ipvs-topo.io",
    ];

    /// Three clients in one restart: the administrator, a client whose account is deleted, and a
    /// client that loses its role.
    #[test]
    fn restart_compaction_and_lost_rights_delete_nothing_and_are_recovered_from() {
        installed();
        let namespace = Namespace::new();
        let removed = Account::new(&namespace.0, "removed");
        let demoted = Account::new(&namespace.0, "demoted");
        removed.allow();
        demoted.allow();
        create(&namespace.0, "a");
        let mut followers = [
            Follower::administrator(),
            Follower::new("removed", &removed.kubeconfig()),
            Follower::new("demoted", &demoted.kubeconfig()),
        ];
        for follower in &mut followers {
            follower.until_whole();
            follower.until_service(&namespace.0, "a");
        }
        let list = ok(&["get", "--raw", "/api/v1/services?limit=1"]);
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let seen = list["metadata"]["resourceVersion"].as_str().unwrap();
        removed.delete();
        demoted.forbid();

        xtask(&["stop", "kube-apiserver", "--kill"]);
        // The server no longer has the history after the last version that the followers received.
        compact();
        for follower in &mut followers {
            follower.until("staleness", |me| {
                (me.state("services").phase == Phase::Stale).then_some(())
            });
            follower.until_warned(&["Unreachable", "check that the API server runs"]);
        }
        xtask(&["start", "kube-apiserver"]);
        create(&namespace.0, "b");
        let watch = format!("/api/v1/services?watch=true&timeoutSeconds=1&resourceVersion={seen}");
        let output = kubectl(&["get", "--raw", &watch]).unwrap_or_else(|error| error);
        assert!(output.contains("too old resource version"), "{output}");

        let [administrator, without_account, without_role] = &mut followers;
        administrator.until_service(&namespace.0, "b");
        administrator.until("all watches", |me| {
            let is_following = |name| me.state(name).phase == Phase::Following;
            ["services", "nodes", "endpointslices.discovery.k8s.io"]
                .into_iter()
                .all(is_following)
                .then_some(())
        });
        without_account.until_warned(&["services: Unauthorized (401)", "expired or been revoked"]);
        without_role.until_warned(&[
            "services: Forbidden (403)",
            r#"resources: ["services"], verbs: ["list", "watch"]"#,
        ]);

        removed.create();
        demoted.allow();
        without_account.until_service(&namespace.0, "b");
        without_role.until_service(&namespace.0, "b");
        for follower in &followers {
            follower.assert_nothing_deleted(&namespace.0);
        }
        removed.forbid();
        demoted.forbid();
    }

    #[test]
    fn kinds_that_are_not_installed_are_empty_and_are_found_after_their_installation() {
        // Other tests may have installed the kinds.
        remove_manifests("manifests/crds");
        let namespace = Namespace::new();
        let mut follower = Follower::administrator();
        follower.until_whole();
        for kind in KINDS {
            let state = follower.state(kind);
            assert_eq!(state.phase, Phase::Absent, "{kind}");
            // `status -o json` has this text.
            let text = state.error.unwrap().to_string();
            let words = [
                format!("{kind}: NotFound (404)"),
                "install the CRD or API of this kind, if it is needed".to_owned(),
            ];
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        // A missing kind makes no warning, and everything else works.
        follower.until_no_warnings();
        create(&namespace.0, "a");
        follower.until_service(&namespace.0, "a");
        ok(&["apply", "-k", &repository("manifests/crds")]);
        established();
        follower.until("the kinds", |me| {
            let mut states = KINDS.into_iter().map(|kind| me.state(kind));
            states
                .all(|state| state.phase == Phase::Following && state.error.is_none())
                .then_some(())
        });
        let drain = "\
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyDrain
metadata:
  name: late
spec:
  match:
    key: topology.kubernetes.io/zone
    values: [b]
  expiresAt: TIME
";
        let in_an_hour = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
        let drain = drain.replace("TIME", &format!("{in_an_hour:.0}"));
        crate::kubectl::kubectl_with(&drain, &["apply", "-f", "-"]).unwrap();
        follower.until("the drain", |me| {
            me.index.snapshot().drains().next().map(drop)
        });
        kubectl(&["delete", "topologydrain", "late"]).unwrap();
        follower.until("the end of the drain", |me| {
            me.index.snapshot().drains().next().is_none().then_some(())
        });
    }
}
