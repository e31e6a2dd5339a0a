//! The loop's memory: who asks for what, and what waits.

mod books;
mod retry;
