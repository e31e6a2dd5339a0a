//! Whatever managers and other writers do.

use proptest::prelude::*;
use topology_core::hints::{HintedSlices, reconcile};

use topology_core::model::Family;

use super::*;

/// What happens to one of three slices, or to the Service.
#[derive(Debug, Clone)]
enum Happens {
    /// The manager writes so many endpoints in each zone; it keeps hints it knows, or none.
    Made(usize, [usize; 3], bool),
    /// Somebody writes hints.
    Hinted(usize),
    /// The Service asks, or does not.
    Asks(bool),
    /// Another replica leads.
    Forgot,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (0_usize..3, [0_usize..4, 0..4, 0..4], any::<bool>())
            .prop_map(|(slice, counts, keeps)| Happens::Made(slice, counts, keeps)),
        1 => (0_usize..3).prop_map(Happens::Hinted),
        2 => any::<bool>().prop_map(Happens::Asks),
        1 => Just(Happens::Forgot),
    ]
}

impl Fake {
    fn happens(&mut self, what: &Happens) {
        let name = |number: &usize| format!("cart-{number}");
        match what {
            Happens::Made(slice, counts, keeps) => {
                let zones = ["a", "b", "c"].into_iter().zip(counts);
                let zones = zones.flat_map(|(zone, count)| (0..*count).map(move |at| (zone, at)));
                let mut made: Vec<Value> = zones
                    .map(|(zone, at)| {
                        let third = usize::from(zone.as_bytes()[0] - b'a');
                        endpoint(slice * 50 + third * 10 + at, zone)
                    })
                    .collect();
                let old = self.slices.get(&name(slice)).filter(|_| *keeps);
                for one in old
                    .into_iter()
                    .flat_map(|one| one["endpoints"].as_array().unwrap())
                {
                    let same = made
                        .iter_mut()
                        .find(|new| new["addresses"] == one["addresses"]);
                    if let (Some(new), Some(hints)) = (same, one.get("hints")) {
                        new["hints"] = hints.clone();
                    }
                }
                self.make(&name(slice), &made);
            }
            Happens::Hinted(slice) if self.slices.contains_key(&name(slice)) => {
                let theirs = hinted(self.endpoints(&name(slice)), "z");
                self.write("other", "Update", &name(slice), &theirs);
            }
            Happens::Hinted(_) => {}
            Happens::Asks(asks) => {
                let mode = asking(if *asks { "Auto" } else { "Disabled" });
                self.state.exists(Collection::Services, service(&mode));
            }
            Happens::Forgot => self.state.forget(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The first hints are those that the allocator gives to endpoints without any.
    #[test]
    fn hints_are_those_of_the_allocator(counts in prop::collection::vec([0_usize..5, 0..5, 0..5], 1..4)) {
        let mut fake = Fake::new();
        for (slice, counts) in counts.iter().enumerate() {
            fake.happens(&Happens::Made(slice, *counts, false));
        }
        let fresh = fake.slices.iter().map(|(name, one)| Slice::read(one).unwrap().to_hint(name));
        let mut fresh = HintedSlices { create: fresh.collect(), ..HintedSlices::default() };
        let event = reconcile(HintMode::Auto, fake.state.zones().as_ref(), Family::V4, false, &mut fresh);
        let (told, _) = fake.settle();
        prop_assert_eq!(words(&told), [event.unwrap().reason()]);
        let members = fresh.create.iter().flat_map(|one| &one.members);
        let zone = |hints: &topology_core::model::Hints| hints.zones[0].to_string();
        let expected: Vec<String> = members.map(|one| one.hints.as_ref().map_or_else(String::new, zone)).collect();
        prop_assert_eq!(fake.zones(), expected);
    }

    /// Whatever happens: a slice with hints of another is not touched while the Service asks; and when nobody asks,
    /// none of ours are left on slices that we wrote last.
    #[test]
    fn nobody_is_fought_and_nothing_is_left_behind(all in prop::collection::vec(happens(), 1..25)) {
        let (mut fake, mut asks) = (Fake::new(), true);
        for what in &all {
            fake.happens(what);
            if let Happens::Asks(now) = what {
                asks = *now;
            }
            let before = fake.slices.clone();
            let (_, written) = fake.settle();
            for name in &written {
                let zones = before[name]["endpoints"].as_array().unwrap().iter();
                let theirs = zones.filter(|one| value::text(one, "/hints/forZones/0/name") == "z");
                prop_assert_eq!(theirs.count(), 0, "{} in {:?}", name, what);
            }
            for slice in fake.slices.values() {
                let read = Slice::read(slice).unwrap();
                let ours = read.author == slice::Author::Us && read.is_hinted();
                prop_assert!(asks || !ours, "{:?}", what);
            }
        }
    }
}
