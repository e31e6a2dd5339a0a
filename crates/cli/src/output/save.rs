//! Prints virtual servers as `ipvsadm-save -n` does, sorted bytewise.
//!
//! The format of `ipvsadm` 1.31: `-A SERVICE -s SCHEDULER`, with persistence `-p SECONDS`, with a
//! scheduler flag `-b FLAG`; and `-a SERVICE -r REAL -m -w WEIGHT`. A full netmask is not printed.
//! Bytewise order puts every `-A` before every `-a`, so `ipvsadm-restore` accepts the lines.

use std::net::SocketAddr;

use topology_core::virtual_server::VirtualServer;

/// The lines of these virtual servers, each ended by a newline.
pub fn save(servers: &[&VirtualServer]) -> String {
    let mut lines: Vec<String> = servers.iter().flat_map(|server| lines(server)).collect();
    lines.sort_unstable();
    lines.concat()
}

fn lines(server: &VirtualServer) -> impl Iterator<Item = String> {
    let key = &server.key;
    let persistence = server
        .persistence
        .map_or_else(String::new, |seconds| format!(" -p {seconds}"));
    let flag = server
        .scheduler
        .fallback()
        .map_or_else(String::new, |flag| format!(" -b {flag}"));
    let head = format!("-A {key} -s {}{persistence}{flag}\n", server.scheduler);
    let reals = server.real_servers.iter().map(move |real| {
        let place = SocketAddr::new(real.address, real.port);
        format!("-a {key} -r {place} -m -w {}\n", real.weight)
    });
    std::iter::once(head).chain(reals)
}
