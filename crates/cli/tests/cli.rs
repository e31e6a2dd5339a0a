//! The binary as users and scripts run it: exit codes, output streams and messages.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The result of one run.
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
    command
        .args(arguments)
        .env("HOME", "/nowhere")
        .env_remove("COLUMNS")
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("RUST_LOG");
    command
}

fn run(arguments: &[&str]) -> Run {
    outcome(&command(arguments).stdin(Stdio::null()).output().unwrap())
}

fn run_with_input(arguments: &[&str], input: &str) -> Run {
    let mut command = command(arguments);
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    outcome(&child.wait_with_output().unwrap())
}

fn outcome(output: &Output) -> Run {
    Run {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples");
    folder.join(name).to_string_lossy().into_owned()
}

/// Asserts exit code 2, empty standard output, and every one of `words` on standard error.
fn assert_refused(run: &Run, words: &[&str]) {
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    for word in words {
        assert!(
            run.err.contains(word),
            "{word:?} is missing in: {}",
            run.err
        );
    }
}

/// A file in its own folder.
fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn a_setting_without_effect_on_the_answer_of_the_agent_is_noted() {
    let noted = |command: &[&str], flag: [&str; 2]| {
        let noted = run(&[command, &flag, &["--socket", "/nowhere"]].concat());
        let expected = format!(
            "note: {} has no effect on the running agent's answer; add --node NAME",
            flag[0]
        );
        assert!(noted.err.contains(&expected), "{}", noted.err);
        assert!(noted.err.contains("no agent is running"), "{}", noted.err);
        assert_eq!(noted.code, Some(1), "{}", noted.err);
    };
    for flag in [
        ["--scheduler", "rr"],
        ["--service-cidr", "10.96.0.0/12"],
        ["--nodeport-addresses", "primary"],
        ["--fwmark-mask", "0xf00000"],
        ["--annotation-label-keys", "zone"],
        ["--external-ip-ranges", "192.0.2.0/24"],
    ] {
        noted(&["explain", "shop/cart"], flag);
        noted(&["diff"], flag);
    }
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let shop = example("shop");
    let agent = ["agent", "--cluster", &shop, "--node", "n1"];
    for (words, option) in [
        (
            [&agent[..], &["--node-source", "map"]].concat(),
            "--node-source",
        ),
        (
            [&agent[..], &["--relists", "believe"]].concat(),
            "--relists",
        ),
        (vec!["diff", "--state-dir", "/tmp"], "--state-dir"),
    ] {
        let refused = run(&words);
        assert_eq!(refused.code, Some(2), "{words:?}");
        assert!(refused.err.contains(option), "{}", refused.err);
    }
}

#[test]
fn render_save_is_what_ipvsadm_save_prints_sorted_bytewise() {
    let shop = run(&[
        "render",
        "--cluster",
        &example("shop"),
        "--node",
        "n1",
        "-o",
        "save",
    ]);
    let expected = "\
-A -t 10.96.0.10:80 -s wrr
-a -t 10.96.0.10:80 -r 10.244.1.2:8080 -m -w 96
-a -t 10.96.0.10:80 -r 10.244.2.2:8080 -m -w 9
-a -t 10.96.0.10:80 -r 10.244.2.3:8080 -m -w 9
-a -t 10.96.0.10:80 -r 10.244.3.2:8080 -m -w 2
-a -t 10.96.0.10:80 -r 10.244.4.2:8080 -m -w 2
-a -t 10.96.0.10:80 -r 10.244.4.3:8080 -m -w 2
";
    assert_eq!(
        (shop.code, shop.out.as_str(), shop.err.as_str()),
        (Some(0), expected, "")
    );
    let lines: Vec<_> = shop.out.lines().collect();
    assert!(lines.is_sorted());
}

#[test]
fn persistence_protocols_and_ipv6_are_written_as_ipvsadm_does() {
    let lines = |name: &str| {
        run(&[
            "render",
            "--cluster",
            &example(name),
            "--node",
            "n1",
            "-o",
            "save",
        ])
        .out
    };
    assert!(
        lines("session-affinity").contains("-s wrr -p 1800\n"),
        "{}",
        lines("session-affinity")
    );
    let mixed = lines("udp-sctp");
    assert!(
        mixed.contains("-A -u ") && mixed.contains("-A --sctp-service "),
        "{mixed}"
    );
    let dual = lines("dual-stack");
    assert!(
        dual.contains("-a -t [fd00:10:96::50]:80 -r [fd00:10:244:1::40]:8080 -m -w "),
        "{dual}"
    );
}

#[test]
fn render_reads_standard_input() {
    let text = fs::read_to_string(Path::new(&example("shop")).join("service.yaml")).unwrap();
    let run = run_with_input(
        &["render", "--cluster", "-", "--node", "n1", "-o", "save"],
        &text,
    );
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "-A -t 10.96.0.10:80 -s wrr\n")
    );
    assert!(run.err.contains("the input has no Node"), "{}", run.err);
}

