//! Tests that texts of earlier versions of objects do not stay in memory.

use super::*;

/// A slice with 600 port names that no other version has.
fn slice(version: usize) -> Node {
    let ports = (0..600).map(|port| format!(r#"{{"name":"v{version}-{port}","port":80}}"#));
    let ports = ports.collect::<Vec<_>>().join(",");
    object(
        SLICES,
        &format!(
            r#"{{"metadata":{{"name":"cart-1","namespace":"shop","labels":{{"kubernetes.io/service-name":"cart"}}}},"addressType":"IPv4","ports":[{ports}],"endpoints":[{{"addresses":["10.244.1.1"]}}]}}"#
        ),
    )
}

#[test]
fn texts_of_earlier_versions_are_dropped_without_another_list() {
    let mut bench = Bench::listed(&[]);
    let mut change_to = |version| {
        bench.reflector.apply_object(SLICES, &slice(version));
        bench.deliver();
        let slices = bench
            .index
            .snapshot()
            .slices(&ObjectName::new("shop", "cart"));
        Arc::downgrade(&slices[0].ports[0].name)
    };
    let old = change_to(0);
    assert!(old.upgrade().is_some());
    for version in 1..6 {
        change_to(version);
    }
    assert!(old.upgrade().is_none());
}
