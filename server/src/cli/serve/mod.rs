//! `highwater serve`: from settings to a server, and to an orderly end.

mod log;
mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use highwater::{Store, escape};
use highwater_server::serve;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use self::settings::Settings;
use super::failure::{ConfigFileError, Failure};
use super::input;
use super::output::Output;

/// A server.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// A TOML file with settings by the names of the options (such as data_dir)
    #[arg(long, env = "HIGHWATER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the settings that are in effect as TOML, and end
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Reads a configuration file.
fn read_config(path: &Path) -> Result<Settings, Failure> {
    let failed = |source| Failure::ConfigFile {
        path: path.into(),
        source,
    };
    let bytes =
        input::read(path.as_os_str()).map_err(|error| failed(ConfigFileError::Read(error)))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(ConfigFileError::Text))?;
    toml::from_str(&text).map_err(|error| failed(ConfigFileError::Toml(error)))
}

/// Runs a server until SIGTERM or SIGINT.
pub(crate) fn run(args: &ServeArgs, out: &mut Output) -> Result<(), Failure> {
    let file = match &args.config {
        Some(path) => read_config(path)?,
        None => Settings::default(),
    };
    let settings = args.settings.clone().or(file);
    let mut effective = settings.effective();
    effective.config.validate().map_err(Failure::Config)?;
    effective.options.validate().map_err(Failure::Options)?;
    if args.print_config {
        let text = effective.to_toml().map_err(Failure::PrintConfig)?;
        return out.raw(text.as_bytes());
    }
    log::begin(&effective)?;
    // Before anything is opened: a server that can't take a connection doesn't begin.
    effective.options = effective
        .options
        .within_descriptors()
        .map_err(Failure::Serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System {
            what: "start threads",
            source,
        })?;
    let store = Store::open(&effective.data_dir, effective.config.clone())
        .map_err(|error| Failure::Open(Box::new(error)))?;
    let served = runtime.block_on(serve_store(&effective, store.clone(), out));
    // Also after a failure: what was acknowledged is durable, and the next start is quick.
    let closed = store.close().map_err(Failure::Store);
    served.and(closed)?;
    tracing::info!("the store is closed");
    Ok(())
}

async fn serve_store(
    effective: &settings::Effective,
    store: Store,
    out: &mut Output,
) -> Result<(), Failure> {
    let address = effective.listen;
    let listen = |source| Failure::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let bound = listener.local_addr().map_err(listen)?;
    let shutdown = shutdown()?;
    if !bound.ip().is_loopback() {
        tracing::warn!(
            address = %bound,
            "there is neither TLS nor authentication yet: whoever reaches this address can write"
        );
    }
    announce(bound, effective, &store, out);
    serve(listener, store, effective.options.clone(), shutdown)
        .await
        .map_err(Failure::Serve)
}

/// Says where the server is reached and what it is. Where nobody reads that, it serves anyway.
fn announce(address: SocketAddr, effective: &settings::Effective, store: &Store, out: &mut Output) {
    let status = store.status();
    let (id, incarnation) = (status.destination, status.incarnation);
    let dir = escape(effective.data_dir.as_os_str().as_encoded_bytes());
    let revision = status.revision;
    let connections_max = effective.options.connections_max;
    tracing::info!(
        %address,
        destination = %id,
        %incarnation,
        %revision,
        connections_max,
        "serving"
    );
    let text = format!(
        "highwater listens on {address}: destination {id}, incarnation {incarnation}, data in {dir}"
    );
    let json = || {
        serde_json::json!({
            "listening": address.to_string(),
            "destination": id.to_string(),
            "incarnation": incarnation.to_string(),
            "data_dir": dir,
        })
    };
    if let Err(error) = out.tell(json, || text) {
        tracing::debug!(%error, "nobody reads the startup message");
    }
}

/// Ends with the first SIGTERM or SIGINT.
fn shutdown() -> Result<impl Future<Output = ()> + Send, Failure> {
    let failed = |source| Failure::System {
        what: "listen to signals",
        source,
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "shutting down");
    })
}
