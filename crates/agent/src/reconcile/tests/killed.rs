//! Kills an agent after any step of a plan and starts the next one.

use super::BOTH;
use super::fake::Shared;
use super::script::{Loop, service, slice};

/// States that a plan moves between, with every kind of object.
fn states() -> [Vec<cluster::object::Object>; 3] {
    let kept = ["10.244.1.1@n1", "10.244.2.1@n2"];
    [
        vec![
            service("kept", "10.96.0.10", BOTH),
            slice("kept", BOTH, &kept),
            service("gone", "203.0.113.9", BOTH),
            slice("gone", BOTH, &["10.244.1.9@n1"]),
        ],
        vec![
            service("kept", "10.96.0.10", BOTH),
            slice("kept", BOTH, &[kept[0], "10.244.3.1@n3"]),
            service("new", "203.0.113.7", BOTH),
            slice("new", BOTH, &["10.244.1.8@n1", "10.244.3.2@n3"]),
        ],
        vec![],
    ]
}

#[tokio::test(start_paused = true)]
async fn t06_a_kill_after_any_step_is_repaired_and_unchanged_real_servers_stay() {
    let [first, second, nothing] = states();
    let moves = [
        (&nothing, &first),
        (&first, &second),
        (&second, &first),
        (&first, &nothing),
    ];
    for (from, to) in moves {
        let reference = Shared::default();
        Loop::over(&reference).start(to.clone()).await;
        for steps in 0.. {
            let shared = Shared::default();
            Loop::over(&shared).start(from.clone()).await;
            let mut dying = Loop::over(&shared);
            dying.world().steps_left = Some(steps);
            dying.journal();
            dying.start(to.clone()).await;
            let died = dying.world().steps_left == Some(0);
            let mut next = Loop::over(&shared);
            next.world().steps_left = None;
            next.start(to.clone()).await;
            next.settle(1_000).await;
            assert_eq!(
                next.save(),
                reference.0.borrow().save(),
                "killed after {steps} steps"
            );
            assert_eq!(next.world().record, reference.0.borrow().record);
            assert_eq!(next.world().routes, reference.0.borrow().routes);
            if !from.is_empty() && !to.is_empty() {
                let touched = next
                    .journal()
                    .into_iter()
                    .find(|line| line.contains("10.244.1.1:"));
                assert_eq!(touched, None);
            }
            if !died {
                break;
            }
        }
    }
}
