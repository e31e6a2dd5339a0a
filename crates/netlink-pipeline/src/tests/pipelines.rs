//! Each request has its own result, regardless of other failures.

use proptest::prelude::*;

use super::kernel::{Act, Kernel};
use crate::{
    Batch, Datagram, Limits, Pipeline, Request, RequestError, RequestResult, Source, Unsendable,
};

/// Sends messages of type 1000, 1001, ... to a simulated kernel, and returns the results.
fn run(kernel: &mut Kernel, count: u16, limits: Limits, buffer: usize) -> Vec<RequestResult> {
    let mut batch = Batch::new();
    for kind in 0..count {
        batch.push(Request::new(1000 + kind, 0), &kind.to_ne_bytes());
    }
    let mut pipeline = Pipeline::new(batch, limits, buffer, |_, _| Ok(()));
    kernel.converse(&mut pipeline).unwrap();
    pipeline.into_results()
}

fn errno(outcome: &RequestResult) -> Option<i32> {
    match outcome {
        Err(failure) => match &**failure {
            RequestError::Refused(nack) => Some(nack.errno),
            _ => None,
        },
        Ok(()) => None,
    }
}

const BUFFER: usize = 8 << 20;

#[test]
fn a_failure_in_the_middle_of_a_datagram_is_that_messages_alone() {
    let mut kernel = Kernel::new(1000);
    kernel.acts.insert(1001, Act::Fail(17));
    kernel.acts.insert(1009, Act::Fail(2));
    let outcomes = run(&mut kernel, 10, Limits::default(), BUFFER);
    let numbers: Vec<_> = outcomes.iter().map(errno).collect();
    let mut expected = [None; 10];
    expected[1] = Some(17);
    expected[9] = Some(2);
    assert_eq!(numbers, expected);
    assert_eq!(
        kernel.worked.len(),
        10,
        "messages after a failure still run"
    );
}

#[test]
fn ten_thousand_messages_take_one_answer_for_each_datagram() {
    let mut kernel = Kernel::new(100_000);
    let outcomes = run(&mut kernel, 10_000, Limits::default(), BUFFER);
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(kernel.worked, (1000..11_000).collect::<Vec<_>>());
    assert!(kernel.most_queued <= 10_000_usize.div_ceil(128));
}

/// The kernel's charge for an error without explanation, measured: 832 bytes.
#[test]
fn a_small_receive_buffer_never_overflows_even_if_everything_fails() {
    let buffer = 212_992;
    let mut kernel = Kernel::new(buffer / 832);
    for kind in 1000..3000 {
        kernel.acts.insert(kind, Act::Fail(2));
    }
    let outcomes = run(&mut kernel, 2000, Limits::default(), buffer);
    assert!(outcomes.iter().all(|outcome| errno(outcome) == Some(2)));
}

#[test]
fn an_overrun_makes_outcomes_unknown_and_the_rest_is_still_sent() {
    let mut kernel = Kernel::new(10);
    for kind in 1000..1100 {
        kernel.acts.insert(kind, Act::Fail(2));
    }
    let outcomes = run(&mut kernel, 300, Limits::default(), BUFFER);
    assert_eq!(kernel.worked.len(), 300);
    let unknown =
        |outcome: &RequestResult| matches!(outcome, Err(f) if **f == RequestError::Unknown);
    assert!(
        outcomes[..10]
            .iter()
            .all(|outcome| errno(outcome) == Some(2))
    );
    assert!(outcomes[10..128].iter().all(unknown));
    assert!(
        outcomes[100..]
            .iter()
            .all(|outcome| errno(outcome).is_none())
    );
}

#[test]
fn answers_reach_their_request() {
    let mut kernel = Kernel::new(1000);
    kernel.acts.insert(51, Act::Answer);
    let mut batch = Batch::new();
    for number in 0..200_u8 {
        batch.push(
            Request::new(50 + u16::from(number % 2), 0).with_answer(),
            &[number],
        );
    }
    let mut answers = Vec::new();
    let mut pipeline = Pipeline::new(batch, Limits::default(), BUFFER, |index, message| {
        answers.push((index, message.payload[0]));
        Ok(())
    });
    kernel.converse(&mut pipeline).unwrap();
    assert!(pipeline.into_results().iter().all(Result::is_ok));
    let expected: Vec<_> = (1..200)
        .step_by(2)
        .map(|n: u8| (usize::from(n), n))
        .collect();
    assert_eq!(answers, expected);
}

/// A source of which every third message cannot be sent.
struct Patchy(u16);

impl Source for Patchy {
    fn write_next(&mut self, datagram: &mut Datagram) -> Option<Result<(), Unsendable>> {
        self.0 += 1;
        match self.0 {
            100.. => None,
            number if number % 3 == 0 => Some(Err(Unsendable("every third"))),
            number => Some(datagram.push(Request::new(1000 + number, 0), |_| ())),
        }
    }
}

#[test]
fn what_cannot_be_sent_has_its_own_outcome_and_shifts_no_other() {
    // With the smaller ones a datagram waits for replies before it is sent.
    for buffer in [BUFFER, 40_000, 10_000, 1] {
        let mut kernel = Kernel::new(1000);
        for failing in [1005, 1050, 1052, 1098] {
            kernel.acts.insert(failing, Act::Fail(5));
        }
        let mut pipeline = Pipeline::new(Patchy(0), Limits::default(), buffer, |_, _| Ok(()));
        kernel.converse(&mut pipeline).unwrap();
        let outcomes = pipeline.into_results();
        assert_eq!(outcomes.len(), 99);
        for (number, outcome) in (1..).zip(&outcomes) {
            match outcome {
                Err(failure) if number % 3 == 0 => {
                    assert_eq!(
                        **failure,
                        RequestError::Unsendable(Unsendable("every third"))
                    );
                }
                outcome => {
                    let expected = [5, 50, 52, 98].contains(&number).then_some(5);
                    assert_eq!(errno(outcome), expected, "{number}, buffer {buffer}");
                }
            }
        }
    }
}

proptest! {
    /// With any failures and losses: a failed request never has a success as its result, and nothing is sent twice.
    #[test]
    fn no_success_is_ever_concluded_from_a_lost_failure(
        failing in proptest::collection::btree_map(1000_u16..1400, 1_i32..130, 0..400),
        capacity in 1_usize..200,
        messages in 1_usize..150,
        bytes in 16_usize..4000,
        buffer in 1_usize..1_000_000,
    ) {
        let mut kernel = Kernel::new(capacity);
        for (kind, number) in &failing {
            kernel.acts.insert(*kind, Act::Fail(*number));
        }
        let limits = Limits { messages, bytes };
        let outcomes = run(&mut kernel, 400, limits, buffer);
        prop_assert_eq!(outcomes.len(), 400);
        prop_assert_eq!(kernel.worked, (1000..1400).collect::<Vec<_>>());
        for (kind, outcome) in (1000_u16..).zip(&outcomes) {
            match outcome {
                Ok(()) => prop_assert!(!failing.contains_key(&kind)),
                Err(_) => if let Some(number) = errno(outcome) {
                    prop_assert_eq!(Some(&number), failing.get(&kind));
                },
            }
        }
    }
}
