//! kube-proxy's own unit tests of syncs and deletions, on the kernel in memory (KP-UT-...);
//! docs/kube-proxy-tests.md lists all of them.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::Object;
use topology_core::model::{Frontend, TrafficPolicy};
use topology_core::scheduler::Scheduler;

use super::fake::Shared;
use super::script::{Loop, service, slice};
use super::{TCP, key, web};

/// Old and new endpoints of each Service, by its ports. The lists are those of kube-proxy's cases.
struct Change {
    name: &'static str,
    old: &'static [Part],
    new: &'static [Part],
}

/// A Service, its UDP ports, and the addresses of its endpoints.
type Part = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const P11: &[&str] = &["11/UDP"];
const P22: &[&str] = &["22/UDP"];
const P11_12: &[&str] = &["11/UDP", "12/UDP"];

const CHANGES: &[Change] = &[
    Change {
        name: "nothing",
        old: &[],
        new: &[],
    },
    Change {
        name: "no change, named port",
        old: &[("ep1", P11, &["10.1.1.1@n1"])],
        new: &[("ep1", P11, &["10.1.1.1@n1"])],
    },
    Change {
        name: "no change, several ports and Services",
        old: &[
            ("ep1", P11_12, &["10.1.1.1@n1", "10.1.1.2@n2"]),
            ("ep2", P22, &["10.2.2.1@n1"]),
        ],
        new: &[
            ("ep1", P11_12, &["10.1.1.1@n1", "10.1.1.2@n2"]),
            ("ep2", P22, &["10.2.2.1@n1"]),
        ],
    },
    Change {
        name: "add",
        old: &[],
        new: &[("ep1", P11, &["10.1.1.1@n1"])],
    },
    Change {
        name: "remove",
        old: &[("ep1", P11, &["10.1.1.1@n1"])],
        new: &[],
    },
    Change {
        name: "add an address and a port",
        old: &[("ep1", P11, &["10.1.1.1@n2"])],
        new: &[("ep1", P11_12, &["10.1.1.1@n2", "10.1.1.2@n1"])],
    },
    Change {
        name: "remove an address and a port",
        old: &[("ep1", P11_12, &["10.1.1.1@n2", "10.1.1.2@n1"])],
        new: &[("ep1", P11, &["10.1.1.1@n2"])],
    },
    Change {
        name: "another number of the port",
        old: &[("ep1", P11, &["10.1.1.1@n1"])],
        new: &[("ep1", P22, &["10.1.1.1@n1"])],
    },
    Change {
        name: "several Services at once",
        old: &[
            ("ep1", P11, &["10.1.1.1@n1"]),
            ("ep2", P22, &["10.2.2.2@n1", "10.2.2.22@n1"]),
            ("ep4", P11_12, &["10.4.4.4@n1", "10.4.4.5@n1"]),
        ],
        new: &[
            ("ep1", P11_12, &["10.1.1.1@n1", "10.1.1.11@n2"]),
            ("ep3", P22, &["10.3.3.3@n2"]),
            ("ep4", P11, &["10.4.4.4@n1"]),
        ],
    },
    Change {
        name: "from no address to one",
        old: &[("ep1", P11, &[])],
        new: &[("ep1", P11, &["10.1.1.1@n1"])],
    },
];

/// Cluster IPs by name, so that a Service keeps its own.
fn objects(parts: &[Part]) -> Vec<Object> {
    let both = parts.iter().flat_map(|(name, ports, endpoints)| {
        let number = name.trim_start_matches("ep");
        [
            service(name, &format!("10.96.1.{number}"), ports),
            slice(name, ports, endpoints),
        ]
    });
    both.collect()
}

/// Every endpoint of a UDP port, as the journal names its flows.
fn flows(parts: &[Part]) -> BTreeSet<String> {
    let of_part = |(_, ports, endpoints): &Part| {
        let numbers = ports.iter().map(|port| port.trim_end_matches("/UDP"));
        let of_port = numbers.flat_map(|number| {
            let addresses = endpoints.iter().map(|endpoint| endpoint.split('@').next());
            addresses.map(move |address| format!("{}:{number}", address.unwrap()))
        });
        of_port.collect::<Vec<_>>()
    };
    parts.iter().flat_map(of_part).collect()
}

/// The UDP virtual servers that have an endpoint.
fn serving(parts: &[Part]) -> BTreeSet<String> {
    let of_part = |(name, ports, endpoints): &Part| {
        let number = name.trim_start_matches("ep").to_owned();
        let served = ports.iter().filter(|_| !endpoints.is_empty());
        let served = served.map(|port| port.trim_end_matches("/UDP"));
        served
            .map(|port| format!("10.96.1.{number}:{port}"))
            .collect::<Vec<_>>()
    };
    parts.iter().flat_map(of_part).collect()
}

#[tokio::test(start_paused = true)]
async fn kp_ut_028_a_change_deletes_the_flows_of_endpoints_that_left_and_those_before_the_first_endpoint()
 {
    for Change { name, old, new } in CHANGES {
        let mut fresh = Loop::over(&Shared::default());
        fresh.start(objects(new)).await;
        let mut agent = Loop::over(&Shared::default());
        agent.start(objects(old)).await;
        agent.settle(1_000).await;
        agent.journal();
        let wanted: BTreeMap<_, _> = objects(new).into_iter().map(|it| (it.key(), it)).collect();
        for object in objects(old) {
            if !wanted.contains_key(&object.key()) {
                agent.delete(&object).await;
            }
        }
        agent.apply(wanted.into_values()).await;
        agent.settle(1_000).await;
        assert_eq!(agent.save(), fresh.save(), "{name}");
        let journal = agent.journal();
        let deleted: BTreeSet<String> = journal
            .iter()
            .filter_map(|line| line.strip_prefix("forget "))
            .map(str::to_owned)
            .collect();
        let left: BTreeSet<String> = flows(old).difference(&flows(new)).cloned().collect();
        let first = &serving(new) - &serving(old);
        assert_eq!(deleted, &left | &first, "{name}: {journal:?}");
    }
}

