//! Checks that after any changes, failures, drift and restarts the kernel has the state that a
//! fresh start on an empty kernel creates.

use std::collections::BTreeMap;

use cluster::object::Object;
use proptest::prelude::*;

use super::fake::{Fault, Shared};
use super::script::{Loop, service, slice};
use super::{BOTH, TCP, key};

/// One random change of the cluster.
#[derive(Debug, Clone)]
enum Change {
    Service(u8, bool),
    Endpoints(u8, Vec<u8>),
    Vanish(u8),
    Fault(u8, Fault),
    Drift(u8),
    Restart,
}

fn change() -> impl Strategy<Value = Change> {
    let name = 0..4_u8;
    let fault = prop_oneof![
        Just(Fault::Refused),
        Just(Fault::AnswerLost),
        Just(Fault::Lost)
    ];
    prop_oneof![
        (name.clone(), any::<bool>()).prop_map(|(n, udp)| Change::Service(n, udp)),
        (name.clone(), prop::collection::vec(0..6_u8, 0..5))
            .prop_map(|(n, hosts)| Change::Endpoints(n, hosts)),
        name.clone().prop_map(Change::Vanish),
        (name.clone(), fault).prop_map(|(n, fault)| Change::Fault(n, fault)),
        name.prop_map(Change::Drift),
        Just(Change::Restart),
    ]
}

/// The objects of the cluster by name, after the steps so far.
#[derive(Debug, Default)]
struct Model {
    services: BTreeMap<u8, bool>,
    endpoints: BTreeMap<u8, Vec<u8>>,
}

impl Model {
    fn ports(&self, n: u8) -> &'static [&'static str] {
        if self.services.get(&n).copied().unwrap_or_default() {
            BOTH
        } else {
            TCP
        }
    }

    fn objects(&self) -> Vec<Object> {
        let services = self.services.keys().map(|n| {
            service(
                &format!("s{n}"),
                &format!("10.96.0.{}", n + 1),
                self.ports(*n),
            )
        });
        let slices = self.endpoints.iter().map(|(n, hosts)| {
            let hosts: Vec<_> = hosts
                .iter()
                .map(|host| format!("10.244.1.{}@n1", host + 1))
                .collect();
            slice(
                &format!("s{n}"),
                BOTH,
                &hosts.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        });
        services.chain(slices).collect()
    }
}

impl Change {
    /// Applies the change to the model, or to the state outside of it.
    async fn happen(self, agent: &mut Loop, model: &mut Model) {
        match self {
            Self::Service(n, udp) => drop(model.services.insert(n, udp)),
            Self::Endpoints(n, hosts) => drop(model.endpoints.insert(n, hosts)),
            Self::Vanish(n) => {
                if model.services.remove(&n).is_some() {
                    agent
                        .delete(&service(&format!("s{n}"), "10.96.0.1", TCP))
                        .await;
                }
            }
            Self::Fault(n, fault) => {
                let steps = faulty_steps(n).map(|step| (step, fault));
                agent.world().faults.extend(steps);
            }
            Self::Drift(n) => {
                let gone = key(&format!("10.96.0.{}", n + 1));
                agent.world().servers.remove(&gone);
            }
            Self::Restart => {
                *agent = Loop::over(&agent.shared);
                agent.start(model.objects()).await;
            }
        }
    }
}

fn faulty_steps(n: u8) -> [String; 4] {
    let (vip, real) = (format!("10.96.0.{}", n + 1), format!("10.244.1.{}", n + 1));
    [
        format!("ipvsadm -A -t {vip}:80 -s wrr"),
        format!("ipvsadm -a -t {vip}:80 -r {real}:80 -m -w 1"),
        format!("ipvsadm -D -t {vip}:80"),
        format!("ipvsadm -e -t {vip}:80 -r {real}:80 -m -w 0"),
    ]
}

async fn play(changes: Vec<Change>) {
    let mut model = Model::default();
    let mut agent = Loop::over(&Shared::default());
    agent.start(model.objects()).await;
    for change in changes {
        change.happen(&mut agent, &mut model).await;
        agent.apply(model.objects()).await;
    }
    agent.world().faults.clear();
    agent.settle(600_000).await;
    agent.check().await;
    agent.settle(600_000).await;
    let reference = Shared::default();
    Loop::over(&reference).start(model.objects()).await;
    assert_same(&agent, &reference);
}

fn assert_same(agent: &Loop, reference: &Shared) {
    let held = agent.save();
    assert_eq!(held, reference.0.borrow().save());
    assert_eq!(agent.world().record, reference.0.borrow().record);
    assert_eq!(agent.world().routes, reference.0.borrow().routes);
    assert_eq!(agent.world().tables, reference.0.borrow().tables);
    let pulse = agent.handle.pulse();
    let count = |prefix: &str| held.iter().filter(|line| line.starts_with(prefix)).count() as u64;
    assert_eq!((pulse.v4.virtual_servers, pulse.waiting), (count("-A"), 0));
    assert_eq!(pulse.v4.active + pulse.v4.draining, count("-a"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_converges(changes in prop::collection::vec(change(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(changes));
    }
}
