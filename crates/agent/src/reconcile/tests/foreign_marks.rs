//! Firewall marks that virtual servers of other programs have.

use super::TCP;
use super::fake::Shared;
use super::firewall_marks::{
    both, everywhere, in_kernel, key_of, local, only_mark, serving, started,
};
use super::script::{Loop, slice};
use crate::state::ProgramStatus;

/// Makes the virtual server of the Service's mark another program's. Returns its mark.
async fn with_foreign_mark(shared: &Shared) -> u32 {
    let mark = only_mark(&serving(shared).await);
    shared.0.borrow_mut().record.remove(&key_of(mark));
    mark
}

#[tokio::test(start_paused = true)]
async fn pain_12_a_mark_of_another_programs_virtual_server_is_never_touched_and_the_service_gets_another()
 {
    // The mark is on disk, or the one that a new Service would get.
    for on_disk in [true, false] {
        let shared = Shared::default();
        let theirs = with_foreign_mark(&shared).await;
        if !on_disk {
            shared.0.borrow_mut().marks.clear();
        }
        let mut agent = Loop::over(&shared);
        agent.journal();
        agent
            .start(vec![local("web", 1), slice("web", TCP, &["10.244.1.7@n1"])])
            .await;
        agent.check().await;
        let own = only_mark(&agent);
        assert_ne!(own, theirs);
        let about_it = format!("{} ", key_of(theirs));
        let journal = agent.journal();
        assert!(!journal.concat().contains(&about_it), "{journal:?}");
        let saved = agent.save();
        for (mark, pod) in [(theirs, "10.244.1.1"), (own, "10.244.1.7")] {
            let line = format!("-a {} -r {pod}:80 -m -w 1", key_of(mark));
            assert!(saved.contains(&line), "{saved:?}");
        }
        let state = agent.reconciler.service_state("web").await;
        let mut servers = state.servers.iter();
        assert!(servers.all(|one| !matches!(one.status, ProgramStatus::Foreign)));
    }
}

#[tokio::test(start_paused = true)]
async fn pain_12_a_virtual_server_that_another_program_adds_later_is_avoided_after_the_next_check()
{
    let shared = Shared::default();
    let mark = only_mark(&serving(&shared).await);
    let theirs = shared.0.borrow().servers[&key_of(mark)].clone();
    let shared = Shared::default();
    let mut agent = started(&shared, Vec::new()).await;
    agent.world().servers.insert(key_of(mark), theirs);
    agent.check().await;
    agent.apply([local("web", 1), both("web", 1)]).await;
    assert_ne!(only_mark(&agent), mark);
    // It is free again when that program deletes it.
    agent.world().servers.remove(&key_of(mark));
    agent.check().await;
    agent.delete(&local("web", 1)).await;
    agent.apply([local("web", 1)]).await;
    assert_eq!(only_mark(&agent), mark);
}

#[tokio::test(start_paused = true)]
async fn a_virtual_server_of_another_program_with_the_mark_is_adopted_if_configured() {
    let shared = Shared::default();
    let mark = with_foreign_mark(&shared).await;
    let mut agent = Loop::with(&shared, |config| config.adopt = true);
    agent.start(vec![local("web", 1), both("web", 1)]).await;
    assert!(agent.world().record.contains(&key_of(mark)));
    agent.apply([everywhere("web", 1)]).await;
    agent.settle(6_000).await;
    assert_eq!(in_kernel(&agent), [0; 0]);
}
