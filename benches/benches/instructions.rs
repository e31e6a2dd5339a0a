//! `cargo bench -p benches --bench instructions`: counts the instructions of the main paths, which are repeatable, unlike
//! times.
//!
//! Each case runs in its own process under valgrind, once and twice: the difference is one run without its
//! preparation.

#![expect(clippy::print_stdout, reason = "its output is the measurement")]

use std::hint::black_box;
use std::io::ErrorKind;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};
use ipvs_netlink::{Family, codec};
use netlink_pipeline::Limits;
use topology_core::quantise::quantise;

#[path = "inputs/deciding.rs"]
mod deciding;
#[path = "inputs/wire.rs"]
mod wire;

use deciding::{Seen, crowded, hopeless, large, typical, worst};

/// The argument with which this program runs the measured work.
const MEASURED: &str = "--run";

/// A case: its name, and the function that prepares its work.
type Case = (&'static str, fn() -> Box<dyn Fn()>);

const CASES: [Case; 20] = [
    ("resolve everything: 1,000 Services of 10 endpoints", || {
        resolving(Seen::new(1_000, 10))
    }),
    ("... with node ports on 1 address", || {
        resolving(Seen::node_ports(1_000, 1))
    }),
    ("... on 2 addresses", || {
        resolving(Seen::node_ports(1_000, 2))
    }),
    ("... on 10 addresses", || {
        resolving(Seen::node_ports(1_000, 10))
    }),
    ("resolve one Service of 10 endpoints", || {
        resolving(Seen::new(1, 10))
    }),
    ("resolve one Service of 1,000 endpoints", || {
        resolving(Seen::new(1, 1_000))
    }),
    ("... overload capped", || {
        resolving(Seen::new(1, 1_000).capped())
    }),
    ("... a zone drained", || {
        resolving(Seen::new(1, 1_000).draining(60))
    }),
    ("... a drain half-way", || {
        resolving(Seen::new(1, 1_000).draining(30))
    }),
    ("... 100 capacities", || {
        resolving(Seen::new(1, 1_000).uneven())
    }),
    ("resolve one Service of 2,000 ports", || {
        resolving(Seen::new(1, 1).many_ports(2_000))
    }),
    ("... 20,000 ports", || {
        resolving(Seen::new(1, 1).many_ports(20_000))
    }),
    ("quantise 80, 15 and 5 % over 10 endpoints", || {
        quantising(typical)
    }),
    ("quantise 80, 15 and 5 % over 1,000 endpoints", || {
        quantising(large)
    }),
    ("quantise 16 tiers, 5,000 endpoints", || quantising(worst)),
    ("... crowded", || quantising(crowded)),
    ("... hopeless", || quantising(hopeless)),
    ("encode a cold load of 11,000 commands", encoding),
    ("decode one real server of a dump", decoding_destination),
    ("decode one virtual server of a dump", decoding_service),
];

fn resolving(seen: Seen) -> Box<dyn Fn()> {
    Box::new(move || seen.resolve())
}

fn quantising(classes: fn() -> Vec<topology_core::quantise::Class>) -> Box<dyn Fn()> {
    let classes = classes();
    Box::new(move || drop(black_box(quantise(black_box(&classes)))))
}

fn encoding() -> Box<dyn Fn()> {
    let commands = wire::commands();
    Box::new(move || {
        let bytes = codec::encode(black_box(&commands), wire::FAMILY, Limits::default(), 1);
        drop(black_box(bytes));
    })
}

fn decoding_destination() -> Box<dyn Fn()> {
    let bytes = wire::answer_destination();
    Box::new(move || {
        let entry = codec::decode_destination(black_box(&bytes), Family::V4);
        drop(black_box(entry));
    })
}

fn decoding_service() -> Box<dyn Fn()> {
    let bytes = wire::answer_service();
    Box::new(move || drop(black_box(codec::decode_service(black_box(&bytes)))))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, case, times] = arguments.as_slice()
        && first == MEASURED
    {
        return run(case.parse()?, times.parse()?);
    }
    for (index, (name, _)) in CASES.iter().enumerate() {
        let (once, twice) = (instructions(index, 1)?, instructions(index, 2)?);
        println!("{:>12}  {name}", twice.saturating_sub(once));
    }
    Ok(())
}

fn run(case: usize, times: u32) -> Result<()> {
    let (_, prepare) = CASES.get(case).context("no such case")?;
    let work = prepare();
    (0..times).for_each(|_| work());
    Ok(())
}

/// Counts the instructions of a process that repeats the work of a case.
fn instructions(case: usize, times: u32) -> Result<u64> {
    let output = match valgrind(case, times) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("valgrind is not here: apt-get install valgrind");
            let mut install = Command::new("apt-get");
            let done = install.args(["-q", "-y", "install", "valgrind"]).output()?;
            if !done.status.success() {
                bail!("valgrind is not here and `apt-get install valgrind` failed");
            }
            valgrind(case, times)
        }
        result => result,
    }?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = line.with_context(|| format!("valgrind says:\n{text}"))?;
    Ok(number.trim().parse()?)
}

fn valgrind(case: usize, times: u32) -> std::io::Result<Output> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?);
    command.args([MEASURED, &case.to_string(), &times.to_string()]);
    command.output()
}
