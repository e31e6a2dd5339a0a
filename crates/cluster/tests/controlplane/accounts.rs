//! Accounts of clients that follow: RBAC rules are removed and added, and token files are replaced.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cluster::api::Phase;
use cluster::event::Completeness;
use kube_io::Fault;
use serde_json::{Value, json};

use crate::follower::{Account, Follower};
use crate::following::create;
use crate::gate::Gate;
use crate::kubectl::{Namespace, eventually, installed, kubectl, kubectl_with, ok, server};

const POLICIES: &str = "topologypolicies.topology.ipvs-topo.io";
const DRAINS: &str = "topologydrains.topology.ipvs-topo.io";

const POLICY: &str = "\
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyPolicy
metadata:
  name: kept
spec:
  mode: None
";

/// Lets an account read what agents read, but only these of our kinds.
fn grant(account: &Account, ours: &[&str]) {
    let Account {
        namespace, name, ..
    } = account;
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    let rules = [
        rule("", &["namespaces", "nodes", "services"]),
        rule("discovery.k8s.io", &["endpointslices"]),
        rule("networking.k8s.io", &["servicecidrs"]),
        rule("topology.ipvs-topo.io", ours),
    ];
    let group = "rbac.authorization.k8s.io";
    let cluster_role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
        "metadata": {"name": namespace}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [cluster_role, binding]});
    kubectl_with(&both.to_string(), &["apply", "-f", "-"]).unwrap();
}

/// Waits until the API server no longer lets the account read drains.
fn until_forbidden(account: &Account) {
    let user = format!(
        "--as=system:serviceaccount:{}:{}",
        account.namespace, account.name
    );
    eventually("the loss of the rule", || {
        kubectl(&["auth", "can-i", "list", DRAINS, &user]).err()
    });
}

/// Waits until warnings name both missing rules.
fn until_rules_are_reported(follower: &mut Follower) {
    for name in [POLICIES, DRAINS] {
        let (resource, group) = name.split_once('.').unwrap();
        let rule = format!(
            r#"apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["list", "watch"]"#
        );
        follower.until_warned(&[&format!("{name}: Forbidden (403)"), &rule]);
        let error = follower.state(name).error.unwrap();
        assert_eq!(error.fault, Fault::Forbidden, "{error}");
    }
}

fn with_user(name: &str, user: &Value) -> (Gate, Follower) {
    let gate = Gate::before(server().trim_start_matches("https://"));
    let follower = Follower::at(&format!("https://{}", gate.address()), name, user);
    (gate, follower)
}

#[test]
fn a_missing_rbac_rule_is_reported_and_the_other_kinds_are_followed() {
    const ALL: [&str; 3] = [
        "clustertopologypolicies",
        "topologypolicies",
        "topologydrains",
    ];
    installed();
    let namespace = Namespace::new();
    let account = Account::new(&namespace.0, "limited");
    grant(&account, &ALL[..1]);
    create(&namespace.0, "a");
    let user = json!({"token": account.token()});
    let (gate, mut follower) = with_user("limited", &user);
    // Starts without the rules: there may be policies, so the cluster is partial.
    follower.until("a part of the cluster", |me| me.index.completeness());
    assert_eq!(follower.index.completeness(), Some(Completeness::Partial));
    follower.until_service(&namespace.0, "a");
    until_rules_are_reported(&mut follower);
    assert_eq!(follower.state(DRAINS).phase, Phase::Listing);
    grant(&account, &ALL);
    follower.until_whole();
    follower.until_no_warnings();

    // Loses the rules while it follows.
    let own = |me: &Follower| {
        let mut policies = me.index.snapshot().policies();
        policies.any(|policy| policy.namespace.as_deref() == Some(&*namespace.0))
    };
    eventually("the policy", || namespace.apply(POLICY).ok());
    follower.until("the policy", |me| own(me).then_some(()));
    grant(&account, &ALL[..1]);
    until_forbidden(&account);
    // The server keeps open watches and refuses the next request.
    gate.cut();
    until_rules_are_reported(&mut follower);
    assert_eq!(follower.state(DRAINS).phase, Phase::Stale);
    assert!(own(&follower), "the objects are kept");
    create(&namespace.0, "b");
    follower.until_service(&namespace.0, "b");
    let services = follower.state("services");
    assert_eq!((services.phase, services.error), (Phase::Following, None));

    grant(&account, &ALL);
    follower.until_no_warnings();
    follower.until("all watches", |me| {
        let is_following = |name| me.state(name).phase == Phase::Following;
        [POLICIES, DRAINS]
            .into_iter()
            .all(is_following)
            .then_some(())
    });
    follower.assert_nothing_deleted(&namespace.0);
    ok(&["delete", "clusterrole,clusterrolebinding", &namespace.0]);
    // Deletes the policy at once: the deletion of a namespace is slow, and other tests read all
    // policies.
    namespace.kubectl(&["delete", "tp", "--all"]).unwrap();
}

