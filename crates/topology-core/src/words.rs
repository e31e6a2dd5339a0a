//! The words of our own kinds of objects: one list for each enum, and one way to read it.

use std::fmt;
use std::str::FromStr;

use crate::model::{DrainScope, Enforcement, HardServices, OnLastDomain, Operator};
use crate::policy::{AvoidMode, DemandKind, EmptyTier, Mode, OnNoMatch, Residual, Weighting};

/// A word that is none of those that an enum has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownWord;

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none of the known words")
    }
}

impl std::error::Error for UnknownWord {}

/// Gives enums their words. A variant without one does not compile.
macro_rules! words {
    ($($name:ident { $($variant:ident => $word:literal,)+ })+) => { $(
        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for it in objects of our own kinds.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let mut all = Self::ALL.iter();
                all.find(|one| one.title() == text).copied().ok_or(UnknownWord)
            }
        }
    )+ };
}

words! {
    Enforcement {
        Default => "Default",
        Override => "Override",
    }
    Operator {
        In => "In",
        NotIn => "NotIn",
        Exists => "Exists",
        DoesNotExist => "DoesNotExist",
    }
    Weighting {
        TierShare => "TierShare",
        EndpointBias => "EndpointBias",
    }
    EmptyTier {
        Cascade => "Cascade",
        Renormalize => "Renormalize",
    }
    Residual {
        Capacity => "Capacity",
        Even => "Even",
    }
    OnNoMatch {
        Reject => "Reject",
        Drop => "Drop",
    }
    DemandKind {
        NodeCount => "NodeCount",
        AllocatableCpu => "AllocatableCPU",
        Static => "Static",
    }
    AvoidMode {
        Hard => "Hard",
        Soft => "Soft",
    }
    DrainScope {
        Endpoints => "Endpoints",
        Clients => "Clients",
        Both => "Both",
    }
    OnLastDomain {
        Ignore => "Ignore",
        Force => "Force",
    }
    HardServices {
        Ignore => "Ignore",
        Apply => "Apply",
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    /// Reads what [`Mode::title`] says.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.title() == text).ok_or(UnknownWord)
    }
}
