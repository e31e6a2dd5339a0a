//! The five modes of a policy.

/// The meaning of a policy's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Only endpoints in the levels; otherwise clients are refused.
    Hard,
    /// The first level with endpoints takes all.
    Prefer,
    /// Each level gets its share.
    Weighted,
    /// As near as possible without overloading a level: `Prefer` with a cap.
    Balanced,
    /// No preference.
    None,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] = [
        Self::Hard,
        Self::Prefer,
        Self::Weighted,
        Self::Balanced,
        Self::None,
    ];

    /// The value in annotations and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Prefer => "prefer",
            Self::Weighted => "weighted",
            Self::Balanced => "balanced",
            Self::None => "none",
        }
    }

    /// The value in our custom resources.
    pub const fn api_value(self) -> &'static str {
        match self {
            Self::Hard => "Hard",
            Self::Prefer => "Prefer",
            Self::Weighted => "Weighted",
            Self::Balanced => "Balanced",
            Self::None => "None",
        }
    }
}
