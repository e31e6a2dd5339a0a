//! Applies the owner limits of an administrator.

use crate::model::OwnerLimits;
use crate::policy::Mode;

/// Whether owners may use `mode`.
pub(super) fn allows(limits: &OwnerLimits, mode: Mode) -> bool {
    limits.allowed_modes.is_empty() || limits.allowed_modes.contains(&mode)
}

/// The cap for owners who request `asked`. `None`, no cap, is always permitted.
pub(super) fn clip(limits: &OwnerLimits, asked: Option<u32>) -> Option<u32> {
    asked.map(|asked| asked.max(limits.min_max_overload.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_below_the_limit_is_raised_and_no_cap_stays_none() {
        let limits = OwnerLimits {
            allowed_modes: vec![Mode::Prefer],
            min_max_overload: Some(20),
        };
        assert_eq!(clip(&limits, Some(0)), Some(20));
        assert_eq!(clip(&limits, Some(30)), Some(30));
        assert_eq!(clip(&limits, None), None);
        assert!(allows(&limits, Mode::Prefer) && !allows(&limits, Mode::Hard));
        assert!(allows(&OwnerLimits::default(), Mode::Hard));
    }
}