/// A token file as a kubelet writes it: behind a link that changes from one folder to the next.
struct Projected(tempfile::TempDir);

impl Projected {
    fn new(token: &str) -> Self {
        let projected = Self(tempfile::tempdir().unwrap());
        projected.replace("..1", token);
        symlink("..data/token", projected.path()).unwrap();
        projected
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("token")
    }

    /// Writes a folder with a new token and renames the link to it.
    fn replace(&self, version: &str, token: &str) {
        let folder = self.0.path();
        let next = folder.join(version);
        std::fs::create_dir(&next).unwrap();
        std::fs::write(next.join("token"), token).unwrap();
        let link = folder.join("..data_tmp");
        symlink(version, &link).unwrap();
        std::fs::rename(link, folder.join("..data")).unwrap();
    }
}

fn with_file(name: &str, token: &Projected) -> (Gate, Follower) {
    with_user(name, &json!({"tokenFile": token.path()}))
}

/// Runs the follower until a time.
fn until_moment(follower: &mut Follower, moment: Instant) {
    follower.until("a moment", |_| (Instant::now() >= moment).then_some(()));
}

#[test]
fn after_a_refusal_a_revoked_token_is_read_from_its_file_again() {
    /// The API server caches the result for a token for less than this.
    const REMEMBERED: Duration = Duration::from_secs(11);
    installed();
    let namespace = Namespace::new();
    let account = Account::new(&namespace.0, "revoked");
    account.allow();
    let token = Projected::new(&account.token());
    let (gate, mut follower) = with_file("revoked", &token);
    follower.until_whole();
    account.delete();
    until_moment(&mut follower, Instant::now() + REMEMBERED);
    gate.cut();
    follower.until_warned(&["services: Unauthorized (401)", "expired or been revoked"]);
    assert_eq!(follower.state("services").phase, Phase::Stale);

    account.create();
    token.replace("..2", &account.token());
    create(&namespace.0, "a");
    follower.until_service(&namespace.0, "a");
    follower.until_no_warnings();
    follower.assert_nothing_deleted(&namespace.0);
    account.forbid();
}

#[test]
fn a_token_file_is_read_again_before_the_old_token_is_refused() {
    /// kube-client reads the file again before the first request after 50 s.
    const READ_AGAIN: Duration = Duration::from_secs(52);
    installed();
    let namespace = Namespace::new();
    let [before, after] = ["before", "after"].map(|name| Account::new(&namespace.0, name));
    before.allow();
    after.allow();
    let token = Projected::new(&before.token());
    let (gate, mut follower) = with_file("rotated", &token);
    let opened = Instant::now();
    follower.until_whole();
    token.replace("..2", &after.token());
    until_moment(&mut follower, opened + READ_AGAIN);
    before.delete();
    gate.cut();
    create(&namespace.0, "a");
    follower.until_service(&namespace.0, "a");
    assert_eq!(follower.answers(401), 0, "the token was never refused");
    follower.assert_nothing_deleted(&namespace.0);
    before.forbid();
    after.forbid();
}
