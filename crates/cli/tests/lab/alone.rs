//! Failures of a cluster, one scene after the other, with continuous traffic from every node.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cluster::{
    NODES, Namespace, SYSTEM, agent_on, answer_within, install, kubectl, kubectl_tries,
    kubectl_with, on_node, print_duration, wait_for, wait_for_rollout, wait_until_served,
    weights_of, xtask,
};
use crate::refusal::Refusal;
use crate::traffic::{PATIENCE, Traffic};
use crate::web;

/// The agent's program on a node, from its container, because the node does not have it.
const PROGRAM: &str = "/proc/$(pidof ipvs-topo)/root/usr/bin/ipvs-topo";

/// The longest wait until kubelet restarts an agent that hangs: twice the 5 minutes that the liveness probe of
/// `manifests/base` allows.
const LIVENESS: Duration = Duration::from_secs(600);

/// A Service with a pod on every node, and its clients.
struct Stage<'a> {
    namespace: &'a Namespace,
    address: String,
    traffic: Traffic<'a>,
}

impl Stage<'_> {
    /// Plays a scene in which no request may fail, and prints its duration.
    fn scene(&mut self, name: &str, play: impl FnOnce(&Namespace)) {
        let began = Instant::now();
        play(self.namespace);
        self.traffic.flows_without_failure(name, &NODES);
        print_duration(name, began);
    }

    /// Whether the kernel of `node` gives new connections to the address of a pod.
    fn serves(&self, node: &str, pod: &str) -> bool {
        let weights = weights_of(node, &self.address);
        let weight = weights.get(&format!("{pod}:8080"));
        weight.is_some_and(|weight| *weight > 0)
    }
}

#[test]
fn traffic_continues_through_every_failure() {
    let began = Instant::now();
    install();
    let namespace = web::start();
    let address = web::address(&namespace);
    wait_until_served(&address);
    let mut stage = Stage {
        traffic: Traffic::start(&namespace, &address),
        namespace: &namespace,
        address,
    };
    let refusal = Refusal::begin("n1");
    print_duration("the start", began);
    // One after the other: while an agent is replaced, its node's kernel gets no changes.
    stage.scene(
        "agents are updated, and know the other nodes from the map",
        |_| {
            agents_know_nodes_from_the_map();
        },
    );
    stage.scene("the workload is updated", |namespace| {
        namespace.kubectl(&["rollout", "restart", "daemonset/web"]);
        namespace.kubectl(&["rollout", "status", "daemonset/web", "--timeout=600s"]);
    });
    stage.scene("a refused scheduler is accepted", |_| refusal.end());
    stage.scene("the agent is killed on each node in turn", |_| {
        kill_each_agent();
    });
    stage.scene(
        "the leading controller is killed, and the next one hangs",
        |_| {
            leader_is_killed();
            leader_hangs();
        },
    );
    stage.scene(
        "a controller is evicted, and no second one before it is back",
        |_| {
            controllers_are_evicted();
        },
    );
    stage.scene("the API server is killed and comes back", server_is_killed);
    stage.scene(
        "an agent starts without its rules, and another hangs",
        one_agent_may_not_read_and_one_hangs,
    );
    stage.scene(
        "an agent starts while its node's clock is an hour ahead",
        a_clock_is_wrong,
    );
    a_node_fails(&mut stage);
}

fn agents_know_nodes_from_the_map() {
    let restart = ["rollout", "restart", "daemonset/ipvs-topo-agent"];
    // Agents must also run on a tainted node.
    kubectl(&["taint", "node", "n3", "dedicated=edge:NoSchedule"]);
    kubectl(&[&[SYSTEM][..], &restart].concat());
    wait_for_rollout("daemonset/ipvs-topo-agent");
    for node in NODES {
        wait_for("an agent does not read the map", || {
            let ask = "wget -qO- http://127.0.0.1:10249/metrics || true";
            let figures = on_node(node, ask);
            let line = "ipvs_topo_node_source{source=\"map\"} 1";
            figures.lines().any(|figure| figure == line).then_some(())
        });
    }
    kubectl(&["taint", "node", "n3", "dedicated-"]);
}

fn kill_each_agent() {
    for node in NODES {
        kill_agent(node);
    }
}

/// Kills the agent on `node`, and waits until kubelet has restarted it.
fn kill_agent(node: &str) {
    let agent = agent_on(node);
    let before = restarts(&agent);
    on_node(node, "kill -9 $(pidof ipvs-topo)");
    wait_for("an agent does not come back", || {
        let now = restarts(&agent);
        (now != before && now.ends_with("true")).then_some(())
    });
}

/// The number of restarts of the agent, and whether it is ready.
fn restarts(agent: &str) -> String {
    let count = "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
    kubectl(&[SYSTEM, "get", agent, count])
}

/// The holder of the Lease: the pod's name, and a part that is unique for each process.
fn leader() -> String {
    let holder = "-o=jsonpath={.spec.holderIdentity}";
    kubectl(&[SYSTEM, "get", "lease", "ipvs-topo-controller", holder])
}

