//! The order of the steps: one after the other, but those that mostly wait beside those that compute.

use std::sync::{Mutex, PoisonError};

use super::steps::{Company, Reach, Step};
use super::tally::Tally;
use super::times::Timed;

/// What came out of the steps.
#[derive(Default)]
pub(super) struct Done {
    pub(super) tally: Tally,
    /// How long each step took, in the order they ended.
    pub(super) steps: Vec<Timed>,
    /// How long each test took that tells it.
    pub(super) tests: Vec<Timed>,
}

/// Runs `steps`.
pub(super) fn run(steps: &[&Step], reach: Reach) -> Done {
    let done = Mutex::new(Done::default());
    for [waiting, computing] in groups(steps) {
        std::thread::scope(|scope| {
            let lanes = [waiting, computing].map(|lane| {
                scope.spawn(|| lane.into_iter().for_each(|step| add(&done, step, reach)))
            });
            for lane in lanes {
                if lane.join().is_err() {
                    anstream::println!("test: a step panicked");
                    change(&done, |done| done.tally.add(Tally::gate(false)));
                }
            }
        });
    }
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What runs at the same time: steps that wait, one after the other, and beside them steps that compute.
///
/// A step that wants the machine for itself is a group of its own.
fn groups<'a>(steps: &[&'a Step]) -> Vec<[Vec<&'a Step>; 2]> {
    let together =
        steps.chunk_by(|one, next| one.company != Company::None && next.company != Company::None);
    let lanes = together.map(|group| {
        let (waiting, computing) = group
            .iter()
            .partition(|step| step.company == Company::Waits);
        [waiting, computing]
    });
    lanes.collect()
}

fn add(done: &Mutex<Done>, step: &Step, reach: Reach) {
    let ran = step.run(reach);
    change(done, |done| {
        done.tally.add(ran.tally);
        done.steps.push(ran.time);
        done.tests.extend(ran.tests);
    });
}

fn change(done: &Mutex<Done>, change: impl FnOnce(&mut Done)) {
    change(&mut done.lock().unwrap_or_else(PoisonError::into_inner));
}

#[cfg(test)]
mod tests {
    use super::super::step_result::StepResult;
    use super::*;

    const fn step(name: &'static str, company: Company) -> Step {
        Step {
            name,
            purpose: "",
            reach: Reach::Gate,
            company,
            run: |_| StepResult::gate(true, String::new()),
        }
    }

    static STEPS: [Step; 5] = [
        step("format", Company::None),
        step("controlplane", Company::Waits),
        step("lints", Company::Computes),
        step("tests", Company::Computes),
        step("kernels", Company::None),
    ];

    #[test]
    fn a_step_that_waits_runs_beside_those_that_compute_and_others_run_alone() {
        let steps: Vec<&Step> = STEPS.iter().collect();
        let names = groups(&steps)
            .into_iter()
            .map(|lanes| lanes.map(|lane| lane.iter().map(|step| step.name).collect::<Vec<_>>()));
        let wanted: [[Vec<&str>; 2]; 3] = [
            [vec![], vec!["format"]],
            [vec!["controlplane"], vec!["lints", "tests"]],
            [vec![], vec!["kernels"]],
        ];
        assert_eq!(names.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn every_step_is_counted_and_timed() {
        let steps: Vec<&Step> = STEPS.iter().collect();
        let done = run(&steps, Reach::Gate);
        assert_eq!(
            done.tally,
            Tally {
                passed: 5,
                failed: 0
            }
        );
        assert_eq!(done.steps.len(), 5);
    }
}
