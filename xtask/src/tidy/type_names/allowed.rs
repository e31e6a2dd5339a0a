//! Lists the names that more than two types have, and how many types have each.

/// The list only gets shorter, and its numbers only smaller.
pub(super) const ALLOWED: &[(&str, usize)] = &[
    ("Answer", 3),
    ("Column", 3),
    ("Connection", 3),
    ("Entry", 3),
    ("Failure", 3),
    ("Figures", 3),
    ("Follower", 3),
    ("Found", 3),
    ("Object", 3),
    ("Open", 3),
    ("Phase", 3),
    ("Record", 3),
    ("Request", 3),
    ("Service", 3),
    ("ServiceEntry", 3),
    ("Shape", 3),
    ("Standing", 3),
    ("State", 6),
    ("Step", 3),
    ("Target", 6),
    ("Value", 3),
];
