//! Slices with foreign hints, which are left alone.

use super::*;

#[test]
fn foreign_hints_are_kept_and_ours_are_removed() {
    let mut fake = settled();
    let theirs = hinted(fake.endpoints("cart-1"), "z");
    fake.write("other", "Update", "cart-1", &theirs);
    let (events, written) = fake.settle();
    assert_eq!(reasons(&events), [HINTS_LEFT]);
    assert_eq!(
        events[0].1,
        "no hints are written: other changed the hints on EndpointSlice cart-1"
    );
    assert_eq!(written, ["cart-2"]);
    assert_eq!(fake.state.hint_counts().left, 1);
    // The Service is left alone from then on.
    fake.make("cart-1", &endpoints("a a b c"));
    assert_eq!(fake.settle(), (vec![], vec![]));
    // A new request of the Service ends this.
    fake.state.apply(Collection::Services, service(&json!({})));
    assert_eq!(fake.settle(), (vec![], vec![]));
    fake.state
        .apply(Collection::Services, service(&mode_annotation("auto")));
    assert_eq!(reasons(&fake.settle().0), [ENABLED]);
}

#[test]
fn a_manager_that_removes_our_hints_from_the_same_endpoints_is_left_alone_at_once() {
    let mut fake = settled();
    let mut bare = bare(&fake.endpoints("cart-1"));
    bare.reverse();
    fake.make("cart-1", &bare);
    let (events, written) = fake.settle();
    assert_eq!(
        (reasons(&events), written),
        (vec![HINTS_LEFT], vec!["cart-2".to_owned()])
    );
}

#[test]
fn slices_with_foreign_hints_and_applied_or_mirrored_slices_are_never_written() {
    for kind in ["hinted", "applied", "mirrored"] {
        let mut fake = Fake::new();
        fake.make("cart-2", &endpoints("a b c"));
        let first = endpoints("a b c");
        match kind {
            "hinted" => fake.make("cart-1", &hinted(first, "a")),
            "applied" => fake.write("argocd", "Apply", "cart-1", &first),
            _ => {
                fake.make("cart-1", &first);
                let mut slice = fake.slices["cart-1"].clone();
                slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] =
                    "endpointslicemirroring-controller.k8s.io".into();
                fake.state.apply(Collection::Slices, slice);
            }
        }
        let (events, written) = fake.settle();
        assert_eq!(
            (reasons(&events), written.len()),
            (vec![HINTS_LEFT], 0),
            "{kind}"
        );
    }
}

#[test]
fn only_services_without_a_selector_that_node_proxies_serve_get_hints() {
    for (field, other) in [
        ("selector", json!({ "app": "cart" })),
        ("clusterIP", json!("None")),
        ("clusterIP", json!("")),
        ("type", json!("ExternalName")),
    ] {
        let mut fake = Fake::new();
        let mut object = service(&mode_annotation("Auto"));
        object["spec"][field] = other;
        fake.state.apply(Collection::Services, object);
        fake.make("cart-1", &endpoints("a b c"));
        assert_eq!(fake.settle(), (vec![], vec![]), "{field}");
    }
    for label in ["service-proxy-name", "headless"] {
        let mut fake = Fake::new();
        let mut object = service(&mode_annotation("Auto"));
        object["metadata"]["labels"] = json!({ format!("service.kubernetes.io/{label}"): "" });
        fake.state.apply(Collection::Services, object);
        fake.make("cart-1", &endpoints("a b c"));
        assert_eq!(fake.settle(), (vec![], vec![]), "{label}");
    }
}
