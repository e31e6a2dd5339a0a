//! Reads a capture.

/// The output of `capture.sh` on one kernel.
pub(crate) struct Capture {
    pub(crate) steps: Vec<Step>,
}

/// One `ipvsadm` command.
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) failed: bool,
    /// Messages to the kernel, with their netlink headers.
    pub(crate) requests: Vec<Vec<u8>>,
    /// Messages from the kernel, with their netlink headers.
    pub(crate) answers: Vec<Vec<u8>>,
}

/// Bytes of a netlink header.
const HEADER: usize = 16;

impl Capture {
    pub(crate) fn parse(text: &str) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let Some((sign, rest)) = line.split_once(' ') else {
                panic!("odd line: {line}");
            };
            match (sign, steps.last_mut()) {
                ("#", None) => {}
                ("$", _) => steps.push(Step {
                    command: rest.to_owned(),
                    failed: false,
                    requests: Vec::new(),
                    answers: Vec::new(),
                }),
                ("!", Some(step)) => step.failed = true,
                (">", Some(step)) => step.requests.push(bytes(rest)),
                ("<", Some(step)) => step.answers.push(bytes(rest)),
                _ => panic!("odd line: {line}"),
            }
        }
        Self { steps }
    }

    /// The step of this command; the first one, if it was run twice.
    pub(crate) fn step(&self, command: &str) -> &Step {
        let mut steps = self.steps.iter();
        let found = steps.find(|step| step.command == command);
        found.unwrap_or_else(|| panic!("no such command was captured: {command}"))
    }
}

/// The payload after a netlink header.
pub(crate) fn payload(message: &[u8]) -> &[u8] {
    &message[HEADER..]
}

/// The command number of a generic-netlink message.
pub(crate) fn number(message: &[u8]) -> u8 {
    message[HEADER]
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().map(|c| c.to_digit(16).unwrap()).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).unwrap();
    digits.chunks(2).map(byte).collect()
}
