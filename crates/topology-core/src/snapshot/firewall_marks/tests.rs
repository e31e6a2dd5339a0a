//! Tests of the allocation of firewall marks.

use super::*;
use crate::model::{Frontend, ServicePort, TrafficPolicy};

fn port(name: &str) -> MarkedPort {
    MarkedPort {
        service: ObjectName::new("t", name),
        port_name: "http".into(),
        protocol: Protocol::Tcp,
    }
}

fn service(name: &str) -> Service {
    let ports = vec![ServicePort::new(
        "http",
        Protocol::Tcp,
        80.try_into().unwrap(),
    )];
    let frontends = vec![Frontend::load_balancer("192.0.2.1".parse().unwrap())];
    Service {
        external_traffic_policy: TrafficPolicy::Local,
        ..Service::new(ObjectName::new("t", name), frontends, ports)
    }
}

#[test]
fn d7_marks_are_within_the_mask_and_differ_from_marks_of_upper_or_lower_bits_alone() {
    let mut marks = FirewallMarks::default();
    for number in 0..1_000 {
        marks.replace(None, Some(&service(&format!("s{number}"))));
    }
    let all: Vec<u32> = marks.iter().map(|(_, mark)| mark).collect();
    assert_eq!(all.len(), 1_000);
    assert_eq!(all.iter().collect::<FxHashSet<_>>().len(), 1_000);
    assert!(all.iter().all(|mark| mark & !DEFAULT_MARK_MASK == 0));
    assert!(all.iter().all(|mark| mark & 0x2000_0001 == 0x2000_0001));
}

#[test]
fn a_mask_has_two_bits_or_more_and_survives_its_text() {
    for text in ["0x20ffffff", "0x3", "0xffffffff", "0x80000001"] {
        let mask: MarkMask = text.parse().unwrap();
        assert_eq!(mask.to_string(), text);
    }
    assert_eq!(MarkMask::default().to_string(), "0x20ffffff");
    assert_eq!("0XFF".parse::<MarkMask>().unwrap().marks(), 64);
    assert_eq!("0x3".parse::<MarkMask>().unwrap().marks(), 1);
    let error = |text: &str| text.parse::<MarkMask>().unwrap_err();
    for text in ["0x0", "0x4000"] {
        assert!(error(text).contains("less than two bits"), "{text}");
    }
    for text in ["", "0x", "0x+3", "255", "0x1ffffffff", "0xfg"] {
        assert!(
            error(text).contains("write for example 0x20ffffff"),
            "{text}"
        );
    }
}

#[test]
fn a_full_mask_gives_no_mark_until_one_is_released() {
    let mut marks = FirewallMarks::new(MarkMask::new(0b1101).unwrap());
    for name in ["a", "b", "c"] {
        marks.replace(None, Some(&service(name)));
    }
    assert_eq!(marks.of(&port("a")).map(|mark| mark & !0b100), Some(0b1001));
    assert_eq!(marks.iter().count(), 2);
    assert_eq!(marks.of(&port("c")), None);
    assert_eq!(marks.free_released(|_| false), []);
    let before = marks.of(&port("a"));
    marks.replace(Some(&service("a")), None);
    assert_eq!(
        marks.of(&port("c")),
        None,
        "the kernel may still use the mark"
    );
    marks.replace(None, Some(&service("a")));
    assert_eq!(marks.of(&port("a")), before);
    marks.replace(Some(&service("a")), None);
    assert_eq!(
        marks.free_released(|_| true),
        [],
        "the kernel uses the mark"
    );
    assert_eq!(marks.free_released(|_| false), [], "it is not reviewed");
    let a = ObjectName::new("t", "a");
    assert_eq!(marks.review_released(&a), [before.unwrap()]);
    assert_eq!(marks.review_released(&ObjectName::new("t", "")), [0_u32; 0]);
    assert_eq!(marks.iter().count(), 2, "it stays on disk");
    marks.take_changed();
    let c = ObjectName::new("t", "c");
    assert_eq!(marks.free_released(|_| false), [c]);
    assert_eq!(marks.of(&port("c")), before);
    assert_eq!(
        marks.take_changed(),
        [(port("a"), None), (port("c"), before)]
    );
    marks.replace(None, Some(&service("a")));
    marks.replace(Some(&service("a")), None);
    marks.replace(Some(&service("b")), None);
    let none: [ObjectName; 0] = [];
    assert_eq!(
        marks.free_released(|_| false),
        none,
        "a does not wait any more"
    );
    assert_eq!(marks.iter().count(), 1);
}

