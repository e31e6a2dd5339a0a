//! Reads the records of a guest that measures.

use anyhow::bail;
use guest_wire::{Line, Record};
use testbed::vm::machine::{CpuTime, Machine};
use testbed::vm::progress::ProgressLine;

/// The readings of a guest.
pub(super) struct GuestResult {
    pub(super) record: Record,
    /// CPU time that this machine had given the guest at each [`Record::Mark`].
    pub(super) marks: Vec<CpuTime>,
}

/// Shows the guest's progress until it powers off, and returns its result.
pub(super) fn listen(mut machine: Machine, boot: ProgressLine) -> anyhow::Result<GuestResult> {
    let mut boot = Some(boot);
    let mut marks = Vec::new();
    let mut result = None;
    let mut status = None;
    while let Some(text) = machine.line()? {
        if let Some(boot) = boot.take() {
            boot.done("");
        }
        match Line::parse(&text) {
            Line::Record(_, Record::Exit { status: ended }) => status = Some(ended),
            Line::Record(_, Record::Mark) => marks.push(machine.cpu_time()?),
            Line::Record(_, record) if result.is_none() => result = Some(record),
            Line::Text(text) if text.is_empty() => {}
            Line::Text(text) => anstream::eprintln!("    {text}"),
            Line::Record(..) | Line::Broken(_) => {
                bail!(machine.report(&format!("unexpected: {text}")))
            }
        }
    }
    match (result, status) {
        (Some(record), Some(0)) => Ok(GuestResult { record, marks }),
        (_, Some(status)) => {
            bail!(machine.report(&format!("the measurement failed with status {status}")))
        }
        (_, None) => bail!(machine.report("the guest ended before the measurement did")),
    }
}
