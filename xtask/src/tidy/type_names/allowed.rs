//! Lists the names that more than two types have, and how many types have each.

/// The list only gets shorter, and its numbers only smaller.
pub(super) const ALLOWED: &[(&str, usize)] = &[
    ("Column", 3),
    ("Follower", 3),
    ("Found", 3),
    ("Request", 3),
    ("Service", 3),
    ("ServiceEntry", 3),
    ("Shape", 3),
    ("Standing", 3),
    ("State", 4),
    ("Target", 5),
];
