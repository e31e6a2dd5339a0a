//! From YAML to the virtual servers of a node. Policies and drains that are invalid, forbidden or
//! expired never leave a Service without endpoints; the next policy source decides.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cluster::object::Ignored;
use cluster::source::{Loaded, Options, read_text};
use cluster::{AllowLists, ServiceSelection};
use topology_core::hints::HintMode;
use topology_core::model::{IpNetwork, ObjectName};
use topology_core::policy::{OnNoMatch, PREFIX, PolicySource};
use topology_core::resolve::{ResolvedServer, Viewpoint, resolve};

/// Two zones with one node each, and a Service with these annotations and one endpoint per node.
fn cluster(annotations: &str, objects: &[&str]) -> Loaded {
    let mut text = format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{topology.kubernetes.io/zone: a}}}}
---
apiVersion: v1
kind: Node
metadata: {{name: n2, labels: {{topology.kubernetes.io/zone: b}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}
spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{port: 8080}}]
endpoints: [{{addresses: [10.244.1.1], nodeName: n1, zone: a}}, {{addresses: [10.244.2.1], nodeName: n2, zone: b}}]
"
    );
    for object in objects {
        text.push_str("---\napiVersion: topology.ipvs-topo.io/v1alpha1\n");
        text.push_str(object);
        text.push('\n');
    }
    read(&text)
}

fn seen(loaded: &Loaded, now: Option<i64>) -> ResolvedServer {
    let viewpoint = Viewpoint {
        now,
        ..Viewpoint::new("n1")
    };
    let name = ObjectName::new("shop", "cart");
    let mut resolution = resolve(&loaded.snapshot, &viewpoint, &name);
    assert_eq!(resolution.servers.len(), 1);
    resolution.servers.remove(0)
}

/// The weights of the endpoints on n1 and on n2; `None` for an endpoint that is not programmed.
fn weights(loaded: &Loaded, now: Option<i64>) -> [Option<u32>; 2] {
    let server = seen(loaded, now).server;
    ["10.244.1.1", "10.244.2.1"].map(|address| {
        let address: std::net::IpAddr = address.parse().unwrap();
        let mut found = server.real_servers.iter();
        found
            .find(|real_server| real_server.address == address)
            .map(|real_server| real_server.weight)
    })
}

const NEAR: &str = "kind: ClusterTopologyPolicy\nmetadata: {name: near}\nspec: {mode: Prefer, levels: [{key: zone}, {any: true}]}";
const EQUAL: [Option<u32>; 2] = [Some(1), Some(1)];
const NEAREST: [Option<u32>; 2] = [Some(1), None];

