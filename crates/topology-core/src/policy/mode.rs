//! The five names of the one engine.

/// What a policy means as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The listed levels or a refusal.
    Hard,
    /// The first level with endpoints takes all.
    Prefer,
    /// Each level its share.
    Weighted,
    /// As near as possible without overloading anybody: prefer with a cap.
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

    /// The word for it in annotations and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Prefer => "prefer",
            Self::Weighted => "weighted",
            Self::Balanced => "balanced",
            Self::None => "none",
        }
    }

    /// The word for it in objects of our own kinds.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hard => "Hard",
            Self::Prefer => "Prefer",
            Self::Weighted => "Weighted",
            Self::Balanced => "Balanced",
            Self::None => "None",
        }
    }
}
