//! The time that objects are checked against: read for each object, never stored.

use std::fmt;
use std::sync::Arc;

/// Returns the time in milliseconds since 1970, or `None` if it is not known. Clones return the
/// same time. The default is the clock of this machine.
#[derive(Clone)]
pub struct Clock(Option<Arc<dyn Fn() -> i64 + Send + Sync>>);

impl Clock {
    pub fn system() -> Self {
        Self::reading(|| jiff::Timestamp::now().as_millisecond())
    }

    /// A clock that always returns `now`.
    pub fn at(now: Option<i64>) -> Self {
        now.map_or(Self(None), |now| Self::reading(move || now))
    }

    /// A clock that calls `read` for each [`now`](Self::now).
    pub fn reading(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// In milliseconds since 1970; `None` if the time is not known.
    pub fn now(&self) -> Option<i64> {
        self.0.as_ref().map(|read| read())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
