//! Plans against a simulated kernel: order, adoption, draining, ownership, failures.

use topology_core::mirror::{Mirror, StepOutcome, Trust};
use topology_core::model::{Family, Protocol};
use topology_core::plan::{DiffOptions, Plan, Step, diff};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

use crate::kernel::{Kernel, OPTIONS, POLL, TIMEOUT, settle};

fn key(protocol: Protocol) -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol,
        address: "10.96.0.10".parse().unwrap(),
        port: 80,
    }
}

/// A virtual server with real servers `10.244.0.N:8080` of some weights.
fn server(protocol: Protocol, reals: &[(u8, u32)]) -> VirtualServer {
    let reals = reals.iter().map(|(number, weight)| RealServer {
        address: [10, 244, 0, *number].into(),
        port: 8080,
        weight: *weight,
    });
    VirtualServer {
        key: key(protocol),
        scheduler: Scheduler::Wrr,
        persistence: None,
        real_servers: reals.collect(),
    }
}

fn tcp(reals: &[(u8, u32)]) -> VirtualServer {
    server(Protocol::Tcp, reals)
}

/// A kernel in the desired state, and a mirror that knows it.
fn holding(server: &VirtualServer) -> (Kernel, Mirror) {
    let (mut kernel, mut mirror) = (Kernel::default(), Mirror::new([], TIMEOUT));
    let plan = diff(Some(server), &mirror, &server.key, 0, &OPTIONS);
    kernel.apply(&plan, &mut mirror, 0, |_| None);
    (kernel, mirror)
}

