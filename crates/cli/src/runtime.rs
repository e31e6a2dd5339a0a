//! Runs asynchronous work of a command on this thread.

use crate::exit::Failure;

/// Runs `work` to its end.
///
/// # Errors
/// The runtime cannot be built, or `work` fails.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::trouble(format_args!("no async runtime: {error}")))?;
    runtime.block_on(work)
}