/// The leading process, once there is one, and its node.
fn leader_and_node() -> (String, String) {
    let leader = wait_for("no controller is the leader", || {
        Some(leader()).filter(|leader| !leader.is_empty())
    });
    let pod = leader.split('_').next().unwrap();
    let node = kubectl(&[SYSTEM, "get", "pod", pod, "-o=jsonpath={.spec.nodeName}"]);
    (leader, node)
}

fn wait_for_another(old: &str) {
    wait_for("no other controller takes the Lease", || {
        Some(leader()).filter(|leader| !leader.is_empty() && *leader != old)
    });
}

/// Kubelet restarts the controller, which then follows the new leader.
fn leader_is_killed() {
    let (old, node) = leader_and_node();
    on_node(&node, "kill -9 $(pidof ipvs-topo-controller)");
    wait_for_another(&old);
    wait_for_rollout("deployment/ipvs-topo-controller");
}

fn leader_hangs() {
    let (old, node) = leader_and_node();
    on_node(&node, "kill -STOP $(pidof ipvs-topo-controller)");
    wait_for_another(&old);
    on_node(&node, "kill -9 $(pidof ipvs-topo-controller)");
    wait_for_rollout("deployment/ipvs-topo-controller");
}

/// Evicts every controller, as `kubectl drain` does for each pod of a node.
fn controllers_are_evicted() {
    wait_for("the budget does not allow one", || {
        let allowed = "-o=jsonpath={.status.disruptionsAllowed}";
        let allowed = kubectl(&[SYSTEM, "get", "pdb", "ipvs-topo-controller", allowed]);
        (allowed == "1").then_some(())
    });
    let controllers = "--selector=app.kubernetes.io/name=ipvs-topo-controller";
    let names = "-o=jsonpath={.items[*].metadata.name}";
    let pods = kubectl(&[SYSTEM, "get", "pods", controllers, names]);
    let refused: Vec<String> = pods.split(' ').filter_map(|pod| evict(pod).err()).collect();
    // The budget permits the eviction of only one.
    let [words] = &*refused else {
        panic!("{pods}: {refused:?}");
    };
    assert!(words.contains("disruption budget"), "{words}");
    wait_for_rollout("deployment/ipvs-topo-controller");
}

/// Evicts a pod; returns the API server's message if a budget forbids it.
fn evict(pod: &str) -> Result<(), String> {
    let namespace = SYSTEM.trim_start_matches("--namespace=");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    let eviction = format!(
        r#"{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{pod}"}}}}"#
    );
    kubectl_tries(&eviction, &["create", "--raw", &path, "-f", "-"]).map(drop)
}

/// Later changes reach every kernel: half of the share for the zone's one pod, a quarter for
/// others.
fn server_is_killed(namespace: &Namespace) {
    xtask(&["controlplane", "stop", "kube-apiserver", "--kill"]);
    agents_report_the_unreachable_server();
    xtask(&["controlplane", "start", "kube-apiserver"]);
    every_agent_follows(namespace, 50);
}

/// Restores the binding of the agents' rules when dropped.
struct Missing(String);

impl Missing {
    fn rules() -> Self {
        let binding = ["clusterrolebinding", "ipvs-topo-agent"];
        let kept = kubectl(&[&["get", "-o=json"][..], &binding].concat());
        kubectl(&[&["delete"][..], &binding].concat());
        Self(kept)
    }
}

impl Drop for Missing {
    fn drop(&mut self) {
        drop(kubectl_tries(&self.0, &["apply", "-f", "-"]));
    }
}

/// Both kernels continue to serve, and both agents recover. Kubelet restarts the agent that hangs.
fn one_agent_may_not_read_and_one_hangs(namespace: &Namespace) {
    let hanging = agent_on("n2");
    let before = restarts(&hanging);
    on_node("n2", "kill -STOP $(pidof ipvs-topo)");
    let missing = Missing::rules();
    on_node("n1", "kill -9 $(pidof ipvs-topo)");
    let status = format!("{PROGRAM} status 2>&1 || true");
    wait_for("no status names the missing rule", || {
        let printed = on_node("n1", &status);
        let words = ["services: Forbidden (403)", "resources: [\"services\"]"];
        words
            .iter()
            .all(|word| printed.contains(word))
            .then_some(())
    });
    drop(missing);
    let restarted = answer_within(LIVENESS, || {
        let now = restarts(&hanging);
        (now != before && now.ends_with("true")).then_some(())
    });
    assert_eq!(restarted, Some(()), "an agent that hangs is not restarted");
    every_agent_follows(namespace, 70);
}

/// Gives the zone's one pod a share in percent, and the two others the smaller rest.
fn every_agent_follows(namespace: &Namespace, share: u32) {
    let weights = format!(
        "topology.ipvs-topo.io/weights=zone={share},*={}",
        100 - share
    );
    namespace.kubectl(&["annotate", "service", "web", &weights, "--overwrite"]);
    let address = web::address(namespace);
    for node in NODES {
        wait_for("an agent does not follow", || {
            let weights = weights_of(node, &address).into_values();
            let weights: BTreeSet<_> = weights.filter(|weight| *weight > 0).collect();
            let (most, least) = (weights.last()?, weights.first()?);
            (most * (100 - share) == 2 * share * least).then_some(())
        });
    }
}

