//! The names that dashboards rely on, as a scraper sees them.

use telemetry::Format;

use super::sample::eventful;
use super::*;

/// `(name, type)` of every family, sorted.
fn families(text: &str) -> Vec<(String, String)> {
    let mut families: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    families.sort();
    families
}

#[test]
fn kp_mx_01_to_11_keep_kube_proxys_names_and_types() {
    let (metrics, figures) = eventful();
    let text = Format::Prometheus.convert(metrics.expose(&figures).unwrap());
    let kube_proxy: Vec<_> = families(&text)
        .into_iter()
        .filter(|(name, _)| name.starts_with("kubeproxy_"))
        .collect();
    let expected = [
        ("conntrack_reconciler_deleted_entries_total", "counter"),
        ("conntrack_reconciler_sync_duration_seconds", "histogram"),
        ("network_programming_duration_seconds", "histogram"),
        ("proxy_healthz_total", "counter"),
        ("proxy_livez_total", "counter"),
        ("sync_proxy_rules_duration_seconds", "histogram"),
        ("sync_proxy_rules_endpoint_changes_pending", "gauge"),
        ("sync_proxy_rules_endpoint_changes_total", "counter"),
        ("sync_proxy_rules_last_queued_timestamp_seconds", "gauge"),
        ("sync_proxy_rules_last_timestamp_seconds", "gauge"),
        ("sync_proxy_rules_no_local_endpoints_total", "gauge"),
        ("sync_proxy_rules_service_changes_pending", "gauge"),
        ("sync_proxy_rules_service_changes_total", "counter"),
    ];
    let expected: Vec<_> = expected
        .map(|(name, kind)| (format!("kubeproxy_{name}"), kind.to_owned()))
        .into();
    assert_eq!(kube_proxy, expected);
}

#[test]
fn samples_carry_kube_proxys_labels_and_buckets() {
    let (metrics, figures) = eventful();
    let text = metrics.expose(&figures).unwrap();
    for sample in [
        "kubeproxy_sync_proxy_rules_duration_seconds_bucket{le=\"0.004\",ip_family=\"IPv4\"} 1",
        "kubeproxy_network_programming_duration_seconds_bucket{le=\"0.25\",ip_family=\"IPv4\"} 1",
        "kubeproxy_network_programming_duration_seconds_bucket{le=\"115.0\",ip_family=\"IPv4\"} 1",
        "kubeproxy_sync_proxy_rules_endpoint_changes_total 5",
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family=\"IPv4\",traffic_policy=\"internal\"} 1",
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family=\"IPv6\",traffic_policy=\"external\"} 2",
        "kubeproxy_proxy_healthz_total{code=\"200\"} 1",
        "kubeproxy_proxy_livez_total{code=\"503\"} 1",
        "kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family=\"IPv6\"} 7",
        "ipvs_topo_kernel_writes_total{step=\"add_real\",result=\"done\"} 1",
        "ipvs_topo_real_servers{ip_family=\"IPv4\",state=\"draining\"} 1",
        "ipvs_topo_foreign{kind=\"virtual-server\"} 3",
        "ipvs_topo_warnings{code=\"Input\"} 4",
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"10.0.0.1:6443\"} 5",
        "rest_client_requests_total{code=\"<error>\",method=\"GET\",host=\"10.0.0.1:6443\"} 1",
        "ipvs_topo_api_requests_total{verb=\"watch\",resource=\"nodes\",code=\"200\"} 3",
        "ipvs_topo_api_received_bytes_total{resource=\"nodes\"} 4096",
        "ipvs_topo_api_last_heard_timestamp_seconds{input=\"nodes\"} 12.5",
        "ipvs_topo_api_behind{input=\"services\"} 1",
        "ipvs_topo_api_doubted_objects{input=\"services\"} 1990",
        "ipvs_topo_node_source{source=\"map\"} 1",
    ] {
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} is missing in\n{text}"
        );
    }
}

#[test]
fn pain_40_an_outdated_series_disappears() {
    let (metrics, figures) = eventful();
    assert!(metrics.expose(&figures).unwrap().contains("shop/cart"));
    assert!(
        !metrics
            .expose(&Figures::default())
            .unwrap()
            .contains("shop/cart")
    );
}