fn text(plan: &Plan) -> String {
    let lines: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn plan(desired: Option<&VirtualServer>, mirror: &Mirror, now: u64) -> Plan {
    let key = desired.map_or(key(Protocol::Tcp), |desired| desired.key);
    diff(desired, mirror, &key, now, &OPTIONS)
}

fn connect(kernel: &mut Kernel, number: u8, connections: u64) {
    let held = kernel.servers.get_mut(&key(Protocol::Tcp)).unwrap();
    held.reals
        .get_mut(&([10, 244, 0, number].into(), 8080))
        .unwrap()
        .connections = connections;
}

#[test]
fn a_new_virtual_server_precedes_its_real_servers() {
    let mut desired = tcp(&[(2, 96), (1, 6)]);
    desired.persistence = Some(10_800);
    insta::assert_snapshot!(text(&plan(Some(&desired), &Mirror::new([], TIMEOUT), 0)), @r"
    ipvsadm -A -t 10.96.0.10:80 -s wrr -p 10800
    ipvsadm -a -t 10.96.0.10:80 -r 10.244.0.2:8080 -m -w 96
    ipvsadm -a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 6
    ");
}

#[test]
fn a_change_adds_raises_lowers_and_drains_in_this_order() {
    let (_, mirror) = holding(&tcp(&[(1, 5), (2, 5), (3, 5), (4, 5)]));
    let mut desired = tcp(&[(1, 5), (2, 1), (3, 9), (5, 7)]);
    desired.scheduler = Scheduler::Wlc;
    let plan = plan(Some(&desired), &mirror, 0);
    insta::assert_snapshot!(text(&plan), @r"
    ipvsadm -E -t 10.96.0.10:80 -s wlc
    ipvsadm -a -t 10.96.0.10:80 -r 10.244.0.5:8080 -m -w 7
    ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.3:8080 -m -w 9
    ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.2:8080 -m -w 1
    ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.4:8080 -m -w 0
    ");
    assert!(plan.wake_at.is_some());
}

#[test]
fn d8_a_correct_kernel_is_adopted_without_a_step() {
    let desired = tcp(&[(1, 96), (2, 6)]);
    let (kernel, _) = holding(&desired);
    let mut fresh = Mirror::new([], TIMEOUT);
    kernel.read_all(&mut fresh, 0);
    assert_eq!(plan(Some(&desired), &fresh, 0), Plan::default());
}

#[test]
fn kp_ut_010_weights_that_differ_at_start_are_edited() {
    let (kernel, _) = holding(&tcp(&[(1, 0), (2, 1)]));
    let mut fresh = Mirror::new([], TIMEOUT);
    kernel.read_all(&mut fresh, 0);
    let plan = plan(Some(&tcp(&[(1, 1), (2, 1)])), &fresh, 0);
    assert_eq!(
        text(&plan),
        "ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1"
    );
}

#[test]
fn kp_vs_24_scheduler_persistence_and_anything_else_is_edited_in_place() {
    let desired = tcp(&[(1, 1)]);
    let (mut kernel, _) = holding(&desired);
    for change in 0..3 {
        let held = kernel.servers.get_mut(&desired.key).unwrap();
        match change {
            0 => held.scheduler = "rr".into(),
            1 => held.persistence = Some(60),
            _ => held.plain = false,
        }
        let mut mirror = Mirror::new([], TIMEOUT);
        kernel.read_all(&mut mirror, 0);
        let plan = plan(Some(&desired), &mirror, 0);
        assert_eq!(text(&plan), "ipvsadm -E -t 10.96.0.10:80 -s wrr");
        kernel.apply(&plan, &mut mirror, 0, |_| None);
        assert!(kernel.holds(&desired));
    }
}

#[test]
fn a_real_server_that_is_not_masqueraded_is_edited_in_place() {
    let desired = tcp(&[(1, 1)]);
    let (mut kernel, _) = holding(&desired);
    let held = kernel.servers.get_mut(&desired.key).unwrap();
    held.reals.values_mut().for_each(|real| real.plain = false);
    let mut mirror = Mirror::new([], TIMEOUT);
    kernel.read_all(&mut mirror, 0);
    let plan = plan(Some(&desired), &mirror, 0);
    assert_eq!(
        text(&plan),
        "ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1"
    );
    kernel.apply(&plan, &mut mirror, 0, |_| None);
    assert!(kernel.holds(&desired));
}

#[test]
fn kp_ut_061_a_leaving_real_server_with_connections_drains_until_they_end() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 10);
    let desired = tcp(&[(1, 1)]);
    let first = plan(Some(&desired), &mirror, 1_000);
    assert_eq!(
        text(&first),
        "ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.2:8080 -m -w 0"
    );
    kernel.apply(&first, &mut mirror, 1_000, |_| None);
    kernel.read_into(&mut mirror, &desired.key, 6_000);
    let second = plan(Some(&desired), &mirror, 6_000);
    assert_eq!(
        (text(&second).as_str(), second.wake_at),
        ("", Some(6_000 + POLL))
    );
    connect(&mut kernel, 2, 0);
    kernel.read_into(&mut mirror, &desired.key, 11_000);
    let third = plan(Some(&desired), &mirror, 11_000);
    assert_eq!(
        text(&third),
        "ipvsadm -d -t 10.96.0.10:80 -r 10.244.0.2:8080"
    );
    kernel.apply(&third, &mut mirror, 11_000, |_| None);
    assert!(kernel.holds(&desired));
    assert_eq!(
        (mirror.draining(), plan(Some(&desired), &mirror, 11_000)),
        (0, Plan::default())
    );
}

#[test]
fn pain_04_a_drain_ends_at_its_deadline_with_any_connections() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 10);
    let desired = tcp(&[(1, 1)]);
    let end = settle(&mut kernel, &mut mirror, Some(&desired), &desired.key, 0);
    assert_eq!(end, TIMEOUT);
    assert!(kernel.holds(&desired));
}

#[test]
fn a_drain_is_checked_at_its_end_even_with_a_long_interval() {
    let (_, mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    let desired = tcp(&[(1, 1)]);
    let seldom = DiffOptions {
        drain_poll: 2 * TIMEOUT,
        ..OPTIONS
    };
    let plan = diff(Some(&desired), &mirror, &desired.key, 1_000, &seldom);
    assert_eq!(plan.wake_at, Some(1_000 + TIMEOUT));
}

#[test]
fn t04_draining_survives_a_restart_with_a_new_deadline() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 10);
    let desired = tcp(&[(1, 1)]);
    let drain = plan(Some(&desired), &mirror, 0);
    kernel.apply(&drain, &mut mirror, 0, |_| None);
    // Another process, with another clock.
    let mut mirror = Mirror::new([desired.key], TIMEOUT);
    kernel.read_all(&mut mirror, 500);
    assert_eq!(plan(Some(&desired), &mirror, 500).steps, []);
    assert_eq!(mirror.draining(), 1);
    let end = settle(&mut kernel, &mut mirror, Some(&desired), &desired.key, 500);
    assert_eq!(end, 500 + TIMEOUT);
    assert!(kernel.holds(&desired));
}

