//! Prints the page about kube-proxy's settings; `cargo xtask codegen` runs it for `docs/kube-proxy-settings.md`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

fn main() {
    print!("{}", cli::args::proxy_config::page());
}
