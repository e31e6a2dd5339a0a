//! Wrong arguments end the program with a message.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use hickory_proto::rr::RecordType;

use crate::client::{N1, answers, over_udp, query};
use crate::program::{Program, cluster};

/// The exit code and the errors.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .arg("dns")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn wrong_arguments_and_input_exit_with_2() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let good = ["--cluster", path, "--node", "n1", "--listen", "127.0.0.1:0"];
    for (arguments, message) in [
        (
            &["--cluster", path, "--listen", "127.0.0.1:0"][..],
            "--node <NAME>",
        ),
        (&["--cluster", path, "--node", "n1"], "--listen <IP:PORT>"),
        (
            &["--cluster", path, "--node", "n1", "--listen", "53"],
            "such as 169.254.20.10:53",
        ),
        (
            &[
                "--cluster",
                "/no/such",
                "--node",
                "n1",
                "--listen",
                "127.0.0.1:0",
            ],
            "/no/such",
        ),
        (
            &[&good[..], &["--upstream", "dns.example.com"]].concat(),
            "such as 192.0.2.53",
        ),
        (
            &[&good[..], &["--domain", "a..b"]].concat(),
            "such as cluster.local",
        ),
        (&[&good[..], &["--ttl", "4000"]].concat(), "0..=3600"),
        (
            &[&good[..], &["--kubeconfig", "x"]].concat(),
            "cannot be used with",
        ),
        (
            &[
                "--cluster",
                path,
                "--node",
                "n1",
                "--listen",
                "127.0.0.1:53",
                "--upstream",
                "127.0.0.1",
            ],
            "round in circles",
        ),
    ] {
        let (code, errors) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    }
}

#[test]
fn options_without_effect_on_answers_are_refused() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let good = ["--cluster", path, "--node", "n1", "--listen", "127.0.0.1:0"];
    for (option, value, message) in [
        (
            "--node-source",
            "map",
            "cannot be used with '--node-source <SOURCE>'",
        ),
        (
            "--external-ip-ranges",
            "192.0.2.0/24",
            "unexpected argument '--external-ip-ranges'",
        ),
    ] {
        let (code, errors) = run(&[&good[..], &[option, value]].concat());
        assert_eq!(code, Some(2), "{option}: {errors}");
        assert!(errors.contains(message), "{option}: {errors}");
    }
}

#[test]
fn a_wrong_resolver_file_exits_with_2() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let file = folder.path().join("resolv.conf");
    let name = file.to_str().unwrap();
    for (listen, text, message) in [
        (
            "127.0.0.1:0",
            "# comment\nnameserver dns.example.com\n",
            format!("{name}:2: nameserver dns.example.com is no address; write one"),
        ),
        (
            "127.0.0.1:0",
            "search example.com\n",
            format!("{name} has no line `nameserver ADDRESS`; add one"),
        ),
        (
            "127.1.2.53:53",
            "nameserver 192.0.2.53\nnameserver 127.1.2.53\n",
            format!("{name}:2: nameserver 127.1.2.53 is the address of --listen"),
        ),
        (
            "127.0.0.1:53",
            "nameserver 0.0.0.0\n",
            format!("{name}:1: nameserver 0.0.0.0 is the address of --listen"),
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let cluster = ["--cluster", path, "--node", "n1"];
        let options = ["--listen", listen, "--upstream", name];
        let (code, errors) = run(&[cluster, options].concat());
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(&message), "{errors}");
    }
    let absent = "/no/such/resolv.conf";
    let cluster = ["--cluster", path, "--node", "n1"];
    let options = ["--listen", "127.0.0.1:0", "--upstream", absent];
    let (code, errors) = run(&[cluster, options].concat());
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("--upstream /no/such/resolv.conf: No such file"),
        "{errors}"
    );
}

#[test]
fn a_comment_of_a_resolver_file_may_have_any_bytes() {
    let folder = cluster();
    let file = folder.path().join("resolv.conf");
    std::fs::write(&file, b"# Zw\xf6lf\nnameserver 192.0.2.53\n").unwrap();
    let name = file.to_str().unwrap();
    let program = Program::in_folder(folder, &["--upstream", name]);
    program.line_with("the cluster is read");
}

#[test]
fn the_connection_to_the_agent_needs_its_socket_and_addresses() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let good = ["--cluster", path, "--node", "n1", "--listen", "0.0.0.0:0"];
    let socket = "/run/ipvs-topo/agent.sock";
    for (options, message) in [
        (
            &["--agent-socket", socket][..],
            "write --endpoint with those of the pod",
        ),
        (
            &["--agent-socket", socket, "--endpoint", "10.244.1.10:53"],
            "invalid IP address",
        ),
    ] {
        let (code, errors) = run(&[&good[..], options].concat());
        assert_eq!(code, Some(2), "{options:?}: {errors}");
        assert!(errors.contains(message), "{options:?}: {errors}");
    }
}

#[test]
fn the_name_server_of_the_domain_has_the_addresses_of_endpoint() {
    let question = query("cluster.local.", RecordType::NS);
    let endpoint = ["--endpoint", "10.244.1.53,fd00:1::53"];
    let program = Program::with(&[("10.244.1.10", "n1")], &endpoint);
    let reply = over_udp(N1, program.address, &question);
    assert_eq!(answers(&reply), ["ns.dns.cluster.local."]);
    let addresses = reply.additionals.iter();
    let addresses: Vec<String> = addresses.map(|record| record.data.to_string()).collect();
    assert_eq!(addresses, ["10.244.1.53", "fd00:1::53"]);

    // No endpoint has the loopback address of --listen.
    let program = Program::with(&[("10.244.1.10", "n1")], &[]);
    let reply = over_udp(N1, program.address, &question);
    assert_eq!((answers(&reply).len(), reply.authorities.len()), (0, 1));
}

#[test]
fn addresses_of_metrics_and_health_are_addresses() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let good = ["--cluster", path, "--node", "n1", "--listen", "127.0.0.1:0"];
    for (option, text, message) in [
        (
            "--metrics-bind-address",
            "9153",
            "such as 127.0.0.1, 127.0.0.1:9153",
        ),
        (
            "--healthz-bind-address",
            "",
            "such as 127.0.0.1, 127.0.0.1:8181",
        ),
    ] {
        let (code, errors) = run(&[&good[..], &[option, text]].concat());
        assert_eq!(code, Some(2), "{option} {text}: {errors}");
        assert!(errors.contains(message), "{option} {text}: {errors}");
    }
}

#[test]
fn an_address_in_use_exits_with_1() {
    let folder = cluster();
    let path = folder.path().to_str().unwrap();
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = &*used.local_addr().unwrap().to_string();
    let cluster = ["--cluster", path, "--node", "n1", "--listen"];
    for (options, purpose, option) in [
        (&[address][..], "TCP", "--listen"),
        (
            &["127.0.0.1:0", "--metrics-bind-address", address],
            "metrics",
            "--metrics-bind-address",
        ),
        (
            &["127.0.0.1:0", "--healthz-bind-address", address],
            "health",
            "--healthz-bind-address",
        ),
    ] {
        let (code, errors) = run(&[&cluster[..], options].concat());
        assert_eq!(code, Some(1), "{errors}");
        let message = format!("cannot listen on {address} ({purpose}): ");
        let remedy = format!("free the port, or choose another address with {option}");
        let parts = [&message, &remedy];
        assert!(parts.iter().all(|part| errors.contains(*part)), "{errors}");
    }
}