#[test]
fn a_cluster_without_virtual_servers_says_so() {
    let headless = "
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{port: 80}]}
";
    let table = ["render", "--cluster", "-", "--node", "n1"];
    let run = run_with_input(&table, headless);
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (
            Some(0),
            "no virtual servers: no Service has a usable cluster IP\n",
            ""
        )
    );
}

#[test]
fn json_goes_to_standard_output_with_the_warnings_in_it() {
    let (_folder, path) = file(
        "shop.yaml",
        "apiVersion: v1
kind: Service
metadata:
  name: cart
  namespace: shop
  annotations:
    topology.ipvs-topo.io/weights: node=eighty
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{port: 80}]}
",
    );
    let path = path.to_string_lossy();
    let json = run(&["render", "--cluster", &path, "--node", "n1", "-o", "json"]);
    assert_eq!((json.code, json.err.as_str()), (Some(0), ""));
    let view: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let warning = &view["warnings"][0];
    assert_eq!(warning["object"], "Service shop/cart");
    assert_eq!(warning["line"], 7);
    assert!(warning["file"].as_str().unwrap().ends_with("shop.yaml"));
    assert!(
        warning["field"]
            .as_str()
            .unwrap()
            .contains("topology.ipvs-topo.io/weights")
    );

    let table = run(&["render", "--cluster", &path, "--node", "n1"]);
    assert_eq!(table.code, Some(0));
    for words in [
        "warning: ",
        "shop.yaml:7",
        "Service shop/cart",
        "node=eighty",
        "whole number",
    ] {
        assert!(
            table.err.contains(words),
            "{words:?} is missing in: {}",
            table.err
        );
    }
    assert!(!table.out.contains("warning"), "{}", table.out);
}

#[test]
fn warnings_are_counted_for_people_and_are_errors_where_strict() {
    let bad = "{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop, annotations: \
        {topology.ipvs-topo.io/weights: node=eighty}}, spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}}\n\
        ---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n\
        {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{port: 80}], \
        metadata: {name: s, namespace: shop, labels: {kubernetes.io/service-name: cart}}, \
        endpoints: [{addresses: [10.244.0.1]}]}\n";
    let (_folder, path) = file("shop.yaml", bad);
    let path = path.to_string_lossy();
    let commands: [&[&str]; 4] = [
        &["render", "--node", "n1"],
        &["render", "--node", "n1", "-o", "save"],
        &["explain", "shop/cart", "--node", "n1"],
        &["simulate"],
    ];
    for command in commands {
        let words = [command, &["--cluster", &path]].concat();
        let fine = run(&words);
        assert_eq!(fine.code, Some(0), "{words:?}");
        let last = fine.err.lines().last().unwrap_or_default();
        assert_eq!(last, "1 warning; --strict makes it an error", "{words:?}");
        let strict = run(&[&words[..], &["--strict"]].concat());
        assert_eq!((strict.code, &strict.out), (Some(2), &fine.out));
        let last = strict.err.lines().last().unwrap_or_default();
        let expected = "ipvs-topo: 1 warning, and --strict makes it an error";
        assert_eq!(last, expected, "{words:?}");
    }
    let shop = example("shop");
    let good = ["render", "--cluster", &shop, "--node", "n1", "--strict"];
    let good = run(&good);
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""));
    let asked = run(&["explain", "shop/cart", "--strict"]);
    assert_eq!(asked.code, Some(2), "{}", asked.err);
}