#[test]
fn reading_again_does_not_prolong_a_drain() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 10);
    let desired = tcp(&[(1, 1)]);
    kernel.apply(&plan(Some(&desired), &mirror, 0), &mut mirror, 0, |_| None);
    for now in [10_000, 20_000, 29_999] {
        kernel.read_into(&mut mirror, &desired.key, now);
        assert_eq!(plan(Some(&desired), &mirror, now).steps, []);
    }
    assert_eq!(plan(Some(&desired), &mirror, TIMEOUT).steps.len(), 1);
}

#[test]
fn kp_gt_04_a_returning_real_server_gets_its_weight_back_by_an_edit() {
    let both = tcp(&[(1, 1), (2, 1)]);
    let (mut kernel, mut mirror) = holding(&both);
    connect(&mut kernel, 2, 10);
    let one = tcp(&[(1, 1)]);
    kernel.apply(&plan(Some(&one), &mirror, 0), &mut mirror, 0, |_| None);
    let back = plan(Some(&both), &mirror, 1_000);
    assert_eq!(
        text(&back),
        "ipvsadm -e -t 10.96.0.10:80 -r 10.244.0.2:8080 -m -w 1"
    );
    kernel.apply(&back, &mut mirror, 1_000, |_| None);
    assert_eq!(mirror.draining(), 0);
    // It leaves again: its drain time starts again.
    kernel.apply(
        &plan(Some(&one), &mirror, 50_000),
        &mut mirror,
        50_000,
        |_| None,
    );
    kernel.read_into(&mut mirror, &one.key, 60_000);
    assert_eq!(plan(Some(&one), &mirror, 60_000).steps, []);
}

#[test]
fn connections_counted_before_the_weight_fell_do_not_end_a_drain() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    kernel.read_all(&mut mirror, 0);
    let desired = tcp(&[(1, 1)]);
    kernel.apply(&plan(Some(&desired), &mirror, 0), &mut mirror, 0, |_| None);
    // Without a read since then, its connections are unknown.
    let next = plan(Some(&desired), &mirror, 1);
    assert_eq!((next.steps.len(), next.wake_at), (0, Some(1 + POLL)));
}

#[test]
fn kp_ut_063_pain_01_a_udp_real_server_is_deleted_at_once_with_its_flows() {
    let (mut kernel, mut mirror) = holding(&server(Protocol::Udp, &[(1, 1), (2, 1)]));
    let desired = server(Protocol::Udp, &[(1, 1), (3, 1)]);
    let change = plan(Some(&desired), &mirror, 0);
    insta::assert_snapshot!(text(&change), @r"
    ipvsadm -a -u 10.96.0.10:80 -r 10.244.0.3:8080 -m -w 1
    ipvsadm -d -u 10.96.0.10:80 -r 10.244.0.2:8080
    conntrack -D -p udp --orig-dst 10.96.0.10 --orig-port-dst 80 --reply-src 10.244.0.2 --reply-port-src 8080
    ");
    kernel.apply(&change, &mut mirror, 0, |_| None);
    assert_eq!(plan(Some(&desired), &mirror, 0), Plan::default());
}

#[test]
fn pain_01_failed_flow_deletions_are_retried() {
    let (mut kernel, mut mirror) = holding(&server(Protocol::Udp, &[(1, 1), (2, 1)]));
    let desired = server(Protocol::Udp, &[(1, 1)]);
    let change = plan(Some(&desired), &mirror, 0);
    kernel.apply(&change, &mut mirror, 0, |index| {
        (index == 1).then_some(StepOutcome::Failed)
    });
    assert_eq!(mirror.trust(&desired.key), Trust::Unknown);
    kernel.read_into(&mut mirror, &desired.key, 1_000);
    let again = plan(Some(&desired), &mirror, 1_000);
    assert_eq!(again.steps, [change.steps[1].clone()]);
    // If the real server returns, its flows are valid again.
    let both = server(Protocol::Udp, &[(1, 1), (2, 1)]);
    assert!(!text(&plan(Some(&both), &mirror, 1_000)).contains("conntrack"));
    kernel.apply(&again, &mut mirror, 1_000, |_| None);
    assert_eq!(plan(Some(&desired), &mirror, 1_000), Plan::default());
}

#[test]
fn kp_gt_06_an_unneeded_virtual_server_is_deleted_at_once() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 10);
    let removal = plan(None, &mirror, 0);
    assert_eq!(text(&removal), "ipvsadm -D -t 10.96.0.10:80");
    kernel.apply(&removal, &mut mirror, 0, |_| None);
    assert_eq!((kernel.servers.len(), mirror.keys().count()), (0, 0));
    assert!(
        !mirror.is_ours(&key(Protocol::Tcp)),
        "and is off the record"
    );
}