#[test]
fn a_refused_policy_leaves_the_decision_to_the_next_source() {
    assert_eq!(weights(&cluster("", &[NEAR]), None), NEAREST);
    let bad = NEAR.replace("mode: Prefer", "mode: Hard");
    let loaded = cluster("", &[&bad]);
    assert_eq!(weights(&loaded, None), EQUAL);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn a_namespaced_policy_with_override_is_refused_as_a_whole() {
    let over = "kind: TopologyPolicy\nmetadata: {name: over, namespace: shop}\nspec: {enforcement: Override, mode: None}";
    let loaded = cluster("", &[NEAR, over]);
    let decision = seen(&loaded, None).decision;
    assert_eq!(decision.source, PolicySource::ClusterDefault);
    assert_eq!(weights(&loaded, None), NEAREST);
}

#[test]
fn an_annotation_names_a_policy_of_its_namespace_and_a_missing_policy_is_skipped() {
    let named = "kind: TopologyPolicy\nmetadata: {name: equal, namespace: shop}\nspec: {mode: None, serviceSelector: {matchLabels: {only: by-name}}}";
    let annotation = "topology.ipvs-topo.io/policy: equal";
    let loaded = cluster(annotation, &[NEAR, named]);
    assert_eq!(weights(&loaded, None), EQUAL);
    assert_eq!(loaded.warnings, []);
    assert_eq!(weights(&cluster(annotation, &[NEAR]), None), NEAREST);
}

const DRAIN: &str = "kind: TopologyDrain\nmetadata: {name: d, creationTimestamp: \"2025-11-22T08:00:00Z\"}\nspec: {match: {key: zone, values: [a]}, expiresAt: 2025-11-22T10:00:00Z}";
/// 2025-11-22T09:00:00Z.
const DURING_DRAIN: Option<i64> = Some(1_763_802_000_000);
/// 2025-11-22T10:00:00Z.
const AFTER_DRAIN: Option<i64> = Some(1_763_805_600_000);

#[test]
fn a_drain_empties_its_zone_until_it_has_ended() {
    let loaded = cluster("", &[DRAIN]);
    assert_eq!(weights(&loaded, None), [Some(0), Some(1)]);
    assert_eq!(weights(&loaded, DURING_DRAIN), [Some(0), Some(1)]);
    assert_eq!(weights(&loaded, AFTER_DRAIN), EQUAL);
}

#[test]
fn a_drain_of_everything_is_ignored_unless_it_is_forced() {
    let everything = DRAIN.replace("[a]", "[a, b]");
    assert_eq!(weights(&cluster("", &[&everything]), DURING_DRAIN), EQUAL);
    let forced = everything.replace("expiresAt", "onLastDomain: Force, expiresAt");
    let weights = weights(&cluster("", &[&forced]), DURING_DRAIN);
    assert!(!weights.contains(&Some(1)), "{weights:?}");
}

#[test]
fn a_drain_beyond_its_limit_does_nothing() {
    let long = DRAIN.replace("2025-11-22T10", "2025-11-26T10");
    let loaded = cluster("", &[&long]);
    assert_eq!(weights(&loaded, None), EQUAL);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}

#[test]
fn owner_limits_of_the_cluster_policy_apply_to_annotations() {
    let limited = NEAR.replace(
        "mode: Prefer,",
        "mode: Prefer, ownerLimits: {allowedModes: [Prefer]},",
    );
    let hard = "topology.ipvs-topo.io/keys: zone";
    let decision = seen(&cluster(hard, &[&limited]), None).decision;
    assert_eq!(decision.source, PolicySource::ClusterDefault);
    let decision = seen(&cluster(hard, &[NEAR]), None).decision;
    assert_eq!(decision.source, PolicySource::Annotation);
}

#[test]
fn q19_weights_of_0_alone_prefer_in_annotations_and_in_policies() {
    let annotated = cluster(r#"topology.ipvs-topo.io/weights: "zone=0,*=0""#, &[]);
    let policy = "kind: ClusterTopologyPolicy
metadata: {name: zeros}
spec: {mode: Weighted, levels: [{key: topology.kubernetes.io/zone, weight: 0}, {any: true, weight: 0}]}";
    for loaded in [annotated, cluster("", &[policy])] {
        assert_eq!(loaded.warnings, []);
        assert_eq!(weights(&loaded, None), [Some(1), None]);
    }
}

/// The Service alone.
fn cart(annotations: &str, spec: &str) -> Loaded {
    read(&format!(
        "apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}
spec: {{{spec}, ports: [{{port: 80}}]}}
"
    ))
}

fn read(text: &str) -> Loaded {
    read_with(text, &Options::default())
}

fn read_with(text: &str, options: &Options) -> Loaded {
    read_text("a.yaml", text.as_bytes(), options).unwrap()
}

fn is_ignored(spec: &str, reason: Ignored) {
    let loaded = cart("", spec);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.ignored.values().collect::<Vec<_>>(), [&reason]);
    assert_eq!(loaded.snapshot.services().count(), 0);
}

#[test]
fn v11_topology_keys_of_a_headless_service_are_valid_and_without_effect() {
    is_ignored("clusterIP: None, topologyKeys: [zone]", Ignored::Headless);
}

#[test]
fn v12_topology_keys_of_an_external_name_are_valid_and_without_effect() {
    let spec = "type: ExternalName, externalName: example.com, topologyKeys: [zone]";
    is_ignored(spec, Ignored::ExternalName);
}

/// Without the keys the annotation is refused, because the policy always finds an endpoint.
#[test]
fn on_no_match_says_what_happens_outside_of_hard_topology_keys() {
    let annotation = format!("{PREFIX}on-no-match: drop");
    let loaded = cart(&annotation, "clusterIP: 10.96.0.1, topologyKeys: [zone]");
    assert_eq!(loaded.warnings, []);
    let policies = loaded.snapshot.services().map(|service| &service.policy);
    let policies: Vec<_> = policies.flatten().collect();
    let [policy] = &policies[..] else {
        panic!("{policies:?}");
    };
    assert_eq!(policy.on_no_match, OnNoMatch::Drop);
    for other in ["", ", topologyKeys: [zone, '*']"] {
        let loaded = cart(&annotation, &format!("clusterIP: 10.96.0.1{other}"));
        let [warning] = &loaded.warnings[..] else {
            panic!("{:?}", loaded.warnings);
        };
        let words = "this policy always finds an endpoint";
        assert!(warning.to_string().contains(words), "{warning}");
    }
}

#[test]
fn v13_topology_keys_that_the_api_server_dropped_have_no_effect() {
    for dropped in ["", ", topologyKeys: null"] {
        let loaded = cart("", &format!("clusterIP: 10.96.0.1{dropped}"));
        assert_eq!(loaded.warnings, []);
        let policies = loaded.snapshot.services().map(|service| &service.policy);
        assert_eq!(policies.collect::<Vec<_>>(), [&None]);
    }
}

#[test]
fn our_annotations_on_a_service_that_is_not_served_are_reported() {
    let warnings_of = |annotation: &str, spec: &str| {
        let warnings = cart(&format!("{annotation}: zone"), spec).warnings;
        let warnings = warnings.into_iter();
        warnings
            .map(|warning| (warning.code.as_str(), warning.to_string()))
            .collect::<Vec<_>>()
    };
    let external = "type: ExternalName, externalName: example.com";
    for (spec, kind) in [
        ("clusterIP: None", "headless"),
        ("clusterIPs: [None]", "headless"),
        (external, "of type ExternalName"),
    ] {
        let warnings = warnings_of("topology.ipvs-topo.io/keys", spec);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].0, "NoEffect");
        let text = format!("no effect: the Service is {kind}");
        assert!(warnings[0].1.contains(&text), "{warnings:?}");
        assert_eq!(warnings_of("example.com/keys", spec), []);
    }
}

