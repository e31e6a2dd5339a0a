//! `cargo xtask vm shell` and `cargo xtask vm run`: opens a shell or runs one command in a guest.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use guest_wire::{Line, Record};

use super::build;
use super::image::Addition;
use super::kernel::Line as KernelLine;
use super::machine::{GuestClock, GuestSpec};
use super::machines::Machines;
use super::progress::ProgressLine;

#[derive(clap::Args)]
pub(crate) struct Guest {
    /// The kernel to boot.
    #[arg(long, default_value = "6.12")]
    kernel: KernelLine,
    /// A file of this machine to copy to the guest's /root; repeatable.
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// Add a network card that reaches this machine's loopback at 10.0.2.2.
    #[arg(long)]
    network: bool,
    /// Omit the agent and the guest programs, so that nothing must be built.
    #[arg(long)]
    bare: bool,
    /// Add the programs that kube-proxy starts in ipvs mode: iptables and ipset.
    #[arg(long)]
    kube_proxy_tools: bool,
    /// Memory in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u32,
}

/// Options of `cargo xtask vm run`.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    guest: Guest,
    /// Time limit in minutes.
    #[arg(long, default_value_t = 10)]
    limit: u64,
    /// The command: one word is a shell line, more are a program and its arguments.
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// The greeting of the shell.
const GREETING: &str = "\
cat <<'END'
A guest of its own: break what you like. The agent is `ipvs-topo`, examples are in /examples;
ipvsadm, nft, ip, curl, conntrack, tcpdump and strace are here. Leave with `exit` or Ctrl-A X.
END
cd /root
export PS1='guest:\\w# '
exec bash --norc -i
";

/// Opens a shell in a guest.
pub(crate) fn shell(guest: &Guest) -> anyhow::Result<ExitCode> {
    let machines = Machines::open()?;
    let mut additions = additions(guest, &machines)?;
    additions.push(text("job", GREETING));
    additions.push(text("interactive", ""));
    let kernel = machines.kernel(guest.kernel)?;
    anstream::eprintln!("  booting {} (a few seconds)", kernel.release);
    let status = machines.interact(&spec(guest, &kernel, additions, Duration::MAX))?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Runs one command in a guest, prints its output and returns its exit status.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let machines = Machines::open()?;
    let mut additions = additions(&args.guest, &machines)?;
    additions.push(text("job", &format!("cd /root\n{}\n", line(&args.command))));
    let kernel = machines.kernel(args.guest.kernel)?;
    let mut step = Some(ProgressLine::begin(format!("booting {}", kernel.release)));
    let limit = Duration::from_secs(60 * args.limit);
    let mut machine = machines.start(&spec(&args.guest, &kernel, additions, limit))?;
    let mut status = None;
    while let Some(text) = machine.line()? {
        if let Some(step) = step.take() {
            step.done("");
        }
        match Line::parse(&text) {
            Line::Text(text) => anstream::println!("{text}"),
            Line::Record(before, Record::Exit { status: ended }) => {
                if let Some(text) = before {
                    anstream::println!("{text}");
                }
                status = Some(ended);
            }
            Line::Record(..) | Line::Broken(_) => anstream::println!("{text}"),
        }
    }
    let Some(status) = status else {
        bail!(machine.report("the guest ended before the command did"));
    };
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

fn spec<'a>(
    guest: &Guest,
    kernel: &'a super::kernel::Kernel,
    additions: Vec<Addition>,
    limit: Duration,
) -> GuestSpec<'a> {
    GuestSpec {
        kernel,
        additions,
        memory: guest.memory,
        network: guest.network,
        limit,
        clock: GuestClock::Real,
    }
}

fn additions(guest: &Guest, machines: &Machines) -> anyhow::Result<Vec<Addition>> {
    let mut additions = if guest.bare {
        Vec::new()
    } else {
        build::programs(build::Profile::Guest)?
    };
    if guest.kube_proxy_tools {
        additions.extend(machines.kube_proxy_tools()?);
    }
    for file in &guest.add {
        let name = file
            .file_name()
            .with_context(|| format!("{} is not a file", file.display()))?;
        let path = format!("root/{}", name.to_string_lossy());
        let from = file.clone();
        additions.push(if file.is_dir() {
            Addition::Tree { path, from }
        } else {
            Addition::Program { path, from }
        });
    }
    Ok(additions)
}

fn text(path: &str, content: &str) -> Addition {
    Addition::Text {
        path: path.to_owned(),
        content: content.to_owned(),
    }
}

/// Returns the shell line for `words`.
fn line(words: &[String]) -> String {
    match words {
        [one] => one.clone(),
        more => more
            .iter()
            .map(|word| quote(word))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// Quotes `word` for the shell.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_a_shell_line_and_more_are_quoted() {
        assert_eq!(line(&["ip a | wc".to_owned()]), "ip a | wc");
        assert_eq!(
            line(&["echo".to_owned(), "it's".to_owned()]),
            r"'echo' 'it'\''s'"
        );
    }
}
