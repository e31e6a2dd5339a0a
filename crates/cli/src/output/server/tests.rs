//! Tables in a narrow and a wide terminal.

use agent_api::view::{LevelView, NoteView, PolicyView, ServerKernelView, TrafficView};

use super::*;

fn policy(words: &str) -> PolicyView {
    PolicyView {
        source: "annotation".to_owned(),
        mode: "weighted".to_owned(),
        words: words.to_owned(),
        levels: Vec::<LevelView>::new(),
    }
}

fn real(
    address: &str,
    node: &str,
    zone: &str,
    level: &str,
    weight: u32,
    share: f64,
) -> RealServerView {
    RealServerView {
        address: address.parse().unwrap(),
        port: 8080,
        node: Some(node.to_owned()),
        zone: Some(zone.to_owned()),
        level: Some(level.to_owned()),
        weight,
        share,
        state: if weight == 0 { "draining" } else { "active" }.to_owned(),
        reason: "in this level".to_owned(),
        code: "InLevel".to_owned(),
        connections: Some(ConnectionsView {
            active: 12,
            inactive: 340,
            persistent: 0,
            traffic: Some(TrafficView {
                per_second: 25,
                ..TrafficView::default()
            }),
        }),
        drain_seconds_left: (weight == 0).then_some(42),
    }
}

fn out(address: &str, node: &str, words: &str) -> ExcludedView {
    ExcludedView {
        address: address.parse().unwrap(),
        port: 8080,
        node: Some(node.to_owned()),
        zone: Some("b".to_owned()),
        reason: "NotReady".to_owned(),
        words: words.to_owned(),
    }
}

fn cart() -> ServerView {
    ServerView {
        service: "shop/cart".to_owned(),
        port_name: "http".to_owned(),
        kind: "ClusterIP".to_owned(),
        protocol: "TCP".to_owned(),
        address: Some("10.96.0.10".parse().unwrap()),
        port: Some(80),
        fwmark: None,
        clients: "all".to_owned(),
        frontends: vec!["10.96.0.10:80".to_owned()],
        scheduler: "wrr".to_owned(),
        persistence_seconds: 0,
        policy: policy("80 % on this node, 15 % in this zone, 5 % anywhere (annotation)"),
        real_servers: vec![
            real("10.244.1.2", "n1", "a", "node", 96, 0.8),
            real("10.244.2.2", "n2", "a", "zone", 9, 0.075),
            real("10.244.2.3", "n2", "a", "zone", 9, 0.075),
            real("10.244.3.2", "n3", "b", "any", 2, 0.05 / 3.0),
            real("10.244.4.2", "n4", "c", "any", 0, 0.0),
        ],
        notes: Vec::new(),
        refusal: None,
        refusal_code: None,
        excluded: vec![out("10.244.3.9", "n3", "not ready")],
        kernel: None,
    }
}

fn plain(servers: &[ServerView], detail: Detail, width: usize) -> String {
    anstream::adapter::strip_str(&table(servers, detail, Some(width))).to_string()
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default()
}

#[test]
fn a_planned_table_draws_bars_within_eighty_columns() {
    let text = plain(&[cart()], Detail::Planned, 80);
    assert!(widest(&text) <= 80, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_live_table_fits_eighty_columns_without_bars() {
    let text = plain(&[cart()], Detail::Live, 80);
    assert!(widest(&text) <= 80, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_live_table_has_bars_where_there_is_room() {
    let text = plain(&[cart()], Detail::Live, 120);
    assert!(widest(&text) <= 120, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_wide_table_has_any_width_and_shows_reasons() {
    insta::assert_snapshot!(plain(&[cart()], Detail::Wide, 80));
}

#[test]
fn many_excluded_endpoints_of_one_reason_are_counted() {
    let mut server = cart();
    server.excluded = (1..=200)
        .map(|last| out(&format!("10.244.9.{last}"), "n9", "in another zone"))
        .collect();
    let text = plain(&[server.clone()], Detail::Planned, 80);
    assert_eq!(text.matches("in another zone").count(), NAMED + 1, "{text}");
    assert!(text.contains("195 more"), "{text}");
    assert_eq!(
        plain(&[server], Detail::Wide, 80)
            .matches("in another zone")
            .count(),
        200
    );
}

#[test]
fn long_node_names_are_cut_and_ipv6_addresses_are_not() {
    let mut server = cart();
    server.address = Some("fd00:10:96::10".parse().unwrap());
    for real in &mut server.real_servers {
        real.address = "fd00:10:244:1::2".parse().unwrap();
        real.node = Some("ip-10-0-12-34.eu-central-1.compute.internal".to_owned());
    }
    let text = plain(&[server], Detail::Planned, 80);
    assert!(widest(&text) <= 80, "{text}");
    assert!(text.contains("[fd00:10:244:1::2]:8080"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_refusing_and_a_failed_server_say_so() {
    let mut server = cart();
    server.real_servers.clear();
    server.persistence_seconds = 10_800;
    server.refusal = Some("no endpoint is ready".to_owned());
    server.notes = vec![NoteView {
        code: "EmptyLevel".to_owned(),
        stage: "S6".to_owned(),
        words: "level zone has no endpoint, its 15 % go to level *".to_owned(),
    }];
    server.kernel = Some(ServerKernelView {
        state: "failed".to_owned(),
        error: Some("ipvsadm -A -t 10.96.0.10:80 -s wrrr: unknown scheduler".to_owned()),
        retry_in_seconds: Some(4),
    });
    insta::assert_snapshot!(plain(&[server], Detail::Live, 80));
}

#[test]
fn a_firewall_mark_is_shown_as_the_outside_clients_that_it_serves() {
    let mut inside = cart();
    inside.real_servers.clear();
    inside.excluded.clear();
    (inside.kind, inside.clients) = ("LoadBalancer".to_owned(), "inside".to_owned());
    let mut outside = inside.clone();
    (outside.address, outside.port, outside.fwmark) = (None, None, Some(0x2000_1235));
    outside.clients = "outside".to_owned();
    outside.frontends = ["192.0.2.1:80", "192.168.1.1:30080"]
        .map(str::to_owned)
        .to_vec();
    let text = plain(&[inside, outside.clone()], Detail::Planned, 80);
    let titles: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("shop/") || line.starts_with("outside"))
        .collect();
    assert_eq!(
        titles,
        [
            "shop/cart:http  TCP 10.96.0.10:80  LoadBalancer, wrr, inside clients",
            "shop/cart:http  TCP mark 0x20001235  LoadBalancer, wrr",
            "outside clients of 192.0.2.1:80, 192.168.1.1:30080 (firewall mark 0x20001235)",
        ]
    );
    outside.frontends = (0..7)
        .map(|number| format!("192.168.1.{number}:30080"))
        .collect();
    let text = plain(&[outside], Detail::Planned, 80);
    let expected = "192.168.1.4:30080 and 2 more (firewall mark 0x20001235)\n";
    assert!(text.contains(expected), "{text}");
    assert!(widest(&text) <= 80, "{text}");
}
