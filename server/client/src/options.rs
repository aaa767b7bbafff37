//! How a client connects and how long it waits.

use std::time::Duration;

/// Settings of a [`crate::Client`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long a call with one answer may take. A write that takes longer has an unknown outcome.
    pub deadline: Duration,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How often a silent connection is asked whether it is still there.
    pub keepalive_interval: Duration,
    /// How long it may take to answer that before its calls are given up.
    pub keepalive_timeout: Duration,
    /// Longest answer that is read, in bytes.
    pub message_bytes_max: usize,
    /// How often a read is sent at most, where the server can't be reached. Writes are sent once,
    /// except as below.
    pub read_tries: u32,
    /// How often a session sends a step of an intent at most, where its outcome isn't known; 0 and
    /// 1 are once. All sendings and the waits between them are within `deadline`.
    pub intent_tries: u32,
    /// How many commits of a pipeline may be under way.
    pub pipeline_window: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            keepalive_interval: Duration::from_secs(20),
            keepalive_timeout: Duration::from_secs(10),
            message_bytes_max: 20 << 20,
            read_tries: 3,
            intent_tries: 5,
            pipeline_window: 4_096,
        }
    }
}