#[test]
fn the_flows_of_a_udp_virtual_server_are_deleted_after_it() {
    let (mut kernel, mut mirror) = holding(&server(Protocol::Udp, &[(1, 1), (2, 1)]));
    let removal = diff(None, &mirror, &key(Protocol::Udp), 0, &OPTIONS);
    assert!(matches!(
        removal.steps[..],
        [
            Step::DeleteServer { .. },
            Step::DeleteFlows { .. },
            Step::DeleteFlows { .. }
        ]
    ));
    // The process stops in the middle of the plan; the rest is planned again.
    mirror.commit(&removal.steps[0], kernel.execute(&removal.steps[0]));
    let rest = diff(None, &mirror, &key(Protocol::Udp), 0, &OPTIONS);
    assert_eq!(rest.steps, removal.steps[1..]);
}

#[test]
fn kp_gt_01_the_real_servers_of_a_mark_drain_unless_its_port_is_udp() {
    let of_mark = |reals: &[(u8, u32)]| VirtualServer {
        key: VirtualServerKey::FirewallMark {
            family: Family::V4,
            mark: 7,
        },
        ..tcp(reals)
    };
    let (_, mut mirror) = holding(&of_mark(&[(1, 1), (2, 1)]));
    let desired = of_mark(&[(1, 1)]);
    let change = |mirror: &Mirror| text(&plan(Some(&desired), mirror, 0));
    let drains = "ipvsadm -e -f 7 -r 10.244.0.2:8080 -m -w 0";
    assert_eq!(change(&mirror).trim_end(), drains);
    mirror.set_mark_protocol(7, Protocol::Udp);
    insta::assert_snapshot!(change(&mirror), @r"
    ipvsadm -d -f 7 -r 10.244.0.2:8080
    conntrack -D -p udp --reply-src 10.244.0.2 --reply-port-src 8080
    ");
    mirror.set_mark_protocol(7, Protocol::Sctp);
    assert_eq!(change(&mirror).trim_end(), drains);
}

#[test]
fn pain_12_a_foreign_virtual_server_is_never_touched() {
    let (kernel, _) = holding(&tcp(&[(1, 0), (2, 1)]));
    let mut mirror = Mirror::new([], TIMEOUT);
    kernel.read_all(&mut mirror, 0);
    assert!(!mirror.is_ours(&key(Protocol::Tcp)));
    assert_eq!(plan(None, &mirror, 0), Plan::default());
    assert_eq!(plan(None, &mirror, 10 * TIMEOUT), Plan::default());
    assert_eq!(
        mirror.draining(),
        0,
        "what others set to 0 is not our drain"
    );
    let wary = DiffOptions {
        adopt: false,
        ..OPTIONS
    };
    let desired = tcp(&[(9, 9)]);
    assert_eq!(
        diff(Some(&desired), &mirror, &desired.key, 0, &wary),
        Plan::default()
    );
}

#[test]
fn an_owned_virtual_server_is_deleted_when_it_is_unneeded() {
    let (kernel, _) = holding(&tcp(&[(1, 1)]));
    let mut mirror = Mirror::new([key(Protocol::Tcp)], TIMEOUT);
    kernel.read_all(&mut mirror, 0);
    assert_eq!(text(&plan(None, &mirror, 0)), "ipvsadm -D -t 10.96.0.10:80");
}

#[test]
fn d8_a_failed_step_makes_its_key_unknown_until_it_is_read() {
    for fault in [
        StepOutcome::Failed,
        StepOutcome::Unknown,
        StepOutcome::AlreadyExists,
        StepOutcome::Missing,
    ] {
        let desired = tcp(&[(1, 1), (2, 1)]);
        let (mut kernel, mut mirror) = (Kernel::default(), Mirror::new([], TIMEOUT));
        let first = plan(Some(&desired), &mirror, 0);
        kernel.apply(&first, &mut mirror, 0, |index| {
            (index == 1).then_some(fault)
        });
        assert_eq!(mirror.trust(&desired.key), Trust::Unknown, "{fault:?}");
        assert_eq!(
            plan(Some(&desired), &mirror, 0),
            Plan::default(),
            "{fault:?}"
        );
        kernel.read_into(&mut mirror, &desired.key, 1);
        assert_eq!(mirror.trust(&desired.key), Trust::Known);
        kernel.apply(&plan(Some(&desired), &mirror, 1), &mut mirror, 1, |_| None);
        assert!(kernel.holds(&desired), "{fault:?}");
    }
}

#[test]
fn deleting_a_missing_object_counts_as_done() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1)]));
    kernel.servers.clear();
    let removal = plan(None, &mirror, 0);
    kernel.apply(&removal, &mut mirror, 0, |_| None);
    assert_eq!(mirror.trust(&key(Protocol::Tcp)), Trust::Known);
    assert_eq!(mirror.keys().count(), 0);
}