/// What the kernel gets after one more start with another Service.
async fn synced(before: Object, scheduler: Scheduler, after: Object) -> Vec<String> {
    let shared = Shared::default();
    Loop::over(&shared).start(vec![before]).await;
    let mut agent = Loop::with(&shared, |config| config.scheduler = scheduler);
    agent.journal();
    agent.start(vec![after]).await;
    let journal = agent.journal().into_iter();
    journal.filter(|line| line.starts_with("ipvsadm")).collect()
}

#[tokio::test(start_paused = true)]
async fn kp_ut_029_an_equal_virtual_server_stays_and_another_is_edited_or_added() {
    let plain = || service("web", "10.96.0.10", TCP);
    let Object::Service(mut sticky) = plain() else {
        unreachable!("a Service was made");
    };
    sticky.session_affinity = Some(10_800);
    let sticky = || Object::Service(sticky.clone());
    assert_eq!(synced(plain(), Scheduler::Wrr, plain()).await, [""; 0]);
    assert_eq!(
        synced(plain(), Scheduler::Wrr, sticky()).await,
        ["ipvsadm -E -t 10.96.0.10:80 -s wrr -p 10800"]
    );
    assert_eq!(
        synced(plain(), Scheduler::Wlc, plain()).await,
        ["ipvsadm -E -t 10.96.0.10:80 -s wlc"]
    );
    let dns = service("dns", "10.96.0.11", &["53/UDP"]);
    let added = synced(plain(), Scheduler::Wrr, dns).await;
    assert!(
        added.contains(&"ipvsadm -A -u 10.96.0.11:53 -s wrr".to_owned()),
        "{added:?}"
    );
}

/// kube-proxy deletes every virtual server that is outside of `excludeCIDRs`; the agent those of its
/// own.
#[tokio::test(start_paused = true)]
async fn kp_ut_030_to_033_stale_virtual_servers_are_deleted_with_real_servers_and_foreign_ones_stay()
 {
    let shared = Shared::default();
    let six = |name| service(name, "fd00:10:96::a", TCP);
    let stale = [
        service("stale", "10.96.0.11", TCP),
        slice("stale", TCP, &["10.244.1.7@n1"]),
        six("six"),
    ];
    let foreign = service("foreign", "192.0.2.1", TCP);
    let mut before = Loop::over(&shared);
    before
        .start(
            [
                &stale[..],
                &[foreign, slice("foreign", TCP, &["10.244.1.8@n1"])],
            ]
            .concat(),
        )
        .await;
    shared.0.borrow_mut().record.remove(&key("192.0.2.1"));
    let mut agent = Loop::over(&shared);
    agent.start(web()).await;
    assert_eq!(
        agent.save(),
        [
            "-A -t 10.96.0.10:80 -s wrr",
            "-a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 1",
            "-a -t 10.96.0.10:80 -r 10.244.2.1:80 -m -w 1",
            "-A -t 192.0.2.1:80 -s wrr",
            "-a -t 192.0.2.1:80 -r 10.244.1.8:80 -m -w 1",
        ]
    );
}

/// A Service with both policies, and its endpoints.
fn local(internal: bool, external: bool, endpoints: &[&str]) -> Vec<Object> {
    let Object::Service(mut web) = service("web", "10.96.0.10", TCP) else {
        unreachable!("a Service was made");
    };
    let policy = |is_local| {
        if is_local {
            TrafficPolicy::Local
        } else {
            TrafficPolicy::Cluster
        }
    };
    web.frontends
        .push(Frontend::load_balancer("192.0.2.1".parse().unwrap()));
    web.internal_traffic_policy = policy(internal);
    web.external_traffic_policy = policy(external);
    vec![Object::Service(web), slice("web", TCP, endpoints)]
}

#[tokio::test(start_paused = true)]
async fn kp_ut_047_services_without_local_endpoints_are_counted_by_policy() {
    let here: &[&str] = &["10.244.1.1@n1", "10.244.2.1@n2"];
    let there: &[&str] = &["10.244.2.1@n2"];
    let cases: [(bool, bool, &[&str], &[&str]); 7] = [
        (false, false, there, &[]),
        (true, false, here, &[]),
        (true, false, there, &["internal"]),
        (false, true, here, &[]),
        (false, true, there, &["external"]),
        (true, true, there, &["external", "internal"]),
        (true, true, &[], &[]),
    ];
    let mut agent = Loop::over(&Shared::default());
    agent.start(Vec::new()).await;
    for (internal, external, endpoints, expected) in cases {
        agent.apply(local(internal, external, endpoints)).await;
        let gaps = agent.handle.pulse().without_local.clone();
        let counted = gaps.iter().filter(|(_, services)| **services > 0);
        let counted: Vec<_> = counted
            .map(|((family, policy), count)| (*family, *policy, *count))
            .collect();
        let expected: Vec<_> = expected.iter().map(|policy| ("IPv4", *policy, 1)).collect();
        assert_eq!(counted, expected, "{internal} {external} {endpoints:?}");
    }
}
