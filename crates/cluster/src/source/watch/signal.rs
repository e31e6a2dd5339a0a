//! What the operating system says about files, and how long to wait for more of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::EventKind;
use notify::event::{AccessKind, AccessMode, ModifyKind};

/// Quiet time after every writer has closed its file or put another one in its place.
const SETTLED: Duration = Duration::from_millis(5);
/// Quiet time after something that may be the first half of a change: a file was deleted or made.
const UNSETTLED: Duration = Duration::from_millis(100);
/// Quiet time while a file is being written to: half a file is not worth hurrying for.
const WRITING: Duration = Duration::from_secs(1);
/// After so long what is there is read, even if the changes do not end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same while a file is being written to.
const PATIENCE_WHILE_WRITING: Duration = Duration::from_secs(10);

/// One message to the following thread.
#[derive(Debug)]
pub(super) enum Signal {
    /// Something happened to these paths.
    Touched {
        /// The entries of the watched folders that it happened to.
        paths: Vec<PathBuf>,
        /// Whether more is to be expected.
        phase: Phase,
    },
    /// Messages were lost; anything may have happened.
    Lost,
    /// Nobody listens any more.
    Stop,
}

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Whoever did it has finished.
    Settled,
    /// It may be one of several steps.
    Unsettled,
    /// A file was written to and is still open.
    Writing,
}

/// Everything that happened in one burst.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Burst {
    /// What was touched.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Whether anything else may have been touched too.
    pub(super) lost: bool,
    /// What may not be finished.
    unfinished: BTreeMap<PathBuf, Phase>,
}

impl Signal {
    /// The signal for a message of the operating system; nothing for those that change nothing,
    /// such as a file that was opened.
    pub(super) fn of(event: notify::Result<notify::Event>) -> Option<Self> {
        let Ok(event) = event else {
            return Some(Self::Lost);
        };
        if event.need_rescan() {
            return Some(Self::Lost);
        }
        let phase = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_)) => Phase::Settled,
            EventKind::Access(_) => return None,
            EventKind::Modify(ModifyKind::Data(_)) => Phase::Writing,
            _ => Phase::Unsettled,
        };
        Some(Self::Touched {
            paths: event.paths,
            phase,
        })
    }
}