#[test]
fn a_mark_that_is_released_before_it_is_written_is_written_while_the_kernel_may_use_it() {
    let mut marks = FirewallMarks::default();
    marks.replace(None, Some(&service("a")));
    marks.replace(Some(&service("a")), None);
    let written = marks.take_changed();
    assert!(matches!(written[..], [(_, Some(_))]), "{written:?}");
    marks.review_all_released();
    marks.free_released(|_| false);
    assert_eq!(marks.take_changed(), [(port("a"), None)]);
}

#[test]
fn pain_12_marks_of_other_programs_are_avoided_and_free_when_they_are_gone() {
    let mut marks = FirewallMarks::new(MarkMask::new(0b1101).unwrap());
    marks.replace(None, Some(&service("a")));
    marks.replace(None, Some(&service("c")));
    let [a, c] = ["a", "c"].map(|name| marks.of(&port(name)).unwrap());
    marks.replace(Some(&service("c")), None);
    marks.free_released(|_| false);
    marks.take_changed();
    let service_a = ObjectName::new("t", "a");
    assert_eq!(marks.avoid([a, 0x4000].into_iter()), [service_a]);
    assert_eq!(marks.of(&port("a")), Some(c), "the other mark");
    assert_eq!(marks.take_changed(), [(port("a"), Some(c))]);
    assert_eq!(marks.avoid([a, 0x4000].into_iter()), [], "nothing is new");
    marks.replace(None, Some(&service("b")));
    assert_eq!(marks.of(&port("b")), None, "no mark is left");
    assert_eq!(marks.avoid(std::iter::empty()), [ObjectName::new("t", "b")]);
    assert_eq!(marks.of(&port("b")), Some(a));
    let both = [a, c].into_iter();
    assert_eq!(marks.avoid(both).len(), 2);
    assert_eq!(marks.take_changed(), [(port("a"), None), (port("b"), None)]);
}

#[test]
fn pain_12_a_released_mark_that_another_program_took_is_not_given_out_again() {
    let mut marks = FirewallMarks::default();
    marks.replace(None, Some(&service("a")));
    let taken = marks.of(&port("a")).unwrap();
    marks.replace(Some(&service("a")), None);
    // Our virtual server of one family drains, and the other program's is of the other family.
    marks.free_released(|_| true);
    assert_eq!(marks.avoid([taken].into_iter()), []);
    marks.replace(None, Some(&service("a")));
    let other = marks.of(&port("a")).unwrap();
    assert_ne!(other, taken);
    let a = ObjectName::new("t", "a");
    assert_eq!(marks.review_released(&a), [taken], "it still drains");
    marks.free_released(|_| true);
    assert_eq!(marks.take_changed(), [(port("a"), Some(other))]);
    assert_eq!(marks.iter().collect::<Vec<_>>(), [(&port("a"), other)]);
    marks.replace(Some(&service("a")), None);
    let mut both = marks.review_released(&a);
    both.sort_unstable_by_key(|mark| *mark != taken);
    assert_eq!(both, [taken, other]);
    assert_eq!(marks.avoid(std::iter::empty()), []);
    marks.free_released(|mark| mark == other);
    assert_eq!(marks.review_released(&a), [other]);
    marks.replace(None, Some(&service("a")));
    assert_eq!(marks.of(&port("a")), Some(other));
}

#[test]
fn a_restored_mark_is_kept_unless_it_does_not_fit_or_nobody_needs_it() {
    let mut marks = FirewallMarks::default();
    marks.restore(port("a"), 0x2000_0001);
    marks.restore(port("b"), 0x2000_0001);
    marks.restore(port("c"), 0x4000_0001);
    marks.restore(port("gone"), 0x2000_0003);
    let services = ["a", "b", "c"].map(service);
    for service in &services {
        marks.replace(None, Some(service));
    }
    assert_eq!(marks.of(&port("a")), Some(0x2000_0001));
    assert_ne!(marks.of(&port("b")), Some(0x2000_0001));
    assert_ne!(marks.of(&port("c")), Some(0x4000_0001));
    marks.retain(&services.iter().flat_map(marked_ports).collect());
    assert_eq!(marks.of(&port("gone")), None);
    marks.free_released(|_| false);
    assert_eq!(marks.iter().count(), 3);
}
