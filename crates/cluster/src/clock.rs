//! The time by which objects are judged: read when an object is judged, never kept.

use std::fmt;
use std::sync::Arc;

/// Gives the time, in milliseconds since 1970, or nothing where the time is not known. Clones give the same time; the
/// default is the clock of this machine.
#[derive(Clone)]
pub struct Clock(Option<Arc<dyn Fn() -> i64 + Send + Sync>>);

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        Self::reading(|| jiff::Timestamp::now().as_millisecond())
    }

    /// A clock that stands at `now`; without it the time is not known.
    pub fn at(now: Option<i64>) -> Self {
        now.map_or(Self(None), |now| Self::reading(move || now))
    }

    /// A clock that calls `read` for each time it is asked for.
    pub fn reading(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// Reads the clock; `None` if the time is not known.
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