#[test]
fn input_that_cannot_be_read_is_exit_2_and_names_the_path_and_the_remedy() {
    let missing = run(&[
        "render",
        "--cluster",
        "/nowhere/cluster.yaml",
        "--node",
        "n1",
    ]);
    assert_refused(
        &missing,
        &["/nowhere/cluster.yaml", "name an existing file or folder"],
    );

    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_string_lossy();
    assert_refused(
        &run(&["render", "--cluster", &empty, "--node", "n1"]),
        &[&empty, ".yaml"],
    );

    let (_folder, path) = file("broken.yaml", "kind: Service\n  bad: [indent\n");
    let broken = run(&[
        "render",
        "--cluster",
        &path.to_string_lossy(),
        "--node",
        "n1",
    ]);
    assert_refused(&broken, &["broken.yaml:"]);
}

#[test]
fn wrong_usage_is_exit_2_and_shows_the_correct_usage() {
    let shop = example("shop");
    assert_refused(&run(&[]), &["Usage"]);
    assert_refused(&run(&["render", "--node", "n1"]), &["--cluster"]);
    assert_refused(&run(&["render", "--cluster", &shop]), &["--node"]);
    let render = ["render", "--cluster", &shop, "--node"];
    let with = |more: &[&str]| run(&[render.as_slice(), more].concat());
    assert_refused(&with(&["n 1"]), &["kubectl get nodes"]);
    assert_refused(&with(&["n1", "-o", "yaml"]), &["table", "save", "json"]);
    assert_refused(
        &with(&["n1", "--service-cidr", "10.96.0.0"]),
        &["10.96.0.0/12"],
    );
    assert_refused(&with(&["n1", "--scheduler", "no such"]), &["wrr"]);
    assert_refused(
        &run(&["status", "cart"]),
        &["NAMESPACE/SERVICE", "shop/cart"],
    );
    assert_refused(&run(&["diff", "--cluster", &shop]), &["--node"]);
    let agent = ["agent", "--cluster", &shop, "--node-name", "n1"];
    let with = |more: &[&str]| run(&[agent.as_slice(), more].concat());
    let nowhere = run(&["agent", "--cluster", "/nowhere", "--node-name", "n1"]);
    assert_refused(&nowhere, &["/nowhere", "name an existing file or folder"]);
    assert_refused(&with(&["--check-period", "60"]), &["30s"]);
    assert_refused(
        &with(&["--node-ip", "n1"]),
        &["\"n1\" is not an IP address", "192.0.2.10"],
    );
    assert_refused(
        &with(&["--healthz-bind-address", "localhost:1"]),
        &["0.0.0.0:10256"],
    );
    assert_refused(
        &with(&["--metrics-bind-address", "0.0.0.0:0"]),
        &["1 to 65535"],
    );
    assert_refused(&with(&["--kubeconfig", "/x"]), &["--kubeconfig"]);
    assert_refused(
        &with(&["--config", "/nowhere"]),
        &["--config: /nowhere: cannot be read"],
    );
}

