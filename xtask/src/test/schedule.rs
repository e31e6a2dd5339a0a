//! Runs the steps in their order; steps that mostly wait run beside steps that compute.

use std::sync::{Mutex, PoisonError};

use super::steps::{Concurrency, Scope, TestStep};
use super::times::Timed;
use testbed::TestCounts;

/// The results of the steps.
#[derive(Default)]
pub(super) struct RunResults {
    pub(super) counts: TestCounts,
    /// The time of each step, in the order in which they ended.
    pub(super) steps: Vec<Timed>,
    /// The time of each test whose output has one.
    pub(super) tests: Vec<Timed>,
}

pub(super) fn run(steps: &[&TestStep], scope: Scope) -> RunResults {
    let done = Mutex::new(RunResults::default());
    for [waiting, computing] in groups(steps) {
        std::thread::scope(|threads| {
            let lanes = [waiting, computing].map(|lane| {
                threads.spawn(|| lane.into_iter().for_each(|step| add(&done, step, scope)))
            });
            for lane in lanes {
                if lane.join().is_err() {
                    anstream::println!("test: a step panicked");
                    change(&done, |done| done.counts.add(TestCounts::gate(false)));
                }
            }
        });
    }
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Groups the steps that run concurrently: one lane of waiting steps, and one of computing steps.
///
/// An exclusive step is a group of its own.
fn groups<'a>(steps: &[&'a TestStep]) -> Vec<[Vec<&'a TestStep>; 2]> {
    let together = steps.chunk_by(|one, next| {
        one.concurrency != Concurrency::Exclusive && next.concurrency != Concurrency::Exclusive
    });
    let lanes = together.map(|group| {
        let (waiting, computing) = group
            .iter()
            .partition(|step| step.concurrency == Concurrency::Waiting);
        [waiting, computing]
    });
    lanes.collect()
}

fn add(done: &Mutex<RunResults>, step: &TestStep, scope: Scope) {
    let finished = step.run(scope);
    change(done, |done| {
        done.counts.add(finished.counts);
        done.steps.push(finished.time);
        done.tests.extend(finished.tests);
    });
}

fn change(done: &Mutex<RunResults>, change: impl FnOnce(&mut RunResults)) {
    change(&mut done.lock().unwrap_or_else(PoisonError::into_inner));
}

#[cfg(test)]
mod tests {
    use super::super::step_result::StepResult;
    use super::*;

    const fn step(name: &'static str, concurrency: Concurrency) -> TestStep {
        TestStep {
            name,
            purpose: "",
            scope: Scope::Gate,
            concurrency,
            run: |_| StepResult::gate(true, String::new()),
        }
    }

    static STEPS: [TestStep; 5] = [
        step("format", Concurrency::Exclusive),
        step("controlplane", Concurrency::Waiting),
        step("lints", Concurrency::CpuBound),
        step("tests", Concurrency::CpuBound),
        step("kernels", Concurrency::Exclusive),
    ];

    #[test]
    fn a_step_that_waits_runs_beside_those_that_compute_and_others_run_alone() {
        let steps: Vec<&TestStep> = STEPS.iter().collect();
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
        let steps: Vec<&TestStep> = STEPS.iter().collect();
        let done = run(&steps, Scope::Gate);
        assert_eq!(
            done.counts,
            TestCounts {
                passed: 5,
                failed: 0
            }
        );
        assert_eq!(done.steps.len(), 5);
    }
}
