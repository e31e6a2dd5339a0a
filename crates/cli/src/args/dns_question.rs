//! Options for a question to `ipvs-topo dns`.

use std::net::IpAddr;

use clap::Args;

use super::values;

#[derive(Debug, Clone, Copy, Args)]
pub struct DnsQuestionArgs {
    /// Explain what `ipvs-topo dns` answers for the name of the Service; with a port, to SRV
    /// questions for the port.
    #[arg(long)]
    pub dns: bool,

    /// The address of the client that asks; default: a client on the node of --node.
    #[arg(long, value_name = "IP", value_parser = values::client_ip, requires = "dns")]
    pub client: Option<IpAddr>,
}
