//! What is typed: one Service or one namespace, kubectl's names, one flag for the node; and what `simulate` shows first.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(words: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples/shop");
    Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(words)
        .arg("--cluster")
        .arg(folder)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn fine(words: &[&str]) -> (String, String) {
    let output = run(words);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

#[test]
fn one_service_or_one_namespace_is_rendered() {
    let (all, _) = fine(&["render", "--node", "n1"]);
    for words in [["shop/cart"].as_slice(), &["-n", "shop"]] {
        let (some, _) = fine(&[&["render", "--node-name", "n1"], words].concat());
        assert_eq!(some, all);
    }
    for words in [["shop/till"].as_slice(), &["-n", "bank"]] {
        let output = run(&[&["render", "--node", "n1"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("the input has no Service"), "{errors}");
    }
}

#[test]
fn explain_takes_a_service_as_kubectl_names_it() {
    let (expected, _) = fine(&["explain", "shop/cart", "--node", "n1"]);
    for name in ["svc/cart", "service/cart"] {
        let (text, _) = fine(&["explain", name, "-n", "shop", "--node", "n1"]);
        assert_eq!(text, expected);
    }
}

#[test]
fn a_policy_that_selects_nothing_is_warned_of_and_changes_no_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let policy = "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyPolicy\n\
         metadata: {name: near, namespace: shop}\n\
         spec: {mode: Prefer, levels: [{key: zone}, {any: true}], serviceSelector: {matchLabels: {app: none}}}\n";
    fs::write(&path, policy).unwrap();
    let words = ["simulate", "--policy", path.to_str().unwrap()];
    let (_, warnings) = fine(&words);
    assert!(warnings.contains("TopologyPolicy shop/near"), "{warnings}");
    assert!(
        warnings.contains("decides nothing") || warnings.contains("no Service"),
        "{warnings}"
    );
}

#[test]
fn the_page_says_when_how_and_from_what_it_was_made() {
    let change = "shop/cart:weights=zone=90,*=10";
    let (page, _) = fine(&["simulate", "-o", "html", "--set", change]);
    assert!(
        page.contains(concat!("ipvs-topo ", env!("CARGO_PKG_VERSION"), " from ")),
        "{page}"
    );
    assert!(page.contains("simulate -o html --set &#39;shop/cart:weights=zone=90,*=10&#39;"));
    assert!(page.contains("examples/shop"));
}

#[test]
fn the_kubeconfig_is_found_where_kubectl_finds_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".kube/config");
    fs::create_dir(home.path().join(".kube")).unwrap();
    let config = "{apiVersion: v1, kind: Config, current-context: gone, contexts: [], \
                  clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}";
    fs::write(&file, config).unwrap();
    let other = home.path().join("other");
    fs::write(&other, config.replace("gone", "lost")).unwrap();
    let other = other.to_str().unwrap();
    let failed = |variable: Option<&str>, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
        command.args(["render", "--node", "n1"]).args(words);
        command.env("HOME", home.path()).env_remove("KUBECONFIG");
        command.env_remove("KUBERNETES_SERVICE_HOST");
        command.envs(variable.map(|files| ("KUBECONFIG", files)));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        errors
    };
    let shown = file.to_str().unwrap();
    let cases = [
        (
            failed(None, &[]),
            format!("{shown}: it has no context \"gone\"; "),
        ),
        (
            failed(None, &["--context", "mine"]),
            format!("{shown}: it has no context \"mine\"; "),
        ),
        (
            failed(Some(other), &[]),
            format!("{other}: it has no context \"lost\"; "),
        ),
        (
            failed(Some(&format!("/nowhere:{other}:{shown}")), &[]),
            "it has no context \"lost\"; ".to_owned(),
        ),
        (
            failed(None, &["--kubeconfig", other]),
            format!("{other}: it has no context \"lost\"; "),
        ),
        (
            failed(Some("/nowhere"), &["--as", "jane"]),
            "no API server is known: neither KUBECONFIG nor ~/.kube/config".to_owned(),
        ),
        (
            failed(Some("/nowhere"), &["--context", "mine"]),
            "--context mine: neither KUBECONFIG nor ~/.kube/config".to_owned(),
        ),
    ];
    for (errors, expected) in cases {
        assert!(
            errors.contains(&expected),
            "{expected:?} is missing in: {errors}"
        );
    }
}