#[test]
fn the_hint_mode_of_a_service_is_read() {
    let mode_of = |annotations: &str, spec: &str| {
        let loaded = cart(annotations, &format!("clusterIP: 10.96.0.1{spec}"));
        loaded.snapshot.services().next().unwrap().hint_mode
    };
    let zone = ", trafficDistribution: PreferSameZone";
    assert_eq!(mode_of("", ""), HintMode::Nothing);
    assert_eq!(mode_of("", zone), HintMode::SameZone);
    let mode = "service.kubernetes.io/topology-mode: Auto";
    assert_eq!(mode_of(mode, zone), HintMode::Auto);
    let older = "service.kubernetes.io/topology-aware-hints: auto";
    assert_eq!(mode_of(older, ""), HintMode::Auto);
}

/// Reads these objects of the namespace `shop` for DNS.
fn all_services(objects: &[&str]) -> Loaded {
    selected(ServiceSelection::All, objects)
}

fn selected(services: ServiceSelection, objects: &[&str]) -> Loaded {
    let options = Options {
        services,
        ..Options::default()
    };
    let text = objects.join("\n---\n");
    read_with(&text, &options)
}

const HEADLESS_SLICE: &str = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: cart-1
  namespace: shop
  labels: {kubernetes.io/service-name: cart, service.kubernetes.io/headless: ''}
addressType: IPv4
ports: []
endpoints: [{addresses: [10.244.1.1], hostname: cart-0}, {addresses: [10.244.2.1]}]";