/// Waits for something to happen and then for it to be over. `None` means stop.
///
/// With `poll`, silence of that length counts as something that may have happened.
pub(super) fn burst(signals: &Receiver<Signal>, poll: Option<Duration>) -> Option<Burst> {
    let mut burst = Burst::default();
    burst.add(first(signals, poll)?)?;
    let begin = Instant::now();
    loop {
        let (quiet, patience) = burst.waits();
        let left = patience.saturating_sub(begin.elapsed());
        match signals.recv_timeout(quiet.min(left)) {
            Ok(signal) => burst.add(signal)?,
            Err(RecvTimeoutError::Timeout) => return Some(burst),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn first(signals: &Receiver<Signal>, poll: Option<Duration>) -> Option<Signal> {
    let Some(poll) = poll else {
        return signals.recv().ok();
    };
    match signals.recv_timeout(poll) {
        Ok(signal) => Some(signal),
        Err(RecvTimeoutError::Timeout) => Some(Signal::Lost),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

impl Burst {
    /// Adds a signal; `None` means stop.
    fn add(&mut self, signal: Signal) -> Option<()> {
        match signal {
            Signal::Touched { paths, phase } => {
                for path in paths {
                    if phase == Phase::Settled {
                        self.unfinished.remove(&path);
                    } else {
                        self.unfinished.insert(path.clone(), phase);
                    }
                    self.paths.insert(path);
                }
            }
            Signal::Lost => self.lost = true,
            Signal::Stop => return None,
        }
        Some(())
    }

    /// How long to wait for more after the last signal, and after the first.
    fn waits(&self) -> (Duration, Duration) {
        if self.unfinished.is_empty() {
            (SETTLED, PATIENCE)
        } else if self
            .unfinished
            .values()
            .any(|phase| *phase == Phase::Writing)
        {
            (WRITING, PATIENCE_WHILE_WRITING)
        } else {
            (UNSETTLED, PATIENCE)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use notify::event::{CreateKind, DataChange, RemoveKind, RenameMode};

    use super::*;

    fn touched(path: &str, phase: Phase) -> Signal {
        Signal::Touched {
            paths: vec![path.into()],
            phase,
        }
    }

    /// A burst after these signals, and how long it waits for more.
    fn after(signals: Vec<Signal>) -> (Burst, Duration) {
        let mut burst = Burst::default();
        for signal in signals {
            burst.add(signal).unwrap();
        }
        let (quiet, _) = burst.waits();
        (burst, quiet)
    }

    fn received(signals: Vec<Signal>) -> Option<Burst> {
        let (sender, receiver) = channel();
        for signal in signals {
            sender.send(signal).unwrap();
        }
        burst(&receiver, None)
    }

    #[test]
    fn a_finished_change_is_not_waited_on() {
        let (burst, quiet) = after(vec![
            touched("a", Phase::Writing),
            touched("a", Phase::Settled),
        ]);
        assert_eq!(quiet, SETTLED);
        assert!(burst.paths.contains(&PathBuf::from("a")));
    }

    #[test]
    fn a_file_that_is_written_to_is_waited_for_whatever_else_is_finished() {
        let (_, quiet) = after(vec![
            touched("a", Phase::Writing),
            touched("b", Phase::Settled),
        ]);
        assert_eq!(quiet, WRITING);
    }

    #[test]
    fn the_first_half_of_a_replacement_is_waited_on_a_little() {
        let (burst, quiet) = after(vec![
            touched("a", Phase::Unsettled),
            touched("b", Phase::Settled),
        ]);
        assert_eq!(quiet, UNSETTLED);
        assert_eq!(burst.paths.len(), 2);
    }

    #[test]
    fn a_burst_holds_everything_that_comes_at_once() {
        let (sender, receiver) = channel();
        sender.send(touched("a", Phase::Settled)).unwrap();
        sender.send(Signal::Lost).unwrap();
        let burst = burst(&receiver, None).unwrap();
        assert!(burst.lost && burst.paths.len() == 1);
        drop(sender);
        assert_eq!(
            super::burst(&receiver, None),
            None,
            "nobody is left to say anything"
        );
    }

    #[test]
    fn stop_ends_a_burst_at_any_time() {
        assert_eq!(received(vec![Signal::Stop]), None);
        assert_eq!(received(vec![Signal::Lost, Signal::Stop]), None);
    }

    #[test]
    fn silence_counts_as_a_change_where_folders_cannot_be_watched() {
        let (keep, signals) = channel();
        let burst = burst(&signals, Some(Duration::from_millis(1))).unwrap();
        assert!(burst.lost);
        drop(keep);
    }

    #[test]
    fn messages_are_told_apart_by_what_may_follow() {
        let phase = |kind| match Signal::of(Ok(notify::Event::new(kind)))? {
            Signal::Touched { phase, .. } => Some(phase),
            other => panic!("{other:?}"),
        };
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert_eq!(phase(close), Some(Phase::Settled));
        assert_eq!(
            phase(EventKind::Modify(ModifyKind::Name(RenameMode::To))),
            Some(Phase::Settled)
        );
        assert_eq!(
            phase(EventKind::Modify(ModifyKind::Data(DataChange::Any))),
            Some(Phase::Writing)
        );
        assert_eq!(
            phase(EventKind::Create(CreateKind::File)),
            Some(Phase::Unsettled)
        );
        assert_eq!(
            phase(EventKind::Remove(RemoveKind::File)),
            Some(Phase::Unsettled)
        );
        assert_eq!(
            phase(EventKind::Access(AccessKind::Open(AccessMode::Any))),
            None
        );
        let overflow = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert!(matches!(Signal::of(Ok(overflow)), Some(Signal::Lost)));
        assert!(matches!(
            Signal::of(Err(notify::Error::generic("x"))),
            Some(Signal::Lost)
        ));
    }
}
