//! The Highwater server: a store, served over gRPC.
//!
//! [`serve`] runs until its shutdown future ends. Every call is converted, handed to the store, and
//! its answer converted back; no rule of fencing lives here. What this package adds is the
//! transport: bounds on connections, calls and messages, deadlines, health, reflection, and a
//! shutdown that answers what was accepted and ends within a configured time.
//!
//! # Example
//!
//! ```no_run
//! use highwater::{Config, Store};
//! use highwater_server::{ServeOptions, serve};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open("/var/lib/highwater", Config::default())?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:7171").await?;
//! let shutdown = async {
//!     let _ = tokio::signal::ctrl_c().await;
//! };
//! serve(listener, store.clone(), ServeOptions::default(), shutdown).await?;
//! store.close()?;
//! # Ok(())
//! # }
//! ```

mod acquire;
mod admission;
mod connection;
mod deadline;
mod descriptors;
mod error;
mod health;
mod identity;
mod intents;
mod lease_list;
mod listener;
mod options;
mod pages;
mod read;
mod scan;
mod serve;
mod service;
mod shutdown;
mod status;
mod stream;
mod token;
mod unread;
mod verdicts;
mod watch;

pub use descriptors::DESCRIPTORS_RESERVED;
pub use error::ServeError;
pub use identity::Caller;
pub use options::{OptionError, ServeOptions};
pub use serve::serve;
