//! A way to the API server that a test may cut, or on which it answers in the server's place.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use serde_json::json;

use crate::kubectl::{config, variable};

/// A port of the loopback behind which is another one.
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
    /// Both ends of everything that is open.
    open: Vec<TcpStream>,
    /// The first that fits is given.
    answers: Vec<Answer>,
    /// Requests that were answered here.
    answered: usize,
}

/// What requests are answered whose first line has all words.
#[derive(Clone)]
struct Answer {
    words: Vec<&'static str>,
    text: String,
}

impl Gate {
    /// A gate before `upstream`, an address such as `127.0.0.1:6443`.
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
                // Whatever breaks here is seen by the one who asks.
                thread::spawn(move || drop(shared.pass(client)));
            }
        });
        gate
    }

    /// Its address: what is written after `https://` or `http://`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A kubeconfig, in a folder, for who comes through it over plain HTTP.
    pub(crate) fn kubeconfig(&self, folder: &Path) -> String {
        let path = folder.join("gate.kubeconfig");
        let server = format!("http://{}", self.address());
        std::fs::write(&path, config(&server, &json!({}))).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Ends every connection; new ones may be made.
    pub(crate) fn cut(&self) {
        for stream in self.shared.lock().open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Answers requests whose first line has `word` from now on, over plain HTTP only.
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

    /// Answers for a collection, such as `/services?`, as a server whose etcd was restored from an empty backup: nothing is
    /// followed from where it was, and lists are complete and empty.
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

    /// How many requests were answered here.
    pub(crate) fn answered(&self) -> usize {
        self.shared.lock().answered
    }

    /// Lets everything pass again.
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
            let fits = |answer: &&Answer| answer.words.iter().all(|word| line.contains(word));
            if let Some(answer) = answers.iter().find(fits) {
                self.lock().answered += 1;
                return client.write_all(answer.text.as_bytes());
            }
            // The next request comes on another connection, and is looked at too.
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

/// The head of a request; its body is left in the stream.
pub(crate) fn head(stream: &TcpStream) -> io::Result<String> {
    // One byte at a time, so that nothing of the body is taken.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// Passes on what either says, until both have ended.
pub(crate) fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let forth = thread::spawn(move || copy(from, to));
    copy(server, client);
    drop(forth.join());
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    drop(io::copy(&mut from, &mut to));
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

/// `kubectl proxy`: plain HTTP in, the API server as somebody else out.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: String,
}

impl Proxy {
    /// As whom `kubeconfig` says.
    pub(crate) fn start(kubeconfig: &str) -> Self {
        let mut child = Command::new(variable("CONTROLPLANE_PROGRAM"))
            .args(["kubectl", "proxy", "--port=0", "--kubeconfig", kubeconfig])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(child.stdout.take().unwrap());
        told.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        // Whatever else it says is read, so that it never waits for us.
        thread::spawn(move || drop(told.read_to_string(&mut String::new())));
        Self { child, address }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
