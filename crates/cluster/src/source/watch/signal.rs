//! Collects the operating system's messages about files into bursts, and decides how long to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::EventKind;
use notify::event::{AccessKind, AccessMode, ModifyKind};

/// Quiet time after every writer has closed or replaced its file.
const SETTLED: Duration = Duration::from_millis(5);
/// Quiet time after a file was deleted or created, which may be the first half of a change.
const UNSETTLED: Duration = Duration::from_millis(100);
/// Quiet time while a program writes to a file, because half a file is of no use.
const WRITING: Duration = Duration::from_secs(1);
/// After this time, files are read even if the changes do not end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same while a program writes to a file.
const PATIENCE_WHILE_WRITING: Duration = Duration::from_secs(10);

/// One message to the thread that follows files.
#[derive(Debug)]
pub(super) enum Signal {
    /// These paths changed.
    Touched {
        /// Entries of the watched folders.
        paths: Vec<PathBuf>,
        phase: Phase,
    },
    /// Messages were lost, so any path may have changed.
    Lost,
    /// The receiver of the batches was dropped.
    Stop,
}

/// The progress of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The change has ended.
    Settled,
    /// More steps may follow.
    Unsettled,
    /// A program wrote to a file and has it still open.
    Writing,
}

/// All changes in one burst.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) paths: BTreeSet<PathBuf>,
    /// Whether messages were lost, so that other paths may have changed, too.
    pub(super) lost: bool,
    /// Changes that may not have ended.
    unfinished: BTreeMap<PathBuf, Phase>,
}

impl Signal {
    /// The signal for a message of the operating system. `None` if nothing changed, for example if
    /// a file was opened.
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

/// Waits for a change and then for its end. `None` means stop.
///
/// With `poll`, handles a silence of that length like lost messages. Waits only for paths that
/// `matter`: a log beside the files may be written to all the time.
pub(super) fn burst(
    signals: &Receiver<Signal>,
    poll: Option<Duration>,
    matter: impl Fn(&Path) -> bool,
) -> Option<Burst> {
    let mut burst = Burst::default();
    burst.add(first(signals, poll)?, &matter)?;
    let begin = Instant::now();
    let mut latest = begin;
    loop {
        let (quiet, patience) = burst.waits();
        if begin.elapsed() > patience {
            return Some(burst);
        }
        let end = (latest + quiet).min(begin + patience);
        match signals.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(signal) => {
                if burst.add(signal, &matter)? {
                    latest = Instant::now();
                }
            }
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
    /// Adds a signal, and returns whether it matters; `None` means stop.
    fn add(&mut self, signal: Signal, matter: impl Fn(&Path) -> bool) -> Option<bool> {
        let mut matters = false;
        match signal {
            Signal::Touched { paths, phase } => {
                for path in paths {
                    if matter(&path) {
                        matters = true;
                        self.proceed(&path, phase);
                    }
                    self.paths.insert(path);
                }
            }
            Signal::Lost => {
                matters = true;
                self.lost = true;
            }
            Signal::Stop => return None,
        }
        Some(matters)
    }

    fn proceed(&mut self, path: &Path, phase: Phase) {
        if phase == Phase::Settled {
            self.unfinished.remove(path);
        } else {
            self.unfinished.insert(path.to_owned(), phase);
        }
    }

    /// How long to wait after the last signal, and after the first.
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
    use std::thread;

    use notify::event::{CreateKind, DataChange, RemoveKind, RenameMode};

    use super::*;

    fn touched(path: &str, phase: Phase) -> Signal {
        Signal::Touched {
            paths: vec![path.into()],
            phase,
        }
    }

    /// A burst after these signals, and how long it waits.
    fn after(signals: Vec<Signal>) -> (Burst, Duration) {
        let mut burst = Burst::default();
        for signal in signals {
            burst.add(signal, |path| path != "log").unwrap();
        }
        let (quiet, _) = burst.waits();
        (burst, quiet)
    }

    fn received(signals: Vec<Signal>) -> Option<Burst> {
        let (sender, receiver) = channel();
        for signal in signals {
            sender.send(signal).unwrap();
        }
        burst(&receiver, None, |_| true)
    }

    #[test]
    fn a_finished_change_does_not_wait() {
        let (burst, quiet) = after(vec![
            touched("a", Phase::Writing),
            touched("a", Phase::Settled),
        ]);
        assert_eq!(quiet, SETTLED);
        assert!(burst.paths.contains(&PathBuf::from("a")));
    }

    #[test]
    fn an_open_file_waits_although_other_files_are_finished() {
        let (_, quiet) = after(vec![
            touched("a", Phase::Writing),
            touched("b", Phase::Settled),
        ]);
        assert_eq!(quiet, WRITING);
    }

    #[test]
    fn a_file_that_does_not_matter_does_not_wait() {
        for phase in [Phase::Writing, Phase::Unsettled] {
            let (_, quiet) = after(vec![touched("a", Phase::Settled), touched("log", phase)]);
            assert_eq!(quiet, SETTLED);
        }
    }

    #[test]
    fn the_first_half_of_a_replacement_waits_a_little() {
        let (burst, quiet) = after(vec![
            touched("a", Phase::Unsettled),
            touched("b", Phase::Settled),
        ]);
        assert_eq!(quiet, UNSETTLED);
        assert_eq!(burst.paths.len(), 2);
    }

    #[test]
    fn a_burst_holds_all_signals_that_come_at_once() {
        let (sender, receiver) = channel();
        sender.send(touched("a", Phase::Settled)).unwrap();
        sender.send(Signal::Lost).unwrap();
        let found = burst(&receiver, None, |_| true).unwrap();
        assert!(found.lost && found.paths.len() == 1);
        drop(sender);
        assert_eq!(
            burst(&receiver, None, |_| true),
            None,
            "the sender is dropped"
        );
    }

    #[test]
    fn a_file_that_does_not_matter_does_not_prolong_a_burst() {
        let (sender, receiver) = channel();
        sender.send(touched("a", Phase::Settled)).unwrap();
        let log = thread::spawn(move || {
            for _ in 0..500 {
                thread::sleep(Duration::from_millis(1));
                if sender.send(touched("log", Phase::Writing)).is_err() {
                    return;
                }
            }
            drop(sender.send(touched("later", Phase::Settled)));
        });
        let found = burst(&receiver, None, |path| path != "log").unwrap();
        assert!(found.paths.contains(Path::new("a")));
        assert!(!found.paths.contains(Path::new("later")));
        drop(receiver);
        log.join().unwrap();
    }

    #[test]
    fn stop_ends_a_burst_at_any_time() {
        assert_eq!(received(vec![Signal::Stop]), None);
        assert_eq!(received(vec![Signal::Lost, Signal::Stop]), None);
    }

    #[test]
    fn silence_counts_as_a_change_where_folders_cannot_be_watched() {
        let (keep, signals) = channel();
        let burst = burst(&signals, Some(Duration::from_millis(1)), |_| true).unwrap();
        assert!(burst.lost);
        drop(keep);
    }

    #[test]
    fn messages_have_a_phase_by_what_may_follow() {
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
