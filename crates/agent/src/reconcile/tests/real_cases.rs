//! Runs the cases of the real kernel on the fake one.

use std::future::{Ready, ready};

use topology_core::scheduler::Scheduler;

use super::cases;
use super::fake::Shared;

/// Two handles to one empty table.
fn open() -> Ready<(Shared, Shared)> {
    let shared = Shared::default();
    ready((shared.clone(), shared))
}

kernel_cases!(open);

#[tokio::test]
async fn a_scheduler_that_the_kernel_does_not_have_is_refused() {
    let mut shared = Shared::default();
    shared.0.borrow_mut().lacking = [Scheduler::Fo].into();
    cases::a_scheduler_that_the_kernel_does_not_have_is_refused(&mut shared).await;
}
