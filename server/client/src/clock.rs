//! The clock by which a holder counts what is left of its lease.

use std::fmt::Debug;
use std::time::Duration;

/// A clock that never falls. How fast it runs against other clocks is all that matters of it.
///
/// A holder asks it whenever it is asked itself whether it still holds, so one that goes on while
/// the machine is suspended makes the holder stop at the first question after the resume, however
/// late its timers are. With one that stands still in a suspend, the holder believes for as long as
/// the suspend took that it holds; then the destination's fence alone stops its writes.
pub trait Clock: Debug + Send + Sync {
    /// The time since some moment that stays the same.
    fn now(&self) -> Duration;
}

/// The system's clock that goes on in a suspend: `CLOCK_BOOTTIME` on Linux and Android. Elsewhere
/// it is [`std::time::Instant`], which may stand still in one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock(());

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock for SystemClock {
    fn now(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanoseconds)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Clock for SystemClock {
    fn now(&self) -> Duration {
        use std::sync::OnceLock;
        use std::time::Instant;
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        BEGAN.get_or_init(Instant::now).elapsed()
    }
}