#[test]
fn dns_reads_headless_services_and_other_names_with_their_policies_and_hostnames() {
    let service = |name: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop, annotations: \
             {{topology.ipvs-topo.io/keys: node}}, labels: {{service.kubernetes.io/service-proxy-name: other}}}}\n\
             spec: {{{spec}}}"
        )
    };
    let headless = service("cart", "clusterIP: None, publishNotReadyAddresses: true");
    let alias = service("shop", "type: ExternalName, externalName: example.com");
    let virtual_ip = service(
        "web",
        "clusterIP: 10.96.0.1, publishNotReadyAddresses: true, ports: [{port: 80}]",
    );
    let loaded = all_services(&[&headless, &alias, &virtual_ip, HEADLESS_SLICE]);
    assert_eq!(loaded.warnings, []);
    assert!(loaded.ignored.is_empty());
    let find = |name| {
        loaded
            .snapshot
            .service(&ObjectName::new("shop", name))
            .unwrap()
    };
    let cart = find("cart");
    assert!(cart.is_headless() && cart.policy.is_some() && cart.publish_not_ready_addresses);
    let alias = find("shop");
    assert!(!alias.is_headless());
    assert_eq!(alias.external_name.as_deref(), Some("example.com"));
    let web = find("web");
    assert!(!web.is_headless() && !web.publish_not_ready_addresses);
    let [slice] = loaded.snapshot.slices(&cart.name) else {
        panic!("one slice");
    };
    assert_eq!(slice.endpoints.len(), 2);
    let endpoints = slice.endpoints_with_hostnames();
    let hostnames: Vec<_> = endpoints
        .map(|(endpoint, name)| (endpoint.address.to_string(), name.map(|name| &**name)))
        .collect();
    let expected = [("10.244.1.1", Some("cart-0")), ("10.244.2.1", None)];
    assert_eq!(
        hostnames,
        expected.map(|(address, name)| (address.to_owned(), name))
    );
}

#[test]
fn a_simulation_reads_headless_services_and_those_that_this_proxy_serves() {
    let service = |name: &str, label: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop, annotations: \
             {{topology.ipvs-topo.io/keys: node}}, labels: {{{label}}}}}\nspec: {{{spec}}}"
        )
    };
    let other = "service.kubernetes.io/service-proxy-name: other";
    let headless = service("cart", other, "clusterIP: None");
    let served = service("web", "", "clusterIP: 10.96.0.1, ports: [{port: 80}]");
    let left = service("left", other, "clusterIP: 10.96.0.2, ports: [{port: 80}]");
    let alias = service(
        "away",
        other,
        "type: ExternalName, externalName: example.com",
    );
    let foreign = HEADLESS_SLICE.replace("cart", "web");
    let foreign = foreign.replace("service.kubernetes.io/headless: ''", other);
    let objects: [&str; 6] = [&headless, &served, &left, &alias, HEADLESS_SLICE, &foreign];
    let loaded = selected(ServiceSelection::ProxiedAndHeadless, &objects);
    assert_eq!(loaded.warnings, []);
    let services = loaded.snapshot.services();
    let found = services.map(|service| {
        let slices = loaded.snapshot.slices(&service.name).len();
        (&*service.name.name, service.policy.is_some(), slices)
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found, [("cart", true, 1), ("web", true, 0)]);
    let why: Vec<_> = loaded.ignored.values().copied().collect();
    assert_eq!(why, [Ignored::OtherProxy; 3]);
}

#[test]
fn without_dns_the_slices_of_headless_services_stay_ignored() {
    let text = HEADLESS_SLICE.replace(", service.kubernetes.io/headless: ''", "");
    for (text, slices) in [(HEADLESS_SLICE, 0), (&text, 1)] {
        let loaded = read(text);
        let found = loaded.snapshot.slices(&ObjectName::new("shop", "cart"));
        assert_eq!(found.len(), slices);
        assert!(found.iter().all(|slice| slice.hostnames.is_empty()));
    }
}

