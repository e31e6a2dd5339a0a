//! The sample's answer, and what bad input is reported as.

use super::*;

const SAMPLE: &str = include_str!("../cart.toml");

#[test]
fn the_sample_gives_the_answer_that_the_readme_shows() {
    let text = answer(SAMPLE, "n1").unwrap();
    let readme = include_str!("../README.md");
    assert!(readme.contains(&text), "{text}");
}

#[test]
fn a_client_elsewhere_gets_other_shares() {
    let text = answer(SAMPLE, "n3").unwrap();
    let line = |address: &str| text.lines().find(|line| line.starts_with(address)).unwrap();
    assert!(line("10.244.3.10:8080").contains("  node "), "{text}");
    assert!(line("10.244.1.10:8080").contains("  * "), "{text}");
    assert!(line("10.244.3.11:8080").ends_with("not ready"), "{text}");
}

#[test]
fn without_a_policy_every_ready_endpoint_gets_the_same_share() {
    let text = SAMPLE.replace("weights = ", "# ");
    let text = answer(&text, "n1").unwrap();
    assert_eq!(text.matches("33.33 %").count(), 3, "{text}");
}

#[test]
fn a_hard_policy_without_a_match_is_a_refusal() {
    let text = SAMPLE.replace(
        "weights = \"node=80,zone=15,*=5\"",
        "keys = \"example.com/rack\"",
    );
    let text = answer(&text, "n1").unwrap();
    assert!(
        text.contains("refused: no usable endpoint in the levels"),
        "{text}"
    );
}

#[test]
fn bad_input_names_the_key_and_the_remedy() {
    let cases = [
        ("port = 80\n", "port = 0\n", "port = 0", "a nonzero u16"),
        ("ready = false", "raedy = false", "raedy", "expected one of"),
        (
            "name = \"shop/cart\"",
            "name = \"cart\"",
            "service.name",
            "write it as shop/cart",
        ),
        (
            "\"10.96.0.10\"",
            "\"10.96.0\"",
            "service.address",
            "write it as 10.96.0.10",
        ),
        (
            "\"10.244.2.10\"",
            "\"fd00::1\"",
            "endpoints[1].address",
            "write an IPv4 address",
        ),
        (
            "node = \"n2\"",
            "node = \"n9\"",
            "endpoints[1].node",
            "use one of n1, n2, n3",
        ),
        (
            "name = \"n2\"",
            "name = \"n1\"",
            "nodes[1].name",
            "give each node its own name",
        ),
        ("*=5", "*", "service.policy.weights", "`node=80,zone=15,*`"),
        ("weights", "wieghts", "service.policy.wieghts", "known are"),
    ];
    for (good, bad, key, remedy) in cases {
        let text = SAMPLE.replacen(good, bad, 1);
        assert_ne!(text, SAMPLE, "{good}");
        let error = format!("{:#}", answer(&text, "n1").unwrap_err());
        assert!(
            error.contains(key) && error.contains(remedy),
            "{bad}: {error}"
        );
    }
}

#[test]
fn an_unknown_client_node_is_reported_with_the_known_ones() {
    let error = answer(SAMPLE, "n9").unwrap_err().to_string();
    assert!(
        error.starts_with("--node n9: no such node; use one of n1, n2, n3"),
        "{error}"
    );
}

#[test]
fn an_error_begins_with_the_file() {
    let error = format!("{:#}", run(Path::new("missing.toml"), "n1").unwrap_err());
    assert!(error.starts_with("missing.toml: cannot be read"), "{error}");
}
