//! The only place that asks for the wall clock. What it says is advisory and decides nothing.

/// Milliseconds since 1970; 0 if the clock stands before that.
pub(crate) fn wall_clock_ms() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that the ban points to"
    )]
    let now = std::time::SystemTime::now();
    let since = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