#[test]
fn a_service_that_waits_for_its_cluster_ip_is_ignored_by_dns_too() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\nspec: {ports: [{port: 80}]}";
    let loaded = all_services(&[service]);
    let reasons: Vec<_> = loaded.ignored.values().collect();
    assert_eq!(reasons, [&Ignored::NoClusterIp]);
}

/// Otherwise one Service could fill the memory of every node.
#[test]
fn d13_the_ports_of_a_service_limit_its_source_ranges_and_the_largest_ones_count() {
    let ports = (1..=10_000).map(|port| format!("{{name: p{port}, port: {port}}}"));
    let ports: Vec<String> = ports.collect();
    let ranges = (0..20).map(|number| format!("10.{number}.0.0/{}", 32 - number));
    let ranges: Vec<String> = ranges.collect();
    let text = format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  loadBalancerSourceRanges: [{}]
  ports: [{}]
status: {{loadBalancer: {{ingress: [{{ip: 192.0.2.1}}]}}}}
",
        ranges.join(", "),
        ports.join(", ")
    );
    let loaded = read(&text);
    let service = loaded.snapshot.service(&ObjectName::new("shop", "cart"));
    let permitted = service.unwrap().source_ranges.as_ref().unwrap();
    let prefixes: Vec<u8> = permitted.iter().map(IpNetwork::prefix).collect();
    assert_eq!(prefixes, [13, 14, 15, 16, 17, 18]);
    let warning = loaded.warnings[0].to_string();
    let expected = "spec.loadBalancerSourceRanges: too many for 10000 ports";
    assert!(warning.contains(expected), "{warning}");
}

/// A LoadBalancer Service with so many ports and external IPs of 192.0.2.0/24 or others.
fn published(ports: u16, external_ips: &[String]) -> Loaded {
    let ports = (1..=ports).map(|port| format!("{{name: p{port}, port: {port}}}"));
    let ports: Vec<String> = ports.collect();
    let text = format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  externalIPs: [{}]
  ports: [{}]
status: {{loadBalancer: {{ingress: [{{ip: 198.51.100.1}}]}}}}
",
        external_ips.join(", "),
        ports.join(", ")
    );
    let allowed = AllowLists {
        external_ips: vec!["192.0.2.0/24".parse().unwrap()],
        ..AllowLists::default()
    };
    let options = Options {
        allowed,
        ..Options::default()
    };
    read_with(&text, &options)
}

#[test]
fn d13_the_ports_of_a_service_limit_its_addresses_for_outside_clients() {
    let external_ips: Vec<String> = (0..=255).map(|last| format!("192.0.2.{last}")).collect();
    let name = ObjectName::new("shop", "cart");
    let all = published(60, &external_ips);
    assert_eq!(all.snapshot.service(&name).unwrap().frontends.len(), 258);
    assert_eq!(all.warnings, []);

    let some = published(8_192, &external_ips);
    let addresses = some.snapshot.service(&name).unwrap().frontends.iter();
    let addresses: Vec<String> = addresses.map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["10.96.0.1", "198.51.100.1", "192.0.2.0"]);
    let warning = some.warnings[0].to_string();
    let expected = "spec.ports: too many addresses for 8192 ports; only the first 2 ";
    assert!(warning.contains(expected), "{warning}");
}

#[test]
fn d13_of_many_refused_external_ips_the_first_ones_are_named() {
    let external_ips: Vec<String> = (0..=255).map(|last| format!("203.0.113.{last}")).collect();
    let loaded = published(1, &external_ips);
    let service = loaded.snapshot.service(&ObjectName::new("shop", "cart"));
    let refused = &service.unwrap().unprogrammed;
    assert_eq!(refused.len(), 21);
    assert_eq!(&*refused[19].field, "spec.externalIPs[19]");
    assert_eq!(&*refused[20].field, "spec.externalIPs");
    let expected = "each of 236 more external IPs is in no range of --external-ip-ranges";
    assert!(refused[20].reason.starts_with(expected));
}
