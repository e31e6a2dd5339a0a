//! The names, and the shares of lists that can be checked by hand.

use super::*;
use crate::model::Protocol;
use crate::ratio::Ratio;

fn parts(scheduler: Scheduler, weights: &[u32], protocol: Protocol) -> Vec<Ratio> {
    scheduler.shares(weights, protocol, &["10.96.0.10".parse().unwrap()])
}

fn of(parts: &[u64]) -> Vec<Ratio> {
    let all = parts.iter().sum();
    parts.iter().map(|own| Ratio::new(*own, all)).collect()
}

#[test]
fn every_scheduler_has_its_name_and_other_names_are_unknown() {
    for (scheduler, name) in Scheduler::ALL.into_iter().zip(Scheduler::NAMES) {
        assert_eq!(name.parse(), Ok(scheduler));
        assert_eq!(scheduler.to_string(), name);
    }
    let error = "wrrr".parse::<Scheduler>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`wrrr` is not a scheduler; use one of rr, wrr, lc, wlc, fo, ovf, lblc, lblcr, dh, sh, sed, nq, mh, twos"
    );
}

#[test]
fn mh_keeps_six_bits_of_a_weight() {
    // 450 : 1 becomes 56 : 1, because 450 has nine bits and three of them are dropped. Of 4,093 buckets 61 are a round
    // of all; the last 6 go to the head of the list, which are the real servers that entered last.
    assert_eq!(
        parts(Scheduler::Mh, &[450, 1, 1, 1, 1, 1], Protocol::Tcp),
        of(&[67 * 56 + 1, 68, 68, 68, 68, 68])
    );
    assert_eq!(
        parts(Scheduler::Mh, &[65_535, 1], Protocol::Tcp),
        of(&[63 * 63 + 60, 64])
    );
}

#[test]
fn sh_gives_a_bucket_to_a_draining_server_and_its_clients_to_the_next() {
    assert_eq!(
        parts(Scheduler::Sh, &[1, 1, 1], Protocol::Tcp),
        of(&[85, 85, 86])
    );
    let shares = parts(Scheduler::Sh, &[2, 0, 1], Protocol::Tcp);
    assert_eq!(shares[1], Ratio::ZERO);
    assert_eq!(shares[0] + shares[2], Ratio::ONE);
}

#[test]
fn sh_takes_the_buckets_of_those_that_drain_from_the_oldest() {
    let buckets = |weights: &[u32]| -> Vec<f64> {
        let shares = parts(Scheduler::Sh, weights, Protocol::Tcp);
        let part = |share: &Ratio| share.to_f64() * 256.0;
        shares.iter().map(part).collect()
    };
    assert_eq!(buckets(&[2, 10, 244]), [2.0, 10.0, 244.0]);
    // The two draining real servers have one bucket each, those of the oldest.
    let drained = buckets(&[2, 10, 244, 0, 0]);
    assert_eq!((drained[0], drained[3], drained[4]), (0.0, 0.0, 0.0));
    assert!((drained[1] - 10.0).abs() <= 2.0, "{drained:?}");
    // If they are older than all others, they take none of their buckets.
    assert_eq!(buckets(&[0, 0, 2, 10, 244])[2..], [2.0, 10.0, 244.0]);
}

#[test]
fn one_real_server_takes_all_under_some_schedulers() {
    for (scheduler, protocol, weights, taken) in [
        (Scheduler::Fo, Protocol::Tcp, [1, 3, 3], 2),
        (Scheduler::Ovf, Protocol::Tcp, [3, 1, 0], 0),
        (Scheduler::Sed, Protocol::Udp, [1, 3, 1], 1),
        (Scheduler::Nq, Protocol::Udp, [1, 3, 0], 1),
        (Scheduler::Lblc, Protocol::Tcp, [1, 3, 0], 1),
    ] {
        let shares = parts(scheduler, &weights, protocol);
        assert_eq!(shares[taken], Ratio::ONE, "{scheduler}");
    }
    let shares = parts(Scheduler::Dh, &[1; 5], Protocol::Tcp);
    assert_eq!(
        shares.iter().filter(|share| **share == Ratio::ONE).count(),
        1
    );
    assert_eq!(
        parts(Scheduler::Rr, &[7, 0, 1], Protocol::Tcp),
        of(&[1, 0, 1])
    );
    assert_eq!(
        parts(Scheduler::Mh, &[0, 0], Protocol::Tcp),
        [Ratio::ZERO; 2]
    );
}

#[test]
fn the_clients_of_a_firewall_mark_count_at_each_of_its_addresses_under_dh() {
    let addresses = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    let of =
        |addresses: &[std::net::IpAddr]| Scheduler::Dh.shares(&[1; 5], Protocol::Tcp, addresses);
    let half = Ratio::new(1, 2);
    let singles = of(&addresses[..1]).into_iter().zip(of(&addresses[1..]));
    let expected: Vec<Ratio> = singles
        .map(|(one, other)| one * half + other * half)
        .collect();
    assert_eq!(of(&addresses), expected);
}
