//! A TCP proxy in front of the API server: a test can cut its connections or answer itself.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use serde_json::json;

use crate::kubectl::{config, variable};

pub(crate) struct Gate {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    upstream: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Vec<TcpStream>,
    /// The first answer that matches is sent.
    answers: Vec<Answer>,
    answered: usize,
}

/// The answer to requests whose first line contains all words.
#[derive(Clone)]
struct Answer {
    words: Vec<&'static str>,
    text: String,
}

impl Gate {
    /// Opens a gate in front of `upstream`, an address such as `127.0.0.1:6443`.
    pub(crate) fn before(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Self {
            port: listener.local_addr().unwrap().port(),
            shared: Arc::new(Shared {
                upstream: upstream.to_owned(),
                ..Shared::default()
            }),
        };
        let shared = Arc::clone(&gate.shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // The client sees every error here as a closed connection.
                thread::spawn(move || drop(shared.pass(client)));
            }
        });
        gate
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Writes a kubeconfig for clients of the gate over plain HTTP.
    pub(crate) fn kubeconfig(&self, folder: &Path) -> String {
        let path = folder.join("gate.kubeconfig");
        let server = format!("http://{}", self.address());
        std::fs::write(&path, config(&server, &json!({}))).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Closes every connection; clients may connect again.
    pub(crate) fn cut(&self) {
        for stream in self.shared.lock().open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Answers requests whose first line contains `word`; needs plain HTTP.
    pub(crate) fn answer(&self, word: &'static str, code: u16, headers: &str, message: &str) {
        let body = json!({"kind": "Status", "code": code, "message": message}).to_string();
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {code} Test\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
        );
        let words = vec![word];
        self.shared.lock().answers = vec![Answer { words, text }];
        self.cut();
    }

    /// Answers for a collection (such as `/services?`) like a server whose etcd was restored from
    /// an empty backup: a watch gets 410, and lists are complete and empty.
    pub(crate) fn loses(&self, collection: &'static str) {
        let head =
            "HTTP/1.1 200 Test\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": "1", "annotations": annotations});
        let end = json!({"type": "BOOKMARK", "object": {"metadata": metadata}});
        let status =
            json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "compacted"});
        let gone = json!({"type": "ERROR", "object": status});
        self.shared.lock().answers = vec![
            Answer {
                words: vec![collection, "sendInitialEvents=true"],
                text: format!("{head}{end}\n"),
            },
            Answer {
                words: vec![collection],
                text: format!("{head}{gone}\n"),
            },
        ];
        self.cut();
    }

    pub(crate) fn answered(&self) -> usize {
        self.shared.lock().answered
    }

    /// Stops answering; all requests reach the server again.
    pub(crate) fn open(&self) {
        self.shared.lock().answers.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn pass(&self, mut client: TcpStream) -> io::Result<()> {
        let answers = self.lock().answers.clone();
        let mut first = Vec::new();
        if !answers.is_empty() {
            let head = head(&client)?;
            let line = head.lines().next().unwrap_or_default();
            let matches = |answer: &&Answer| answer.words.iter().all(|word| line.contains(word));
            if let Some(answer) = answers.iter().find(matches) {
                self.lock().answered += 1;
                return client.write_all(answer.text.as_bytes());
            }
            // Closes the connection after this request, so that the gate sees the first line of the
            // next.
            first = head
                .replacen("\r\n", "\r\nconnection: close\r\n", 1)
                .into_bytes();
        }
        let mut server = TcpStream::connect(&self.upstream)?;
        server.write_all(&first)?;
        self.lock()
            .open
            .extend([client.try_clone()?, server.try_clone()?]);
        join(client, server)
    }
}

/// Reads the head of a request and leaves the body in the stream.
pub(crate) fn head(stream: &TcpStream) -> io::Result<String> {
    // Reads single bytes, so that the reader takes nothing of the body.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// Copies in both directions until both streams are closed.
pub(crate) fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let upload = thread::spawn(move || copy(from, to));
    copy(server, client);
    drop(upload.join());
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    drop(io::copy(&mut from, &mut to));
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

/// `kubectl proxy`: serves plain HTTP and sends the requests to the API server.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: String,
}

impl Proxy {
    /// Sends requests as the user of `kubeconfig`.
    pub(crate) fn start(kubeconfig: &str) -> Self {
        let mut child = Command::new(variable("CONTROLPLANE_PROGRAM"))
            .args(["kubectl", "proxy", "--port=0", "--kubeconfig", kubeconfig])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        // Reads the rest of the output, so that the pipe is never full.
        thread::spawn(move || drop(stdout.read_to_string(&mut String::new())));
        Self { child, address }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
