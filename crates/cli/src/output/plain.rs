//! Text that may stand on a terminal, whoever wrote what it is made of.

use std::fmt;

use cluster::text::one_line;

/// Text for people: no character in it commands the terminal, hides, or reorders what stands beside it.
///
/// Everything that [`grid`](super::grid) and [`wrap`](super::wrap) print is made of it. Line breaks are only where
/// [`Plain::lines`] was told to put them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain(String);

impl Plain {
    /// Several texts with `between` in between, which is taken as it is.
    pub fn lines(lines: &[Self], between: &str) -> Self {
        let lines: Vec<&str> = lines.iter().map(Self::as_str).collect();
        Self(lines.join(between))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Plain {
    fn from(text: T) -> Self {
        Self(one_line(text.as_ref()).into_owned())
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
