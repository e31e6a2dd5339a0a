//! The values of enums in our custom resources, and how they are parsed.

use std::fmt;
use std::str::FromStr;

use crate::model::{DrainScope, Enforcement, HardServices, OnLastDomain, Operator};
use crate::policy::{AvoidMode, DemandKind, EmptyTier, Mode, OnNoMatch, Residual, Weighting};

/// The error for a text that is not a value of the enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownApiValue;

impl fmt::Display for UnknownApiValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none of the known words")
    }
}

impl std::error::Error for UnknownApiValue {}

/// Gives enums the values that the API uses. A variant without a value does not compile.
macro_rules! api_values {
    ($($name:ident { $($variant:ident => $value:literal,)+ })+) => { $(
        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value in our custom resources.
            pub const fn api_value(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = UnknownApiValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let mut all = Self::ALL.iter();
                all.find(|one| one.api_value() == text).copied().ok_or(UnknownApiValue)
            }
        }
    )+ };
}

api_values! {
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
    type Err = UnknownApiValue;

    /// Parses the value of [`Mode::api_value`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.api_value() == text)
            .ok_or(UnknownApiValue)
    }
}
