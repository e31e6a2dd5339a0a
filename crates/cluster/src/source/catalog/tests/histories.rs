//! Tests that any history of files gives the same state as a new read of the last files.

use proptest::prelude::*;

use super::*;

/// Applies the events to the objects in use.
fn apply(state: &mut BTreeMap<ObjectKey, String>, batch: Batch) {
    for event in batch.events {
        let line = show(&event);
        match event {
            Event::Apply(object) => drop(state.insert(object.key(), line)),
            Event::Ignore(key, _) => drop(state.insert(key, line)),
            Event::Delete(key) => assert!(state.remove(&key).is_some(), "{key} was not applied"),
            other => panic!("{other:?}"),
        }
    }
}

/// A valid document: a Node in some version, or a Service, headless or not.
fn document() -> impl Strategy<Value = String> {
    let service = |ip: &str, name: u32| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{name}}}\nspec: {{clusterIP: {ip}, ports: [{{port: 80}}]}}\n"
        )
    };
    prop_oneof![
        (0..4_u32, 0..3_u32).prop_map(|(name, version)| node(&format!("n{name}"), version)),
        (0..2_u32, any::<bool>())
            .prop_map(move |(name, ours)| service(if ours { "10.0.0.1" } else { "None" }, name)),
        Just("# only a comment\n".to_owned()),
        Just("---\nkind: Pod\n".to_owned()),
    ]
}

/// One or two of three files, each with a new text or deleted.
fn edit() -> impl Strategy<Value = BTreeMap<&'static str, Option<String>>> {
    let text = prop::collection::vec(document(), 0..5).prop_map(|documents| documents.concat());
    prop::collection::btree_map(
        prop::sample::select(&["a", "b", "c"][..]),
        prop::option::weighted(0.8, text),
        1..3,
    )
}

proptest! {
    #[test]
    fn changes_give_the_same_state_as_a_new_read(edits in prop::collection::vec(edit(), 1..8), listed in any::<bool>()) {
        let mut script = Script::default();
        if listed {
            script.catalog.list_ended();
        }
        let mut state = BTreeMap::new();
        for edit in edits {
            let names: BTreeSet<Arc<str>> = edit.keys().map(|name| (*name).into()).collect();
            for (name, text) in edit {
                match text {
                    Some(text) => script.disk.texts.insert(name.into(), text),
                    None => script.disk.texts.remove(name),
                };
            }
            script.catalog.update(names, &mut script.disk, &mut |batch| apply(&mut state, batch));
            let mut fresh = BTreeMap::new();
            let names = script.disk.texts.keys().cloned().collect();
            Catalog::default().update(names, &mut script.disk, &mut |batch| apply(&mut fresh, batch));
            prop_assert_eq!(&state, &fresh);
        }
    }
}