#[test]
fn a_missing_service_or_port_is_exit_2_and_lists_the_existing_ones() {
    let shop = example("shop");
    let explain = |target: &str| run(&["explain", target, "--cluster", &shop, "--node", "n1"]);
    assert_refused(&explain("shop/nope"), &["shop/nope"]);
    assert_refused(&explain("shop/cart:https"), &["https", "http (80)"]);
    let fine = explain("shop/cart:80");
    assert_eq!(fine.code, Some(0));
    for stage in [
        "S0",
        "S4",
        "S6",
        "S9",
        "S10",
        "S11",
        "What would change this",
    ] {
        assert!(
            fine.out.contains(stage),
            "{stage} is missing in: {}",
            fine.out
        );
    }
    let json = run(&[
        "explain",
        "shop/cart",
        "--cluster",
        &shop,
        "--node",
        "n1",
        "-o",
        "json",
    ]);
    let views: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(views[0]["stages"].as_array().unwrap().len(), 12);
}

#[test]
fn a_service_without_virtual_server_is_reported_with_its_unused_annotations() {
    let explain: &[&str] = &["explain", "t/s", "--node", "n1"];
    let render: &[&str] = &["render", "t/s", "--node", "n1"];
    let simulate: &[&str] = &["simulate", "t/s"];
    for (spec, is, commands) in [
        ("clusterIP: None", "headless", &[explain, render][..]),
        (
            "type: ExternalName, externalName: example.com",
            "of type ExternalName",
            &[explain, render, simulate],
        ),
    ] {
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: t, annotations: \
                       {topology.ipvs-topo.io/keys: zone}}";
        let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}";
        let text = format!("{service}\nspec: {{{spec}}}\n{node}\n");
        let (_folder, path) = file("a.yaml", &text);
        let cluster = path.to_str().unwrap();
        for command in commands {
            let refused = run(&[*command, &["--cluster", cluster]].concat());
            let first = format!("Service t/s is {is}, so it has no virtual server; ");
            let second = format!("no effect: the Service is {is}");
            assert_refused(&refused, &[&first, &second, "remove the annotation"]);
        }
    }
}

/// The result of a command with a broken kubeconfig.
fn with_default_kubeconfig(arguments: &[&str]) -> Run {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".kube");
    fs::create_dir(&folder).unwrap();
    let config = "{current-context: lost, contexts: [{name: a, context: {cluster: c}}], \
                  clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}";
    fs::write(folder.join("config"), config).unwrap();
    let mut command = command(arguments);
    outcome(&command.env("HOME", home.path()).output().unwrap())
}

#[test]
fn a_node_strict_or_a_moment_reads_the_default_kubeconfig_without_another_flag() {
    let moment = ["--now", "2026-11-22T09:00:00Z"];
    let commands: [&[&str]; 6] = [
        &["render", "--node", "n1", "--strict"],
        &["simulate", "--strict"],
        &["simulate", "--now", "2026-11-22T09:00:00Z"],
        &["explain", "shop/cart", "--node", "n1", "--strict"],
        &["explain", "svc/cart", "--node", "n1"],
        &["diff", "--node", "n1", "--strict"],
    ];
    for command in commands {
        assert_refused(&with_default_kubeconfig(command), &[".kube/config", "lost"]);
    }
    let asked = [&["explain", "shop/cart"][..], &moment].concat();
    for command in [
        &asked[..],
        &["explain", "a/b", "--strict"],
        &["diff", "--strict"],
    ] {
        let flag = ["--strict", "--now"]
            .iter()
            .find(|flag| command.contains(flag));
        assert_refused(
            &run(command),
            &[flag.unwrap(), "running agent", "--node NAME"],
        );
    }
    let both = ["diff", "--node", "n1", "--socket", "/nowhere"];
    assert_refused(&run(&both), &["--socket", "--node"]);
}

