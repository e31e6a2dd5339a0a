//! The binary accepts every way to the API server that kubectl knows.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::follower::Account;
use crate::gate::{Proxy, head, join};
use crate::kubectl::{Namespace, config, ok, server, variable};

/// An HTTP proxy for `proxy-url`, which opens tunnels with `CONNECT`.
struct Tunnel {
    url: String,
    opened: Arc<AtomicUsize>,
}

impl Tunnel {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tunnel = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            opened: Arc::default(),
        };
        let opened = Arc::clone(&tunnel.opened);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let opened = Arc::clone(&opened);
                // The client sees any failure.
                thread::spawn(move || drop(connect(client, &opened)));
            }
        });
        tunnel
    }
}

fn connect(mut client: TcpStream, opened: &AtomicUsize) -> io::Result<()> {
    let head = head(&client)?;
    let words: Vec<&str> = head.split(' ').collect();
    assert_eq!(words[0], "CONNECT", "{head}");
    let server = TcpStream::connect(words[1])?;
    opened.fetch_add(1, Ordering::Relaxed);
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    join(client, server)
}

/// `render` for the API server's own Service and an unknown node, without trusted authorities.
fn render(arguments: &[&str], kubeconfig: Option<&str>) -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
    program.args(["render", "--node=none", "-o=save"]);
    program.args(arguments).env_remove("KUBECONFIG");
    program.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
    let done = program.env("SSL_CERT_FILE", "/dev/null").output().unwrap();
    let [text, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(
        done.status.success(),
        "{arguments:?} {kubeconfig:?}: {said}"
    );
    let address = "-o=jsonpath={.spec.clusterIP}";
    let address = ok(&["get", "service", "kubernetes", "-n=default", address]);
    let address = format!(" {address}:");
    let lines = text.lines().filter(|line| line.contains(&address));
    lines.map(str::to_owned).collect()
}

/// Writes a file in `folder`; returns its path.
fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The administrator's kubeconfig, with the contents of its files inline.
fn administrator() -> Value {
    let text = ok(&["config", "view", "--raw", "--flatten", "-o=json"]);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_way_of_kubectl_to_the_api_server_works() {
    let given = variable("KUBECONFIG");
    let wanted = render(&["--kubeconfig", &given], None);
    assert!(!wanted.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = |name: &str, config: &Value| write(folder, name, &config.to_string());
    let same = |arguments: &[&str], kubeconfig: Option<&str>| {
        assert_eq!(render(arguments, kubeconfig), wanted);
    };

    // `KUBECONFIG`, which may list several files with a part each.
    same(&[], Some(&given));
    let whole = administrator();
    let parts = [
        ("cluster", "clusters"),
        ("user", "users"),
        ("context", "contexts"),
    ];
    let parts = parts.map(|(name, field)| {
        let mut part = json!({"apiVersion": "v1", "kind": "Config"});
        part[field] = whole[field].clone();
        part["current-context"] = whole["current-context"].clone();
        file(name, &part)
    });
    same(&[], Some(&parts.join(":")));

    // Another address, which needs no credentials.
    let proxy = Proxy::start(&given);
    same(&["--master", &format!("http://{}", proxy.address)], None);
    same(&["--master", &server(), "--kubeconfig", &given], None);

    // A server certificate that is not checked.
    let mut trusting = whole.clone();
    let cluster = &mut trusting["clusters"][0]["cluster"];
    *cluster = json!({"server": cluster["server"], "insecure-skip-tls-verify": true});
    same(&["--kubeconfig", &file("trusting", &trusting)], None);

    let tunnel = Tunnel::start();
    let mut through = whole.clone();
    through["clusters"][0]["cluster"]["proxy-url"] = tunnel.url.as_str().into();
    same(&["--kubeconfig", &file("through", &through)], None);
    assert!(tunnel.opened.load(Ordering::Relaxed) > 0);

    // Credentials from a command (`exec`).
    let namespace = Namespace::new();
    let account = Account::new(&namespace.0, "asked");
    account.allow();
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": account.token()},
    });
    let credential = file("credential", &credential);
    let command = write(folder, "login", &format!("#!/bin/sh\ncat {credential}\n"));
    std::fs::set_permissions(&command, PermissionsExt::from_mode(0o755)).unwrap();
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never",
    }});
    let asking = write(folder, "asking", &config(&server(), &user));
    same(&["--kubeconfig", &asking], None);
    account.forbid();
}
