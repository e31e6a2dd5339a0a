//! Random steps of managers and other writers.

use proptest::prelude::*;
use topology_core::hints::{HintedSlices, reconcile};

use topology_core::model::Family;

use super::*;

/// A change of one of three slices, or of the Service.
#[derive(Debug, Clone)]
enum RandomStep {
    /// The manager writes so many endpoints in each zone, and keeps the hints or drops them.
    Endpoints(usize, [usize; 3], bool),
    /// Another writer writes hints.
    ForeignHints(usize),
    /// The Service requests hints, or does not.
    Request(bool),
    /// Another replica leads.
    NewLeader,
}

fn step() -> impl Strategy<Value = RandomStep> {
    prop_oneof![
        8 => (0_usize..3, [0_usize..4, 0..4, 0..4], any::<bool>())
            .prop_map(|(slice, counts, keeps)| RandomStep::Endpoints(slice, counts, keeps)),
        1 => (0_usize..3).prop_map(RandomStep::ForeignHints),
        2 => any::<bool>().prop_map(RandomStep::Request),
        1 => Just(RandomStep::NewLeader),
    ]
}

impl Fake {
    fn run(&mut self, step: &RandomStep) {
        let name = |number: &usize| format!("cart-{number}");
        match step {
            RandomStep::Endpoints(slice, counts, keeps) => {
                let zones = ["a", "b", "c"].into_iter().zip(counts);
                let zones = zones.flat_map(|(zone, count)| (0..*count).map(move |at| (zone, at)));
                let mut made: Vec<Value> = zones
                    .map(|(zone, at)| {
                        let third = usize::from(zone.as_bytes()[0] - b'a');
                        endpoint(slice * 50 + third * 10 + at, zone)
                    })
                    .collect();
                let old = self.slices.get(&name(slice)).filter(|_| *keeps);
                for endpoint in old
                    .into_iter()
                    .flat_map(|slice| slice["endpoints"].as_array().unwrap())
                {
                    let same = made
                        .iter_mut()
                        .find(|new| new["addresses"] == endpoint["addresses"]);
                    if let (Some(new), Some(hints)) = (same, endpoint.get("hints")) {
                        new["hints"] = hints.clone();
                    }
                }
                self.make(&name(slice), &made);
            }
            RandomStep::ForeignHints(slice) if self.slices.contains_key(&name(slice)) => {
                let theirs = hinted(self.endpoints(&name(slice)), "z");
                self.write("other", "Update", &name(slice), &theirs);
            }
            RandomStep::ForeignHints(_) => {}
            RandomStep::Request(requests) => {
                let mode = mode_annotation(if *requests { "Auto" } else { "Disabled" });
                self.state.apply(Collection::Services, service(&mode));
            }
            RandomStep::NewLeader => self.state.forget(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The first hints are those of the allocator for endpoints without hints.
    #[test]
    fn hints_are_those_of_the_allocator(counts in prop::collection::vec([0_usize..5, 0..5, 0..5], 1..4)) {
        let mut fake = Fake::new();
        for (slice, counts) in counts.iter().enumerate() {
            fake.run(&RandomStep::Endpoints(slice, *counts, false));
        }
        let fresh = fake.slices.iter().map(|(name, slice)| Slice::read(slice).unwrap().to_hint(name));
        let mut fresh = HintedSlices { create: fresh.collect(), ..HintedSlices::default() };
        let event = reconcile(HintMode::Auto, fake.state.zones().as_ref(), Family::V4, false, &mut fresh);
        let (events, _) = fake.settle();
        prop_assert_eq!(reasons(&events), [event.unwrap().reason()]);
        let members = fresh.create.iter().flat_map(|slice| &slice.members);
        let zone = |hints: &topology_core::model::Hints| hints.zones[0].to_string();
        let expected: Vec<String> = members.map(|member| member.hints.as_ref().map_or_else(String::new, zone)).collect();
        prop_assert_eq!(fake.zones(), expected);
    }

    /// A slice with foreign hints is never written. If the Service requests no hints, none of ours
    /// are left on slices that we wrote last.
    #[test]
    fn foreign_hints_are_kept_and_ours_are_removed_when_not_requested(all in prop::collection::vec(step(), 1..25)) {
        let (mut fake, mut requested) = (Fake::new(), true);
        for step in &all {
            fake.run(step);
            if let RandomStep::Request(requests) = step {
                requested = *requests;
            }
            let before = fake.slices.clone();
            let (_, written) = fake.settle();
            for name in &written {
                let endpoints = before[name]["endpoints"].as_array().unwrap().iter();
                let theirs = endpoints.filter(|endpoint| value::text(endpoint, "/hints/forZones/0/name") == "z");
                prop_assert_eq!(theirs.count(), 0, "{} in {:?}", name, step);
            }
            for slice in fake.slices.values() {
                let read = Slice::read(slice).unwrap();
                let ours = read.author == slice::Author::Us && read.is_hinted();
                prop_assert!(requested || !ours, "{:?}", step);
            }
        }
    }
}
