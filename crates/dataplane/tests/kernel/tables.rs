//! Our tables on a real kernel: written by nft, changed over netlink, and read by the next agent.

use std::net::IpAddr;
use std::process::Command;

use dataplane::crash_point::CrashPoint;
use dataplane::nftables::{
    DesiredTables, Element, ElementDelta, Nft, SetElement, SetId, TablesChange,
};
use topology_core::model::{Protocol, parse_range};

/// Elements that change one by one, in nft's notation.
struct Case {
    set: &'static str,
    text: String,
    element: SetElement,
}

pub(crate) fn nft(arguments: &[&str]) -> String {
    let output = Command::new("nft").args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nft {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes the tables, as the agent does at its start.
pub(crate) async fn write(tables: &DesiredTables) -> Nft {
    let mut nft = Nft::open().unwrap();
    assert_eq!(set(&mut nft, tables).await, TablesChange::Written);
    nft
}

/// Writes the tables, and waits as long as that takes.
async fn set(nft: &mut Nft, tables: &DesiredTables) -> TablesChange {
    let never = CrashPoint::new(None);
    let change = nft.set(tables, &never).await.unwrap();
    if change != TablesChange::Pending {
        return change;
    }
    while nft.wait_job(&never).await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    TablesChange::Written
}

/// What the next agent has to write.
async fn restart(tables: &DesiredTables) -> TablesChange {
    let mut nft = Nft::open().unwrap();
    observe(&mut nft).await;
    set(&mut nft, tables).await
}

/// Reads the tables, unless they are known to be unchanged.
async fn observe(nft: &mut Nft) {
    nft.begin_observe().await;
    while nft.wait_job(&CrashPoint::new(None)).await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn apply(nft: &mut Nft, delta: &ElementDelta) -> bool {
    assert!(nft.can_apply_elements(delta), "{delta:?}");
    let applied = nft.apply_elements(delta, &CrashPoint::new(None)).await;
    applied.unwrap()
}

fn added(elements: impl IntoIterator<Item = SetElement>) -> ElementDelta {
    ElementDelta {
        added: elements.into_iter().collect(),
        ..ElementDelta::default()
    }
}

fn removed(elements: impl IntoIterator<Item = SetElement>) -> ElementDelta {
    ElementDelta {
        removed: elements.into_iter().collect(),
        ..ElementDelta::default()
    }
}

fn range(text: &str) -> Element {
    Element::Range(parse_range(text).unwrap())
}

pub(crate) fn listener(ip: &str) -> Element {
    Element::Listener(ip.parse().unwrap(), Protocol::Tcp, 80)
}

pub(crate) fn source_range(ip: &str, range: &str) -> Element {
    let range = parse_range(range).unwrap();
    Element::SourceRange(ip.parse().unwrap(), Protocol::Tcp, 80, range)
}

pub(crate) fn mark(ip: &str, mark: u32) -> Element {
    Element::Mark(ip.parse().unwrap(), Protocol::Tcp, 80, mark)
}

/// Elements of both families in every set.
fn full() -> DesiredTables {
    let address = |ip: &str| Element::Address(ip.parse().unwrap());
    let pair = |ip: &str| Element::Pair(ip.parse().unwrap());
    let udp = Element::Listener("fd00::9".parse().unwrap(), Protocol::Udp, 53);
    let sctp = Element::Listener("192.0.2.9".parse().unwrap(), Protocol::Sctp, 9);
    DesiredTables::default()
        .with(
            SetId::Cidrs,
            ["10.96.0.0/12", "fd00:10:96::/112"].map(range),
        )
        .with(SetId::Vips, ["203.0.113.7", "2001:db8::7"].map(address))
        .with(SetId::Own, ["10.96.0.53", "fd00:10:96::53"].map(address))
        .with(SetId::Hairpin, ["10.244.1.2", "fd00:10:244::2"].map(pair))
        .with(SetId::Masquerade, [listener("192.0.2.1"), udp, sctp])
        .with(SetId::Silent, ["10.96.0.9", "fd00:10:96::9"].map(listener))
        .with(
            SetId::Inside,
            ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "::1/128"].map(range),
        )
        .with(
            SetId::DropOutside,
            ["203.0.113.8", "2001:db8::8"].map(listener),
        )
        .with(
            SetId::Firewalled,
            ["203.0.113.7", "2001:db8::7"].map(listener),
        )
        .with(SetId::SourceRanges, {
            let v4 = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32"];
            let v6 = [
                "::/0",
                "2001:db8::/32",
                "2001:db8:1::/48",
                "2001:db8::1/128",
            ];
            let v4 = v4.map(|range| source_range("203.0.113.7", range));
            v4.into_iter()
                .chain(v6.map(|range| source_range("2001:db8::7", range)))
        })
        .with(
            SetId::Marks,
            [
                mark("203.0.113.7", 1),
                mark("203.0.113.8", 0xffff_ffff),
                mark("2001:db8::7", 0x1000),
            ],
        )
}

/// An element for each set that has no intervals.
fn cases() -> Vec<Case> {
    let case = |set, text: &str, element: SetElement| Case {
        set,
        text: text.to_owned(),
        element,
    };
    let mut cases = Vec::new();
    for ip in ["198.51.100.5", "2001:db8:5::5"] {
        let address: IpAddr = ip.parse().unwrap();
        let at = format!("{ip} . tcp . 80");
        let network = if address.is_ipv4() {
            "10.7.0.0/16"
        } else {
            "fd07::/32"
        };
        let masked = network.split('/').next().unwrap();
        let pair = (SetId::Hairpin, Element::Pair(address));
        cases.extend([
            case("vips", ip, (SetId::Vips, Element::Address(address))),
            case("own", ip, (SetId::Own, Element::Address(address))),
            case("hairpin", &format!("{ip} . {ip}"), pair),
            case("masqueraded", &at, (SetId::Masquerade, listener(ip))),
            case("silent", &at, (SetId::Silent, listener(ip))),
            case("drop-outside", &at, (SetId::DropOutside, listener(ip))),
            case("firewalled", &at, (SetId::Firewalled, listener(ip))),
            case(
                if address.is_ipv4() {
                    "source-ranges-16"
                } else {
                    "source-ranges-32"
                },
                &format!("{at} . {masked}"),
                (SetId::SourceRanges, source_range(ip, network)),
            ),
            case(
                "marks",
                &format!("{at} : 0x00abcdef"),
                (SetId::Marks, mark(ip, 0x00ab_cdef)),
            ),
        ]);
    }
    cases
}

/// Whether `nft list` shows the element in each table that has the set.
fn is_listed(case: &Case) -> bool {
    let kind = if case.set == "marks" { "map" } else { "set" };
    let is_v4 = !case.text.contains("::");
    let families: &[&str] = match case.set {
        "vips" | "own" if is_v4 => &["ip", "arp"],
        _ if is_v4 => &["ip"],
        _ => &["ip6"],
    };
    let lists = families.iter().map(|family| {
        let list = nft(&["list", kind, family, "ipvs-topo", case.set]);
        list.contains(&case.text)
    });
    let listed: Vec<bool> = lists.collect();
    assert!(listed.windows(2).all(|pair| pair[0] == pair[1]));
    listed[0]
}

#[tokio::test]
async fn a_restart_finds_elements_of_every_set_and_writes_nothing() {
    write(&full()).await;
    assert_eq!(restart(&full()).await, TablesChange::Same);
    nft(&[
        "delete",
        "element",
        "ip",
        "ipvs-topo",
        "marks",
        "{ 203.0.113.7 . tcp . 80 : 1 }",
    ]);
    assert_eq!(
        restart(&full()).await,
        TablesChange::Written,
        "the test can fail"
    );
}

/// They do not fit into one transaction.
#[tokio::test]
async fn new_tables_get_all_their_elements_and_the_next_start_writes_nothing() {
    let nth = |nth: u32| Element::Pair(std::net::Ipv4Addr::from_bits(0x0af4_0000 + nth).into());
    let tables = full().with(SetId::Hairpin, (0..3_000).map(nth));
    assert_eq!(restart(&tables).await, TablesChange::Written);
    for case in cases() {
        assert!(!is_listed(&case), "{} {}", case.set, case.text);
    }
    assert_eq!(restart(&tables).await, TablesChange::Same);

    // A process that was killed after the first transaction.
    nft(&["flush", "set", "ip", "ipvs-topo", "hairpin"]);
    assert_eq!(restart(&tables).await, TablesChange::Written);
    assert_eq!(restart(&tables).await, TablesChange::Same);
}

#[tokio::test]
async fn pain_44_a_foreign_change_of_elements_is_found_and_repaired_in_every_kind_of_set() {
    write(&full()).await;
    for (set, added, removed) in [
        ("ip vips", "198.51.100.5", "203.0.113.7"),
        ("ip6 own", "2001:db8:5::5", "fd00:10:96::53"),
        ("arp vips", "198.51.100.5", "203.0.113.7"),
        (
            "ip hairpin",
            "10.0.0.5 . 10.0.0.5",
            "10.244.1.2 . 10.244.1.2",
        ),
        ("ip silent", "10.96.0.8 . tcp . 80", "10.96.0.9 . tcp . 80"),
        (
            "ip6 masqueraded",
            "fd00::8 . udp . 53",
            "fd00::9 . udp . 53",
        ),
        ("ip cidrs", "172.16.0.0/12", "10.96.0.0/12"),
        ("arp cidrs", "172.16.0.0/12", "10.96.0.0/12"),
        ("ip6 cidrs", "fd01::/16", "fd00:10:96::/112"),
        ("ip inside", "11.0.0.0/8", "192.0.2.1"),
        ("ip6 inside", "::2", "::1"),
        (
            "ip source-ranges-16",
            "203.0.113.7 . tcp . 80 . 10.2.0.0",
            "203.0.113.7 . tcp . 80 . 10.1.0.0",
        ),
        (
            "ip6 source-ranges-128",
            "2001:db8::7 . tcp . 80 . 2001:db8::2",
            "2001:db8::7 . tcp . 80 . 2001:db8::1",
        ),
        (
            "ip marks",
            "203.0.113.9 . tcp . 80 : 1",
            "203.0.113.7 . tcp . 80 : 1",
        ),
        (
            "ip6 marks",
            "2001:db8::8 . tcp . 80 : 1",
            "2001:db8::7 . tcp . 80 : 0x1000",
        ),
    ] {
        let (family, set) = set.split_once(' ').unwrap();
        for (verb, element) in [("add", added), ("delete", removed)] {
            let change = format!("{verb} element {family} ipvs-topo {set} {{ {element} }}");
            nft(&[&change]);
            assert_eq!(restart(&full()).await, TablesChange::Written, "{change}");
        }
    }
    assert_eq!(restart(&full()).await, TablesChange::Same);
}

#[tokio::test]
async fn pain_44_a_mark_with_a_foreign_value_is_found() {
    write(&full()).await;
    for (verb, mark) in [("delete", 1), ("add", 2)] {
        let element = format!("{{ 203.0.113.7 . tcp . 80 : {mark} }}");
        nft(&[verb, "element", "ip", "ipvs-topo", "marks", &element]);
    }
    assert_eq!(restart(&full()).await, TablesChange::Written);
}

#[tokio::test]
async fn a_restart_finds_ranges_that_touch_and_the_first_and_the_last_of_a_family() {
    let tables = full().with(
        SetId::Inside,
        [
            "0.0.0.0/8",
            "172.16.0.0/13",
            "172.24.0.0/13",
            "224.0.0.0/3",
            "::2/127",
            "fe00::/8",
            "ff00::/8",
        ]
        .map(range),
    );
    write(&tables).await;
    assert_eq!(restart(&tables).await, TablesChange::Same);
    for (family, range) in [("ip", "172.24.0.0/13"), ("ip6", "ff00::/8")] {
        let element = format!("{{ {range} }}");
        nft(&["delete", "element", family, "ipvs-topo", "inside", &element]);
        assert_eq!(restart(&tables).await, TablesChange::Written, "{range}");
    }
}

#[tokio::test]
async fn single_elements_of_every_set_are_added_and_removed() {
    let mut nft = write(&full()).await;
    for case in cases() {
        let Case { set, text, element } = &case;
        assert!(!is_listed(&case), "{set}: {text}");
        assert!(apply(&mut nft, &added([*element])).await);
        assert!(is_listed(&case), "{set}: {text}");
        assert!(!apply(&mut nft, &added([*element])).await, "it is there");
        assert!(apply(&mut nft, &removed([*element])).await);
        assert!(!is_listed(&case), "{set}: {text}");
    }
    assert_eq!(restart(&full()).await, TablesChange::Same);
}

#[tokio::test]
async fn elements_of_all_sets_fit_into_one_change() {
    let mut nft = write(&full()).await;
    let many = (0..3_000).map(|nth: u16| {
        let [high, low] = nth.to_be_bytes();
        let ip = IpAddr::from([192, 168, high, low]);
        (
            SetId::Marks,
            Element::Mark(ip, Protocol::Udp, nth, u32::from(nth) + 1),
        )
    });
    let elements = cases().into_iter().map(|case| case.element).chain(many);
    let elements: Vec<SetElement> = elements.collect();
    assert!(apply(&mut nft, &added(elements.clone())).await);
    let all = elements.iter().fold(full(), |tables, (set, element)| {
        tables.with(*set, [*element])
    });
    assert_eq!(restart(&all).await, TablesChange::Same);
    assert!(apply(&mut nft, &removed(elements)).await);
    assert_eq!(restart(&full()).await, TablesChange::Same);
}

#[tokio::test]
async fn a_mark_is_replaced_over_netlink_and_by_nft() {
    let mut nft = write(&full()).await;
    let [old, new, third] = [1, 2, 3].map(|number| (SetId::Marks, mark("203.0.113.7", number)));
    let delta = ElementDelta {
        removed: vec![old],
        ..added([new])
    };
    assert!(apply(&mut nft, &delta).await);
    let held = || self::nft(&["list", "map", "ip", "ipvs-topo", "marks"]);
    assert!(
        held().contains("203.0.113.7 . tcp . 80 : 0x00000002"),
        "{}",
        held()
    );
    // The next change knows what is held.
    let delta = added([third]);
    assert!(apply(&mut nft, &delta).await);
    assert!(
        held().contains("203.0.113.7 . tcp . 80 : 0x00000003"),
        "{}",
        held()
    );
    assert_eq!(set(&mut nft, &full()).await, TablesChange::Written);
    assert_eq!(restart(&full()).await, TablesChange::Same);
}

#[tokio::test]
async fn ranges_and_prefix_lengths_change_without_the_other_sets() {
    let base = DesiredTables::default()
        .with(
            SetId::Cidrs,
            [range("10.96.0.0/12"), range("fd00:10:96::/112")],
        )
        .with(
            SetId::Firewalled,
            [listener("203.0.113.7"), listener("2001:db8::7")],
        );
    let before = base
        .clone()
        .with(
            SetId::Inside,
            [range("10.0.0.0/8"), range("192.168.0.0/24")],
        )
        .with(
            SetId::SourceRanges,
            [source_range("203.0.113.7", "10.0.0.0/8")],
        );
    let after = base
        .with(
            SetId::Inside,
            [
                range("10.1.0.0/16"),
                range("192.168.0.0/16"),
                range("fd00::/8"),
            ],
        )
        .with(
            SetId::SourceRanges,
            [
                source_range("203.0.113.7", "10.0.0.0/9"),
                source_range("2001:db8::7", "fd00::/8"),
            ],
        );
    let mut nft = write(&before).await;
    for tables in [&after, &before, &after] {
        assert_eq!(set(&mut nft, tables).await, TablesChange::Written);
        assert_eq!(set(&mut nft, tables).await, TablesChange::Same);
    }
    // The set for the prefix length that is not in use any more stays until the next agent starts.
    assert_eq!(restart(&after).await, TablesChange::Written);
    assert_eq!(restart(&after).await, TablesChange::Same);
}

#[tokio::test]
async fn d13_an_empty_set_of_a_prefix_length_stays_and_is_no_difference() {
    let range = source_range("203.0.113.7", "10.1.2.0/31");
    let range = (SetId::SourceRanges, range);
    let mut nft = write(&full().with(range.0, [range.1])).await;
    for verb in ["add", "delete"] {
        assert!(apply(&mut nft, &removed([range])).await);
        // After a change of another program the agent reads its tables again.
        self::nft(&[verb, "table", "ip", "other"]);
        observe(&mut nft).await;
        assert_eq!(set(&mut nft, &full()).await, TablesChange::Same);
        assert!(apply(&mut nft, &added([range])).await);
        let list = self::nft(&["list", "set", "ip", "ipvs-topo", "source-ranges-31"]);
        assert!(list.contains("203.0.113.7 . tcp . 80 . 10.1.2.0"), "{list}");
    }
}