#[test]
fn trust_is_lost_for_one_key_only() {
    let mut mirror = Mirror::new([], TIMEOUT);
    mirror.mark_unknown(key(Protocol::Tcp));
    assert_eq!(mirror.trust(&key(Protocol::Udp)), Trust::Known);
    let other = server(Protocol::Udp, &[(1, 1)]);
    assert_eq!(plan(Some(&other), &mirror, 0).steps.len(), 2);
}

/// Options in which the real server of that number belongs to an endpoint that exists and is not chosen.
fn unchosen(real: &[(std::net::IpAddr, u16)]) -> DiffOptions<'_> {
    DiffOptions {
        unchosen: real,
        ..OPTIONS
    }
}

#[test]
fn d9_a_healthy_endpoint_that_is_no_longer_chosen_keeps_its_connections_without_a_deadline() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 1);
    let desired = tcp(&[(1, 1)]);
    let far = [([10, 244, 0, 2].into(), 8080)];
    for now in [0, TIMEOUT, 1_000 * TIMEOUT] {
        let plan = diff(Some(&desired), &mirror, &desired.key, now, &unchosen(&far));
        assert_eq!(plan.steps.len(), usize::from(now == 0), "{now}");
        assert_eq!(plan.wake_at, Some(now + 2 * POLL));
        kernel.apply(&plan, &mut mirror, now, |_| None);
        kernel.read_into(&mut mirror, &desired.key, now);
    }
    connect(&mut kernel, 2, 0);
    let now = 2_000 * TIMEOUT;
    kernel.read_into(&mut mirror, &desired.key, now);
    let plan = diff(Some(&desired), &mirror, &desired.key, now, &unchosen(&far));
    assert_eq!(
        text(&plan),
        "ipvsadm -d -t 10.96.0.10:80 -r 10.244.0.2:8080"
    );
}

#[test]
fn d9_a_deadline_begins_when_the_endpoint_goes_away_and_ends_when_it_does_not() {
    let (mut kernel, mut mirror) = holding(&tcp(&[(1, 1), (2, 1)]));
    connect(&mut kernel, 2, 1);
    let desired = tcp(&[(1, 1)]);
    let far = [([10, 244, 0, 2].into(), 8080)];
    let mut at = |now: u64, options: &DiffOptions<'_>| {
        let plan = diff(Some(&desired), &mirror, &desired.key, now, options);
        kernel.apply(&plan, &mut mirror, now, |_| None);
        kernel.read_into(&mut mirror, &desired.key, now);
        let drain = mirror.drain(&desired.key, far[0].0, 8080);
        drain.map(|drain| drain.until)
    };
    let (waits, goes) = (unchosen(&far), OPTIONS);
    assert_eq!(at(0, &waits), Some(None));
    let late = 10 * TIMEOUT;
    assert_eq!(at(late, &goes), Some(Some(late + TIMEOUT)));
    assert_eq!(at(late + 1, &goes), Some(Some(late + TIMEOUT)));
    assert_eq!(at(late + 2, &waits), Some(None), "it does not terminate");
    let later = 20 * TIMEOUT;
    assert_eq!(at(later, &goes), Some(Some(later + TIMEOUT)));
    assert_eq!(at(later + TIMEOUT, &goes), None, "deleted at its deadline");
}
