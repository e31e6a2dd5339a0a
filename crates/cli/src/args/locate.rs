//! The options of `locate`.

use std::net::IpAddr;

use clap::Args;

use super::{OriginArgs, StrictArgs, TextFormat, values};

#[derive(Debug, Args)]
pub struct LocateArgs {
    /// The address of a pod, a node or an endpoint.
    #[arg(value_name = "ADDRESS", value_parser = values::located_ip)]
    pub address: IpAddr,

    #[command(flatten)]
    pub origin: OriginArgs,

    #[command(flatten)]
    pub strict: StrictArgs,

    /// Text for people, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TextFormat::Text)]
    pub output: TextFormat,
}
