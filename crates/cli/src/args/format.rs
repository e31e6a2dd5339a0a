//! How each command prints.

use clap::ValueEnum;

use super::strict::Reader;

/// How `simulate` prints.
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
    /// Who reads this.
    pub fn reader(self) -> Reader {
        match self {
            Self::Table | Self::Html => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}

/// How `render` prints.
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
    /// Who reads this.
    pub fn reader(self) -> Reader {
        match self {
            Self::Table | Self::Save => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}

/// How `status` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// For people; fits 80 columns.
    Table,
    /// For people with a wide terminal: counters, bytes and reasons too.
    Wide,
    /// Everything the agent knows.
    Json,
}

/// How `diff` and `explain` print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl TextFormat {
    /// Who reads this.
    pub fn reader(self) -> Reader {
        match self {
            Self::Text => Reader::Person,
            Self::Json => Reader::Program,
        }
    }
}
