//! An election against an API server that answers late or not at all, in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;
use crate::lease::DEADLINE;

/// A Lease, and how long the response to each request takes by its number; `None` if there is none.
struct SlowServer {
    lease: Mutex<(Value, u64)>,
    requests: AtomicUsize,
    delay: fn(usize) -> Option<Duration>,
}

async fn answer(
    State(server): State<Arc<SlowServer>>,
    request: Request,
) -> (StatusCode, Json<Value>) {
    let number = server.requests.fetch_add(1, Ordering::Relaxed);
    let Some(delay) = (server.delay)(number) else {
        return std::future::pending().await;
    };
    let is_read = request.method() == Method::GET;
    let body = axum::body::to_bytes(request.into_body(), 65_536).await;
    let answer = {
        let mut lease = server.lease.lock().unwrap();
        if is_read {
            let is_missing = lease.0.is_null();
            let code = if is_missing { 404 } else { 200 };
            (StatusCode::from_u16(code).unwrap(), Json(lease.0.clone()))
        } else {
            write(&mut lease, &body.unwrap())
        }
    };
    sleep(delay).await;
    answer
}

fn write(lease: &mut (Value, u64), body: &[u8]) -> (StatusCode, Json<Value>) {
    let mut written: Value = serde_json::from_slice(body).unwrap();
    let version = "/metadata/resourceVersion";
    if lease.0.pointer(version) != written.pointer(version) {
        return (StatusCode::CONFLICT, Json(Value::Null));
    }
    lease.1 += 1;
    written["metadata"]["resourceVersion"] = json!(lease.1.to_string());
    lease.0 = written;
    (StatusCode::OK, Json(lease.0.clone()))
}

struct Running {
    server: Arc<SlowServer>,
    stop: watch::Sender<bool>,
    leads: watch::Receiver<Option<Instant>>,
    election: JoinHandle<()>,
}

impl Running {
    fn start(delay: fn(usize) -> Option<Duration>) -> Self {
        let server = Arc::new(SlowServer {
            lease: Mutex::default(),
            requests: AtomicUsize::new(0),
            delay,
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&server));
        let connection = Connection::of_client(kube::Client::new(router, "default"));
        let identity = LeaseIdentity {
            namespace: "test".to_owned(),
            name: "it".to_owned(),
            me: "me".to_owned(),
        };
        let (stop, stops) = watch::channel(false);
        let (lead, leads) = watch::channel(None);
        let election = tokio::spawn(elect(connection, identity, lead, stops));
        Self {
            server,
            stop,
            leads,
            election,
        }
    }

    fn leads(&self) -> bool {
        self.leads
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Returns how long the replica needs to stop.
    async fn stop(self) -> Duration {
        let began = Instant::now();
        self.stop.send_replace(true);
        self.election.await.unwrap();
        began.elapsed()
    }
}

/// An API server that dies silently, behind a load balancer with others.
#[tokio::test(start_paused = true)]
async fn one_request_without_a_response_does_not_cost_the_leadership() {
    let running = Running::start(|number| (number != 7).then_some(Duration::ZERO));
    sleep(Duration::from_secs(1)).await;
    for _ in 0..600 {
        assert!(running.leads());
        sleep(Duration::from_millis(100)).await;
    }
    assert!(running.server.requests.load(Ordering::Relaxed) > 20);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_responses_does_not_delay_the_exit() {
    let running = Running::start(|number| (number < 4).then_some(Duration::ZERO));
    sleep(DEADLINE / 2).await;
    assert!(running.leads());
    let waited = running.stop().await;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_released_after_the_renewal_that_is_under_way() {
    let running = Running::start(|_| Some(Duration::from_secs(1)));
    let server = Arc::clone(&running.server);
    // The Lease is created by the second request, and then each renewal takes one of three seconds.
    let requests = || server.requests.load(Ordering::Relaxed);
    while requests() < 4 {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(running.leads());
    let waited = running.stop().await;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let lease = server.lease.lock().unwrap();
    assert_eq!(lease.0["spec"]["holderIdentity"], "");
}
