//! The real API server followed: on good days beside other tests, on bad ones alone.

use cluster::api::Phase;
use kube_io::{Access, Connection, Fault, Patch};
use serde_json::json;

use crate::days::user;
use crate::follower::{Follower, compact, xtask};
use crate::kubectl::{Namespace, config, installed, ok, server, variable};

/// Makes a Service in a namespace.
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
fn changes_arrive_and_other_proxies_services_do_not() {
    installed();
    let namespace = Namespace::new();
    let mut follower = Follower::administrator();
    follower.until_whole();
    create(&namespace.0, "a");
    follower.until_service(&namespace.0, "a");
    create(&namespace.0, "b");
    follower.until_service(&namespace.0, "b");
    // KP-IN-06: for who selects by labels, a Service that gets the label of another proxy is gone.
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
    assert!(state.trouble.is_none(), "{state:?}");
}

#[test]
fn what_a_server_can_compress_comes_compressed() {
    installed();
    let namespace = Namespace::new();
    create(&namespace.0, "large");
    // Pages of less than 128 KiB are never compressed, and an argument cannot be longer than that.
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
fn requests_are_taken_and_refusals_are_typed() {
    let namespace = Namespace::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
        let api = Connection::open(&access).await.unwrap();
        let path = format!("/api/v1/namespaces/{}/configmaps", namespace.0);
        let one = format!("{path}/it");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"a": "1"}});
        assert_eq!(api.get(&one).await.unwrap_err().fault, Fault::NotFound);
        let made = api.create(&path, &object).await.unwrap();
        assert_eq!(api.create(&path, &object).await.unwrap_err().fault, Fault::AlreadyExists);
        let merged = api.patch(&one, Patch::Merge, &json!({"data": {"b": "2"}})).await.unwrap();
        assert_eq!(merged["data"], json!({"a": "1", "b": "2"}));
        assert_eq!(api.replace(&one, &made).await.unwrap_err().fault, Fault::Conflict);
        let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"c": "3"}});
        let how = Patch::Apply { manager: "tests", force: false };
        let after = api.patch(&one, how, &applied).await.unwrap();
        assert_eq!(after["data"], json!({"a": "1", "b": "2", "c": "3"}));
        let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}});
        assert_eq!(api.create(&path, &wrong).await.unwrap_err().fault, Fault::Invalid);
        assert_eq!(api.list(&path).await.unwrap()["kind"], "ConfigMapList");
        api.delete(&one).await.unwrap();
        assert_eq!(api.get(&one).await.unwrap_err().fault, Fault::NotFound);
    });
}

#[test]
fn a_server_with_a_certificate_of_another_authority_is_not_trusted() {
    let namespace = Namespace::new();
    let account = crate::follower::Account::new(&namespace.0, "stranger");
    let text = std::fs::read_to_string(account.kubeconfig()).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Nobody's authority: those of the machine count.
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
fn an_authority_that_follows_another_in_its_file_is_trusted() {
    installed();
    let namespace = Namespace::new();
    let user = user(&namespace.0, "-1h", "1h");
    let mut config: serde_json::Value = serde_json::from_str(&config(&server(), &user)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [authority, kubeconfig] = ["ca.crt", "kubeconfig"].map(|name| folder.path().join(name));
    let place = &mut config["clusters"][0]["cluster"]["certificate-authority"];
    let present = std::mem::replace(place, authority.to_str().into());
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    // A certificate that signed none.
    std::fs::copy(user["client-certificate"].as_str().unwrap(), &authority).unwrap();
    let mut follower = Follower::new("waiting", kubeconfig.to_str().unwrap());
    follower.until_warned(&["services: Certificate", "another one signed"]);
    std::fs::copy(present.as_str().unwrap(), &authority).unwrap();
    follower.until_whole();
    follower.until_untroubled();
}

mod alone {
    use super::{Follower, Namespace, Phase, compact, create, installed, ok, xtask};
    use crate::follower::Account;
    use crate::kubectl::{established, kubectl, repository, take_away};

    const KINDS: [&str; 3] = [
        "clustertopologypolicies.topology.ipvs-topo.io",
        "topologypolicies.topology.ipvs-topo.io",
        "topologydrains.topology.ipvs-topo.io",
    ];

    /// One restart serves three: who may go on, who is not known any more, and who may not read any more.
    #[test]
    fn restart_compaction_and_lost_rights_remove_nothing_and_end_when_they_are_mended() {
        installed();
        let namespace = Namespace::new();
        let fired = Account::new(&namespace.0, "fired");
        let demoted = Account::new(&namespace.0, "demoted");
        fired.allow();
        demoted.allow();
        create(&namespace.0, "a");
        let mut followers = [
            Follower::administrator(),
            Follower::new("fired", &fired.kubeconfig()),
            Follower::new("demoted", &demoted.kubeconfig()),
        ];
        for follower in &mut followers {
            follower.until_whole();
            follower.until_service(&namespace.0, "a");
        }
        let list = ok(&["get", "--raw", "/api/v1/services?limit=1"]);
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let seen = list["metadata"]["resourceVersion"].as_str().unwrap();
        fired.fire();
        demoted.forbid();

        xtask(&["stop", "kube-apiserver", "--kill"]);
        // What the followers have seen last is history that nobody keeps.
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
        let told = kubectl(&["get", "--raw", &watch]).unwrap_or_else(|told| told);
        assert!(told.contains("too old resource version"), "{told}");

        let [administrator, known, permitted] = &mut followers;
        administrator.until_service(&namespace.0, "b");
        administrator.until("all to be heard", |me| {
            let heard = |name| me.state(name).phase == Phase::Following;
            ["services", "nodes", "endpointslices.discovery.k8s.io"]
                .into_iter()
                .all(heard)
                .then_some(())
        });
        known.until_warned(&["services: Unauthorized (401)", "expired or been revoked"]);
        permitted.until_warned(&[
            "services: Forbidden (403)",
            r#"resources: ["services"], verbs: ["list", "watch"]"#,
        ]);

        fired.hire();
        demoted.allow();
        known.until_service(&namespace.0, "b");
        permitted.until_service(&namespace.0, "b");
        for follower in &followers {
            follower.assert_nothing_gone(&namespace.0);
        }
        fired.forbid();
        demoted.forbid();
    }

    #[test]
    fn kinds_that_are_not_installed_are_none_and_are_found_when_they_come() {
        // Other tests may have installed them.
        take_away("manifests/crds");
        let namespace = Namespace::new();
        let mut follower = Follower::administrator();
        follower.until_whole();
        for kind in KINDS {
            let state = follower.state(kind);
            assert_eq!(state.phase, Phase::Absent, "{kind}");
            // This is what `status -o json` says; the table has a line for each.
            let told = state.trouble.unwrap().to_string();
            let words = [
                format!("{kind}: NotFound (404)"),
                "install the CRD or API of this kind, if it is needed".to_owned(),
            ];
            assert!(words.iter().all(|word| told.contains(word)), "{told}");
        }
        // It is no trouble, and everything else works.
        follower.until_untroubled();
        create(&namespace.0, "a");
        follower.until_service(&namespace.0, "a");
        ok(&["apply", "-k", &repository("manifests/crds")]);
        established();
        follower.until("the kinds", |me| {
            let mut states = KINDS.into_iter().map(|kind| me.state(kind));
            states
                .all(|state| state.phase == Phase::Following && state.trouble.is_none())
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
        follower.until("its end", |me| {
            me.index.snapshot().drains().next().is_none().then_some(())
        });
    }
}