/// An agent that starts there serves. Each agent ends a drain by the clock of its node.
fn a_clock_is_wrong(namespace: &Namespace) {
    let node = "n2";
    let set = |hours: i32| on_node(node, &format!("date -s @$(($(date +%s) + 3600 * {hours}))"));
    set(1);
    kill_agent(node);
    every_agent_follows(namespace, 60);
    let soon = jiff::Timestamp::now() + Duration::from_secs(1800);
    let drain = format!(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {{name: soon}}\nspec: {{expiresAt: \"{soon:.0}\", match: {{key: zone, values: [z1]}}}}\n"
    );
    kubectl_with(&drain, &["apply", "-f", "-"]);
    let address = web::address(namespace);
    let pod = web_pod(namespace, "n1").unwrap();
    let serving = |node: &str| {
        let weights = weights_of(node, &address);
        let serving = weights.iter().filter(|(_, weight)| **weight > 0);
        let (pods, ours) = serving.fold((0, false), |(pods, ours), (real, _)| {
            (pods + 1, ours || real.starts_with(&format!("{pod}:")))
        });
        (pods, ours)
    };
    wait_for("the other nodes do not drain", || {
        let drained = |node: &&str| serving(node) == (2, false);
        ["n1", "n3"].iter().all(drained).then_some(())
    });
    let status = format!("{PROGRAM} status || true");
    wait_for("no status reports the end of the drain", || {
        let printed = on_node(node, &status);
        let words = ["TopologyDrain soon", "the drain has ended"];
        words
            .iter()
            .all(|word| printed.contains(word))
            .then_some(())
    });
    assert_eq!(serving(node), (3, true));
    set(-1);
    // A Lease renewed with an earlier time looks like a stopped kubelet, so kubelet is restarted.
    on_node(node, "kill $(pidof kubelet)");
    wait_for("no agent uses the corrected clock", || {
        (serving(node) == (2, false)).then_some(())
    });
    kubectl(&["delete", "topologydrain", "soon"]);
    every_agent_follows(namespace, 50);
    // The restarted kubelet neither probes nor replaces a container that started an hour ahead of its clock.
    kubectl(&[SYSTEM, "delete", &agent_on(node)]);
    wait_for_rollout("daemonset/ipvs-topo-agent");
}

/// Requests to endpoints of the node fail until the endpoints are removed, and none after that.
fn a_node_fails(stage: &mut Stage<'_>) {
    let others = ["n1", "n2"];
    let began = Instant::now();
    let pod = web_pod(stage.namespace, "n3").unwrap();
    xtask(&["lab", "stop", "n3"]);
    wait_for("the endpoints of a node that is off stay", || {
        let gone = |node: &&str| !stage.serves(node, &pod);
        others.iter().all(gone).then_some(())
    });
    // Requests in progress may take this long to fail, and clients report them later.
    std::thread::sleep(2 * PATIENCE);
    stage.traffic.look_away(&others);
    std::thread::sleep(PATIENCE);
    stage
        .traffic
        .flows_without_failure("a node is off", &others);
    print_duration("a node is turned off", began);
    let began = Instant::now();
    xtask(&["lab", "start", "n3"]);
    wait_for("no endpoint returns", || {
        let pod = web_pod(stage.namespace, "n3")?;
        NODES
            .iter()
            .all(|node| stage.serves(node, &pod))
            .then_some(())
    });
    stage
        .traffic
        .flows_without_failure("a node is back", &others);
    std::thread::sleep(PATIENCE);
    stage.traffic.look_away(&["n3"]);
    stage
        .traffic
        .flows_without_failure("its own clients are back", &["n3"]);
    print_duration("a node is turned on again", began);
}

/// The agents stay healthy, and use the last known state.
fn agents_report_the_unreachable_server() {
    let status = format!("{PROGRAM} status || true");
    for node in NODES {
        wait_for(
            "an agent does not report the unreachable API server",
            || {
                let printed = on_node(node, &status);
                let words = [
                    "services: no data from the API server for ",
                    "; may be out of date",
                ];
                words
                    .iter()
                    .all(|word| printed.contains(word))
                    .then_some(())
            },
        );
        on_node(node, "wget -qO /dev/null http://127.0.0.1:10256/healthz");
    }
}

/// The address of the Service's ready pod on `node`.
fn web_pod(namespace: &Namespace, node: &str) -> Option<String> {
    let here = format!("--field-selector=spec.nodeName={node},status.phase=Running");
    let ready = "-o=jsonpath={range .items[*]}{.status.podIP} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}";
    let listed = namespace.kubectl(&["get", "pods", "--selector=app=web", &here, ready]);
    let mut lines = listed.lines().filter_map(|line| line.strip_suffix(" True"));
    lines.next().map(str::to_owned)
}