#[test]
fn every_command_accepts_the_same_service_names() {
    let twin = |namespace: &str, address: u8| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: {namespace}}}\n\
             spec: {{clusterIP: 10.96.0.{address}, ports: [{{port: 80}}]}}\n---\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    let all = ["default", "shop", "svc"].iter().zip(1..);
    let all: String = all.map(|(name, address)| twin(name, address)).collect();
    let (_folder, path) = file("a.yaml", &format!("{all}{node}"));
    let commands: [&[&str]; 3] = [
        &["render", "--node", "n1"],
        &["explain", "--node", "n1"],
        &["simulate"],
    ];
    for command in commands {
        let command = [command, &["--cluster", path.to_str().unwrap()]].concat();
        for (service, address) in [
            (&["svc/cart"][..], "10.96.0.1:80"),
            (&["svc/cart", "-n", "shop"], "10.96.0.2:80"),
            (&["shop/cart"], "10.96.0.2:80"),
            (&["svc/cart", "-n", "svc"], "10.96.0.3:80"),
            (&["svc/svc/cart"], "10.96.0.3:80"),
        ] {
            let words = [&command[..], service, &["-o", "json"]].concat();
            let found = run(&words);
            assert_eq!(found.code, Some(0), "{words:?}: {}", found.err);
            let view: serde_json::Value = serde_json::from_str(&found.out).unwrap();
            let (host, _port) = address.split_once(':').unwrap();
            let is_meant =
                found.out.contains(&format!("\"{host}\"")) || found.out.contains(address);
            assert!(is_meant, "{words:?}: {view}");
            assert_eq!(
                found.out.matches("10.96.0.").count(),
                found.out.matches(host).count()
            );
        }
        let two = run(&[&command[..], &["shop/cart", "-n", "svc"]].concat());
        assert_refused(&two, &["two namespaces"]);
    }
}

#[test]
fn without_an_agent_status_diff_and_explain_exit_1_and_name_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder
        .path()
        .join("agent.sock")
        .to_string_lossy()
        .into_owned();
    for arguments in [
        ["status", "--socket", &socket].as_slice(),
        &["diff", "--socket", &socket],
        &["explain", "shop/cart", "--socket", &socket],
    ] {
        let run = run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(
            run.err.contains(&socket) && run.err.contains("ipvs-topo agent"),
            "{}",
            run.err
        );
    }
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let shop = example("shop");
    let base = ["render", "--cluster", &shop, "--node", "n1"];
    assert!(!run(&base).out.contains('\x1b'));
    let always = run(&[base.as_slice(), &["--colour", "always"]].concat());
    assert!(always.out.contains("\x1b[1m"), "{}", always.out);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let shop = example("shop");
    let mut command = command(&["render", "--cluster", &shop, "--node", "n1", "-o", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_table_fits_the_given_width() {
    let shop = example("shop");
    let mut narrow = command(&["render", "--cluster", &shop, "--node", "n1"]);
    let run = outcome(&narrow.env("COLUMNS", "50").output().unwrap());
    assert!(
        run.out
            .lines()
            .skip(2)
            .all(|line| line.chars().count() <= 50),
        "{}",
        run.out
    );
}

#[test]
fn a_terminal_of_0_columns_is_one_of_unknown_width() {
    let shop = example("shop");
    let words = ["render", "--cluster", shop.as_str(), "--node", "n1"];
    let [none, zero] = [None, Some("0")].map(|columns| {
        let mut command = command(&words);
        command.envs(columns.map(|columns| ("COLUMNS", columns)));
        outcome(&command.output().unwrap()).out
    });
    assert!(none.contains("ZONE"), "{none}");
    assert_eq!(zero, none);
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let help = run(&["--help"]);
    assert_eq!((help.code, help.err.as_str()), (Some(0), ""));
    for word in [
        "agent",
        "render",
        "status",
        "diff",
        "explain",
        "Exit codes",
        "--colour",
    ] {
        assert!(
            help.out.contains(word),
            "{word} is missing in: {}",
            help.out
        );
    }
    assert_eq!(
        run(&["--version"]).out.trim(),
        concat!("ipvs-topo ", env!("CARGO_PKG_VERSION"))
    );
}
