//! Simulates the kernel's scheduler `wrr` (`net/netfilter/ipvs/ip_vs_wrr.c`).

use crate::ratio::gcd;

/// Returns the picks of `wrr` from its initial state, as indices into `weights`; endless, or empty if no weight is
/// above 0.
///
/// The scheduler walks the list and picks each real server with at least the current weight. After a round the current
/// weight decreases by the greatest common divisor. At the bottom it starts with the largest weight again.
///
/// Example: weights 4, 3, 2 give A A B A B C A B C (Q44).
pub fn wrr(weights: &[u32]) -> impl Iterator<Item = usize> + '_ {
    let common = weights
        .iter()
        .fold(0_u128, |common, weight| gcd(common, u128::from(*weight)));
    // The greatest common divisor of 32-bit numbers fits 32 bits.
    let step = u32::try_from(common).unwrap_or(1).max(1);
    let largest = weights.iter().copied().max().unwrap_or(0);
    let rounds = std::iter::successors(Some(largest), move |level| match *level {
        level if level > step => Some(level - step),
        _ => Some(largest),
    });
    let rounds = rounds.take_while(move |_| largest > 0);
    rounds.flat_map(move |level| {
        let heavy = weights.iter().enumerate();
        heavy.filter_map(move |(at, weight)| (*weight >= level).then_some(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(weights: &[u32], count: usize) -> String {
        let letter = |at| char::from(b'A' + u8::try_from(at).unwrap_or_default());
        wrr(weights).take(count).map(letter).collect()
    }

    #[test]
    fn q44_the_heaviest_are_served_first() {
        assert_eq!(picks(&[4, 3, 2], 9), "AABABCABC");
        assert_eq!(picks(&[5, 1], 6), "AAAAAB");
    }

    #[test]
    fn q44_one_cycle_gives_every_real_server_its_weight() {
        let weights = [96, 6, 6, 6, 1, 1, 1, 1, 1, 1];
        let mut count = [0_u32; 10];
        wrr(&weights).take(120).for_each(|at| count[at] += 1);
        assert_eq!(count, weights);
        let again: Vec<usize> = wrr(&weights).skip(120).take(120).collect();
        assert_eq!(again, wrr(&weights).take(120).collect::<Vec<_>>());
    }

    #[test]
    fn q44_weights_with_a_common_divisor_have_the_short_cycle() {
        assert_eq!(picks(&[20, 10], 6), "AABAAB");
        assert_eq!(picks(&[0, 7, 0, 7], 4), "BDBD");
    }

    #[test]
    fn q44_no_server_is_picked_if_all_weights_are_zero() {
        assert_eq!(picks(&[0, 0], 3), "");
        assert_eq!(picks(&[], 3), "");
    }
}
