//! Output formats of the commands.

use clap::ValueEnum;

use super::strict::Reader;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SimulateFormat {
    /// For people; fits 80 columns.
    Table,
    /// For programs: every endpoint of every Service.
    Json,
    /// A page that needs no network.
    Html,
}

impl SimulateFormat {
    pub fn reader(self) -> Reader {
        match self {
            Self::Table | Self::Html => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// For people.
    Table,
    /// The lines of `ipvsadm-save -n`, sorted bytewise.
    Save,
    /// The JSON of `docs/inspect.md`.
    Json,
}

impl RenderFormat {
    pub fn reader(self) -> Reader {
        match self {
            Self::Table | Self::Save => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// For people; fits 80 columns.
    Table,
    /// For people with a wide terminal: also counters, bytes and reasons.
    Wide,
    /// Everything the agent knows.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl TextFormat {
    pub fn reader(self) -> Reader {
        match self {
            Self::Text => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}
