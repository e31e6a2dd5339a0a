//! Whose slices are left alone.

use super::*;

#[test]
fn another_writer_of_hints_is_left_alone_and_ours_are_taken_back() {
    let mut fake = settled();
    let theirs = hinted(fake.endpoints("cart-1"), "z");
    fake.write("other", "Update", "cart-1", &theirs);
    let (told, written) = fake.settle();
    assert_eq!(words(&told), [HINTS_LEFT]);
    assert_eq!(
        told[0].1,
        "no hints are written: other changed the hints on EndpointSlice cart-1"
    );
    assert_eq!(written, ["cart-2"]);
    assert_eq!(fake.state.hinted().left, 1);
    // From then on, whatever becomes of the slice.
    fake.make("cart-1", &endpoints("a a b c"));
    assert_eq!(fake.settle(), (vec![], vec![]));
    // Who asks anew is heard again.
    fake.state.exists(Collection::Services, service(&json!({})));
    assert_eq!(fake.settle(), (vec![], vec![]));
    fake.state
        .exists(Collection::Services, service(&asking("auto")));
    assert_eq!(words(&fake.settle().0), [ENABLED]);
}

#[test]
fn a_manager_that_takes_hints_off_the_same_endpoints_wins_at_once() {
    let mut fake = settled();
    let mut bare = bare(&fake.endpoints("cart-1"));
    bare.reverse();
    fake.make("cart-1", &bare);
    let (told, written) = fake.settle();
    assert_eq!(
        (words(&told), written),
        (vec![HINTS_LEFT], vec!["cart-2".to_owned()])
    );
}

#[test]
fn hints_of_others_slices_that_were_applied_and_mirrored_ones_are_never_written() {
    for how in ["hinted", "applied", "mirrored"] {
        let mut fake = Fake::new();
        fake.make("cart-2", &endpoints("a b c"));
        let first = endpoints("a b c");
        match how {
            "hinted" => fake.make("cart-1", &hinted(first, "a")),
            "applied" => fake.write("argocd", "Apply", "cart-1", &first),
            _ => {
                fake.make("cart-1", &first);
                let mut slice = fake.slices["cart-1"].clone();
                slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] =
                    "endpointslicemirroring-controller.k8s.io".into();
                fake.state.exists(Collection::Slices, slice);
            }
        }
        let (told, written) = fake.settle();
        assert_eq!(
            (words(&told), written.len()),
            (vec![HINTS_LEFT], 0),
            "{how}"
        );
    }
}

#[test]
fn only_services_without_a_selector_that_node_proxies_serve_are_concerned() {
    for (field, other) in [
        ("selector", json!({ "app": "cart" })),
        ("clusterIP", json!("None")),
        ("clusterIP", json!("")),
        ("type", json!("ExternalName")),
    ] {
        let mut fake = Fake::new();
        let mut object = service(&asking("Auto"));
        object["spec"][field] = other;
        fake.state.exists(Collection::Services, object);
        fake.make("cart-1", &endpoints("a b c"));
        assert_eq!(fake.settle(), (vec![], vec![]), "{field}");
    }
}
