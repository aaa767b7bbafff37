//! The bounds of a server, by name.

use std::fmt;
use std::time::Duration;

/// Bounds and times of a server. The defaults suit one machine in a trusted network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Most connections at once; one more is closed as soon as it is accepted. Fewer where the
    /// process may not have as many file descriptors.
    pub connections_max: usize,
    /// Most calls at once on one connection.
    pub streams_per_connection_max: u32,
    /// Most bytes of the headers of one call.
    pub header_bytes_max: u32,
    /// Most commit streams at once, over all connections; one more is refused.
    pub commit_streams_max: usize,
    /// Most scans and take-overs at once; one more is refused. Each holds a snapshot of the store,
    /// and pages that its client hasn't read yet: about six times `page_bytes`.
    pub scans_max: usize,
    /// Most watches at once; one more is refused.
    pub watches_max: usize,
    /// Most commits of one stream that wait for their verdict; behind that the client has to wait.
    pub stream_window: usize,
    /// A page of a scan ends before it has this many bytes, unless one record alone is larger. At
    /// most 4 MiB less framing, so that clients with the usual bound can read it.
    pub page_bytes: usize,
    /// Most records of a page.
    pub page_records_max: usize,
    /// The longest that a call with one answer may take. A client's own deadline may be shorter.
    pub request_timeout: Duration,
    /// How long a connection may take to say its first words.
    pub handshake_timeout: Duration,
    /// How often a silent connection is asked whether it is still there.
    pub keepalive_interval: Duration,
    /// How long it may take to answer that.
    pub keepalive_timeout: Duration,
    /// How often a watch without changes tells the current revision.
    pub progress_interval: Duration,
    /// How often the health of the store is looked at.
    pub health_interval: Duration,
    /// How long a shutdown waits for calls to end before it cuts them off.
    pub shutdown_grace: Duration,
}

/// The largest message that clients with gRPC's usual bound can read, in bytes.
pub(crate) const COMMON_MESSAGE_BYTES: usize = 4 << 20;
/// What a page needs beside its records: its revision, its token and framing.
pub(crate) const PAGE_OVERHEAD_BYTES: usize = 8 << 10;

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            streams_per_connection_max: 256,
            header_bytes_max: 16 << 10,
            commit_streams_max: 1_024,
            scans_max: 64,
            watches_max: 4_096,
            stream_window: 4_096,
            page_bytes: 1 << 20,
            page_records_max: 4_096,
            request_timeout: Duration::from_secs(60),
            handshake_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(20),
            keepalive_timeout: Duration::from_secs(10),
            progress_interval: Duration::from_secs(5),
            health_interval: Duration::from_millis(200),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// An option that is out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The field of [`ServeOptions`]; times in milliseconds.
    pub field: &'static str,
    /// The lowest allowed value.
    pub min: u64,
    /// The highest allowed value.
    pub max: u64,
    /// What was given.
    pub given: u64,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            min,
            max,
            given,
        } = self;
        write!(f, "{field} is {given}; allowed is {min} to {max}")
    }
}

impl std::error::Error for OptionError {}

fn number(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ServeOptions {
    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// The first option that is out of its bounds.
    ///
    /// ```
    /// use highwater_server::ServeOptions;
    ///
    /// let mut options = ServeOptions::default();
    /// assert!(options.validate().is_ok());
    /// options.page_bytes = 5 << 20;
    /// assert_eq!(options.validate().unwrap_err().field, "page_bytes");
    /// ```
    pub fn validate(&self) -> Result<(), OptionError> {
        let page_bytes_max = number(COMMON_MESSAGE_BYTES) - number(PAGE_OVERHEAD_BYTES);
        let (million, day) = (1_000_000, 86_400_000);
        let checks = [
            ("connections_max", number(self.connections_max), million),
            (
                "streams_per_connection_max",
                u64::from(self.streams_per_connection_max),
                million,
            ),
            (
                "header_bytes_max",
                u64::from(self.header_bytes_max),
                million,
            ),
            (
                "commit_streams_max",
                number(self.commit_streams_max),
                million,
            ),
            ("scans_max", number(self.scans_max), million),
            ("watches_max", number(self.watches_max), million),
            ("stream_window", number(self.stream_window), million),
            ("page_bytes", number(self.page_bytes), page_bytes_max),
            ("page_records_max", number(self.page_records_max), million),
            ("request_timeout", milliseconds(self.request_timeout), day),
            (
                "handshake_timeout",
                milliseconds(self.handshake_timeout),
                day,
            ),
            (
                "keepalive_interval",
                milliseconds(self.keepalive_interval),
                day,
            ),
            (
                "keepalive_timeout",
                milliseconds(self.keepalive_timeout),
                day,
            ),
            (
                "progress_interval",
                milliseconds(self.progress_interval),
                day,
            ),
            ("health_interval", milliseconds(self.health_interval), 1_000),
            ("shutdown_grace", milliseconds(self.shutdown_grace), day),
        ];
        let min = 1;
        match checks
            .into_iter()
            .find(|(_, given, max)| given < &min || given > max)
        {
            Some((field, given, max)) => Err(OptionError {
                field,
                min,
                max,
                given,
            }),
            None => Ok(()),
        }
    }
}
