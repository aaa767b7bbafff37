//! The settings of a server: an option, or an environment variable, or an entry of the file, or the
//! default; the first that is there.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, ValueEnum};
use highwater::{AuditConfig, AuditFailure, Config};
use highwater_server::ServeOptions;
use serde::{Deserialize, Serialize};

use super::log::LogFormat;
use crate::cli::units::{Size, Span};

/// Where a server listens unless told otherwise: on this machine alone.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7_171);
const DATA_DIR: &str = "highwater-data";
const LOG: &str = "info";

/// Declares each setting once: as an option, an environment variable and an entry of the file.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $heading:literal $name:ident: $type:ty, $env:literal;)*) => {
        /// The settings that are given; what isn't given is `None`.
        #[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Settings {
            $(
                $(#[doc = $doc])+
                #[arg(long, env = $env, help_heading = $heading)]
                #[arg(help = with_default(stringify!($name), concat!($($doc),+)))]
                pub(crate) $name: Option<$type>,
            )*
        }

        impl Settings {
            /// These settings, and for those that aren't given the other ones.
            pub(crate) fn or(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

settings! {
    /// The directory of the store; made if it doesn't exist
    "Server" data_dir: PathBuf, "HIGHWATER_DATA_DIR";
    /// The address to listen on; port 0 takes a free one
    "Server" listen: SocketAddr, "HIGHWATER_LISTEN";
    /// What is logged: a level, or target=level, separated by commas
    "Server" log: String, "HIGHWATER_LOG";
    /// How the log is written
    "Server" log_format: LogFormat, "HIGHWATER_LOG_FORMAT";

    /// Longest accepted value, at most 16MiB
    "Bounds of the store" value_bytes: Size, "HIGHWATER_VALUE_BYTES";
    /// Size of a log segment
    "Bounds of the store" segment_bytes: Size, "HIGHWATER_SEGMENT_BYTES";
    /// A checkpoint is begun before the log holds more than this
    "Bounds of the store" log_bytes: Size, "HIGHWATER_LOG_BYTES";
    /// Memory for effects that aren't in the index yet
    "Bounds of the store" memory_bytes: Size, "HIGHWATER_MEMORY_BYTES";
    /// Memory for the latest state of rows that the writer touched
    "Bounds of the store" hot_bytes: Size, "HIGHWATER_HOT_BYTES";
    /// Memory for pages of the index
    "Bounds of the store" index_cache_bytes: Size, "HIGHWATER_INDEX_CACHE_BYTES";
    /// How many commits may wait to be judged
    "Bounds of the store" queue_commits: usize, "HIGHWATER_QUEUE_COMMITS";
    /// How many bytes of commits may wait to be judged
    "Bounds of the store" queue_bytes: Size, "HIGHWATER_QUEUE_BYTES";
    /// A group stops taking commits once it has this many bytes
    "Bounds of the store" group_bytes: Size, "HIGHWATER_GROUP_BYTES";
    /// How much history is kept for watches
    "Bounds of the store" history_bytes: Size, "HIGHWATER_HISTORY_BYTES";
    /// How many deletions are remembered for unchanged-since conditions
    "Bounds of the store" deletions_max: u64, "HIGHWATER_DELETIONS_MAX";
    /// How many snapshots may be open
    "Bounds of the store" snapshots_max: usize, "HIGHWATER_SNAPSHOTS_MAX";
    /// How long a snapshot may be held
    "Bounds of the store" snapshot_age: Span, "HIGHWATER_SNAPSHOT_AGE";

    /// Whether there is an audit trail, and what happens while it can't be written
    "Audit trail" audit: AuditChoice, "HIGHWATER_AUDIT";
    /// A new file is begun before one gets longer than this
    "Audit trail" audit_file_bytes: Size, "HIGHWATER_AUDIT_FILE_BYTES";
    /// The oldest files are removed once all take more than this
    "Audit trail" audit_keep_bytes: Size, "HIGHWATER_AUDIT_KEEP_BYTES";
    /// A file is removed once its newest line is older than this
    "Audit trail" audit_keep_age: Span, "HIGHWATER_AUDIT_KEEP_AGE";
    /// Refusals written a second for each domain, reason and guard; the others are counted
    "Audit trail" audit_refusals_per_second: u32, "HIGHWATER_AUDIT_REFUSALS_PER_SECOND";

    /// Most connections at once
    "Bounds of the server" connections_max: usize, "HIGHWATER_CONNECTIONS_MAX";
    /// Most calls at once on one connection
    "Bounds of the server" streams_per_connection_max: u32, "HIGHWATER_STREAMS_PER_CONNECTION_MAX";
    /// Most bytes of the headers of one call
    "Bounds of the server" header_bytes_max: u32, "HIGHWATER_HEADER_BYTES_MAX";
    /// Most commit streams at once
    "Bounds of the server" commit_streams_max: usize, "HIGHWATER_COMMIT_STREAMS_MAX";
    /// Most scans and take-overs at once; one that its client doesn't read holds several pages
    "Bounds of the server" scans_max: usize, "HIGHWATER_SCANS_MAX";
    /// Most watches at once
    "Bounds of the server" watches_max: usize, "HIGHWATER_WATCHES_MAX";
    /// Most commits of one stream that wait for their verdict
    "Bounds of the server" stream_window: usize, "HIGHWATER_STREAM_WINDOW";
    /// A page of a scan ends before it has this many bytes
    "Bounds of the server" page_bytes: Size, "HIGHWATER_PAGE_BYTES";
    /// Most records of a page
    "Bounds of the server" page_records_max: usize, "HIGHWATER_PAGE_RECORDS_MAX";
    /// The longest that a call with one answer may take
    "Bounds of the server" request_timeout: Span, "HIGHWATER_REQUEST_TIMEOUT";
    /// How long a connection may take to say its first words
    "Bounds of the server" handshake_timeout: Span, "HIGHWATER_HANDSHAKE_TIMEOUT";
    /// How often a silent connection is asked whether it is still there
    "Bounds of the server" keepalive_interval: Span, "HIGHWATER_KEEPALIVE_INTERVAL";
    /// How long it may take to answer that
    "Bounds of the server" keepalive_timeout: Span, "HIGHWATER_KEEPALIVE_TIMEOUT";
    /// How often a watch without changes tells the current revision
    "Bounds of the server" progress_interval: Span, "HIGHWATER_PROGRESS_INTERVAL";
    /// How often the health of the store is looked at
    "Bounds of the server" health_interval: Span, "HIGHWATER_HEALTH_INTERVAL";
    /// How long a shutdown waits for calls to end before it cuts them off
    "Bounds of the server" shutdown_grace: Span, "HIGHWATER_SHUTDOWN_GRACE";
}

/// Whether there is an audit trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditChoice {
    /// There is none
    Off,
    /// There is one; while it can't be written, changes are refused
    Refuse,
    /// There is one; while it can't be written, what it lost is counted in it
    Continue,
}

impl AuditChoice {
    /// What that means for the store, under these bounds.
    fn config(self, bounds: AuditConfig) -> Option<AuditConfig> {
        let on_failure = match self {
            Self::Off => return None,
            Self::Refuse => AuditFailure::Refuse,
            Self::Continue => AuditFailure::Continue,
        };
        Some(AuditConfig {
            on_failure,
            ..bounds
        })
    }
}

/// What is in effect where nothing is given, by the names of the settings.
static DEFAULTS: LazyLock<toml::Table> = LazyLock::new(|| {
    let defaults = Settings::default().effective().settings();
    toml::Table::try_from(defaults).unwrap_or_default()
});

/// The help of a setting: what it is, and what holds where it isn't given.
fn with_default(name: &str, doc: &str) -> String {
    let doc = doc.trim();
    match DEFAULTS.get(name) {
        Some(toml::Value::String(text)) => format!("{doc} [default: {text}]"),
        Some(value) => format!("{doc} [default: {value}]"),
        None => doc.into(),
    }
}

/// The settings in effect.
#[derive(Debug)]
pub(crate) struct Effective {
    /// The directory of the store.
    pub(crate) data_dir: PathBuf,
    /// The address to listen on.
    pub(crate) listen: SocketAddr,
    /// What is logged.
    pub(crate) log: String,
    /// How it is written.
    pub(crate) log_format: LogFormat,
    /// Whether there is an audit trail.
    audit: AuditChoice,
    /// Its bounds, whether there is one or not.
    audit_bounds: AuditConfig,
    /// The bounds of the store.
    pub(crate) config: Config,
    /// The bounds of the server.
    pub(crate) options: ServeOptions,
}

/// Puts a setting where it is given.
fn put<T, S>(field: &mut T, given: Option<S>, read: impl Fn(S) -> T) {
    if let Some(given) = given {
        *field = read(given);
    }
}

/// A size in memory. One that doesn't fit is refused later, as is every one out of its bounds.
fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

impl Settings {
    /// These settings with the defaults of what isn't given.
    pub(crate) fn effective(self) -> Effective {
        let (mut config, options) = (self.config(), self.options());
        let audit = self.audit.unwrap_or(AuditChoice::Off);
        let audit_bounds = self.audit_bounds();
        config.audit = audit.config(audit_bounds);
        Effective {
            audit,
            audit_bounds,
            data_dir: self.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            listen: self.listen.unwrap_or(LISTEN),
            log: self.log.unwrap_or_else(|| LOG.into()),
            log_format: self.log_format.unwrap_or(LogFormat::Text),
            config,
            options,
        }
    }

    fn audit_bounds(&self) -> AuditConfig {
        let mut bounds = AuditConfig::default();
        put(&mut bounds.file_bytes, self.audit_file_bytes, |size| size.0);
        put(&mut bounds.keep_bytes, self.audit_keep_bytes, |size| size.0);
        put(&mut bounds.keep_age, self.audit_keep_age, |span| span.0);
        let refusals = self.audit_refusals_per_second;
        put(&mut bounds.refusals_per_second, refusals, |n| n);
        bounds
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        put(&mut config.limits.value_bytes, self.value_bytes, bytes);
        put(&mut config.segment_bytes, self.segment_bytes, |size| size.0);
        put(&mut config.log_bytes, self.log_bytes, |size| size.0);
        put(&mut config.memory_bytes, self.memory_bytes, bytes);
        put(&mut config.hot_bytes, self.hot_bytes, bytes);
        put(&mut config.index_cache_bytes, self.index_cache_bytes, bytes);
        put(&mut config.queue_commits, self.queue_commits, |n| n);
        put(&mut config.queue_bytes, self.queue_bytes, bytes);
        put(&mut config.group_bytes, self.group_bytes, bytes);
        put(&mut config.history_bytes, self.history_bytes, bytes);
        put(&mut config.deletions_max, self.deletions_max, |n| n);
        put(&mut config.snapshots_max, self.snapshots_max, |n| n);
        put(&mut config.snapshot_age, self.snapshot_age, |span| span.0);
        config
    }

    fn options(&self) -> ServeOptions {
        let mut options = ServeOptions::default();
        let own = &mut options;
        let span = |span: Span| span.0;
        put(&mut own.connections_max, self.connections_max, |n| n);
        let streams = self.streams_per_connection_max;
        put(&mut own.streams_per_connection_max, streams, |n| n);
        put(&mut own.header_bytes_max, self.header_bytes_max, |n| n);
        put(&mut own.commit_streams_max, self.commit_streams_max, |n| n);
        put(&mut own.scans_max, self.scans_max, |n| n);
        put(&mut own.watches_max, self.watches_max, |n| n);
        put(&mut own.stream_window, self.stream_window, |n| n);
        put(&mut own.page_bytes, self.page_bytes, bytes);
        put(&mut own.page_records_max, self.page_records_max, |n| n);
        put(&mut own.request_timeout, self.request_timeout, span);
        put(&mut own.handshake_timeout, self.handshake_timeout, span);
        put(&mut own.keepalive_interval, self.keepalive_interval, span);
        put(&mut own.keepalive_timeout, self.keepalive_timeout, span);
        put(&mut own.progress_interval, self.progress_interval, span);
        put(&mut own.health_interval, self.health_interval, span);
        put(&mut own.shutdown_grace, self.shutdown_grace, span);
        options
    }
}

impl Effective {
    /// The same settings, each one given.
    fn settings(&self) -> Settings {
        let Self {
            config,
            options,
            audit_bounds,
            ..
        } = self;
        let size = |bytes: usize| Some(Size(bytes as u64));
        let span = |time| Some(Span(time));
        Settings {
            data_dir: Some(self.data_dir.clone()),
            listen: Some(self.listen),
            log: Some(self.log.clone()),
            log_format: Some(self.log_format),
            value_bytes: size(config.limits.value_bytes),
            segment_bytes: Some(Size(config.segment_bytes)),
            log_bytes: Some(Size(config.log_bytes)),
            memory_bytes: size(config.memory_bytes),
            hot_bytes: size(config.hot_bytes),
            index_cache_bytes: size(config.index_cache_bytes),
            queue_commits: Some(config.queue_commits),
            queue_bytes: size(config.queue_bytes),
            group_bytes: size(config.group_bytes),
            history_bytes: size(config.history_bytes),
            deletions_max: Some(config.deletions_max),
            snapshots_max: Some(config.snapshots_max),
            snapshot_age: span(config.snapshot_age),
            audit: Some(self.audit),
            audit_file_bytes: Some(Size(audit_bounds.file_bytes)),
            audit_keep_bytes: Some(Size(audit_bounds.keep_bytes)),
            audit_keep_age: span(audit_bounds.keep_age),
            audit_refusals_per_second: Some(audit_bounds.refusals_per_second),
            connections_max: Some(options.connections_max),
            streams_per_connection_max: Some(options.streams_per_connection_max),
            header_bytes_max: Some(options.header_bytes_max),
            commit_streams_max: Some(options.commit_streams_max),
            scans_max: Some(options.scans_max),
            watches_max: Some(options.watches_max),
            stream_window: Some(options.stream_window),
            page_bytes: size(options.page_bytes),
            page_records_max: Some(options.page_records_max),
            request_timeout: span(options.request_timeout),
            handshake_timeout: span(options.handshake_timeout),
            keepalive_interval: span(options.keepalive_interval),
            keepalive_timeout: span(options.keepalive_timeout),
            progress_interval: span(options.progress_interval),
            health_interval: span(options.health_interval),
            shutdown_grace: span(options.shutdown_grace),
        }
    }

    /// The settings as a configuration file.
    pub(crate) fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&self.settings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_configuration_reads_back_as_the_same() {
        let given: Settings = toml::from_str(
            "listen = '[::1]:9'\nsegment_bytes = '1MiB'\nlog_bytes = 8388608\nwatches_max = 7\n\
             shutdown_grace = '250ms'\nlog_format = 'json'",
        )
        .unwrap();
        let effective = given.effective();
        assert_eq!(effective.config.segment_bytes, 1 << 20);
        assert_eq!(effective.config.log_bytes, 8 << 20);
        assert_eq!(effective.options.watches_max, 7);
        assert_eq!(effective.options.shutdown_grace.as_millis(), 250);
        assert_eq!(effective.log_format, LogFormat::Json);
        let printed = effective.to_toml().unwrap();
        let read: Settings = toml::from_str(&printed).unwrap();
        assert_eq!(read, effective.settings());
    }

    #[test]
    fn every_setting_that_is_given_arrives() {
        // Every line of the defaults is changed and has to come out changed.
        let defaults = Settings::default().effective().to_toml().unwrap();
        for line in defaults.lines() {
            let (name, value) = line.split_once(" = ").unwrap();
            let other = match value {
                "\"text\"" => "\"json\"".into(),
                "\"127.0.0.1:7171\"" => "\"127.0.0.1:9\"".into(),
                "\"off\"" => "\"continue\"".into(),
                text if text.ends_with("min\"") => "\"777ms\"".into(),
                text if text.ends_with("B\"") => "\"12345\"".into(),
                text if text.ends_with("s\"") => "\"777ms\"".into(),
                text if text.starts_with('"') => "\"other\"".into(),
                _ => "12345".to_string(),
            };
            let given = format!("{name} = {other}");
            let read: Settings = toml::from_str(&given).unwrap();
            let printed = read.effective().to_toml().unwrap();
            assert!(
                printed.lines().any(|line| line == given),
                "{given}\n{printed}"
            );
        }
    }

    #[test]
    fn unknown_entries_are_refused_and_given_ones_come_first() {
        assert!(toml::from_str::<Settings>("fsync = false").is_err());
        let flag: Settings = toml::from_str("watches_max = 1").unwrap();
        let file: Settings = toml::from_str("watches_max = 2\nscans_max = 3").unwrap();
        let options = flag.or(file).effective().options;
        assert_eq!((options.watches_max, options.scans_max), (1, 3));
    }
}
