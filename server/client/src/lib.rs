//! The Rust client of Highwater.
//!
//! * [`Client`] is a connection to one destination, with one method per call.
//! * [`Session`] is what a lease holder writes through: it holds an authority, names the
//!   destination that was first seen in every request, and stops for good once the authority is
//!   lost.
//! * [`LeaseHolder`] acquires a lease, keeps it alive, and gives sessions that send nothing once it
//!   may have lapsed.
//! * [`ClientError`] says what a failure means for the caller: nothing was done and why, or the
//!   outcome isn't known. A write is never sent twice, except a step of an intent by a session: the
//!   destination takes that once at most, however often it is sent.
//!
//! # Example
//!
//! A holder takes over, writes under its authority, and ends where somebody newer was accepted:
//!
//! ```no_run
//! use highwater_client::{Client, ClientError, ClientOptions};
//! use highwater_core::{Authority, DomainName, Guard, Key, Value};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("http://127.0.0.1:7171", ClientOptions::default()).await?;
//! // As the coordinator granted it; no part of it is ever filled in later.
//! let authority = Authority::parse("7.3fa9c1d2e0b14c55/42@worker-a")?;
//! let session = client.session(DomainName::new("jobs")?, authority);
//!
//! // First the fence, and with it what the last holder left.
//! let mut taken = session.take_over(&Guard::new("job-7")?).await?;
//! while let Some(page) = taken.next().await? {
//!     println!("{} records at revision {}", page.records.len(), page.revision);
//! }
//!
//! match session.put(Key::new("job-7/result")?, Value::new("done")?).await {
//!     Ok(receipt) => println!("written at revision {}", receipt.revision),
//!     // The session is stopped: nothing is sent any more, whatever is called.
//!     Err(ClientError::LostAuthority(evidence)) => println!("stop: {evidence}"),
//!     Err(ClientError::OutcomeUnknown { .. }) => println!("read before anything else"),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod clock;
mod error;
mod holder;
mod intents;
mod leases;
mod options;
mod pipeline;
mod reconcile;
mod repeat;
mod scan;
mod session;
mod watch;

pub use client::{Client, Found, within_bound};
pub use clock::{Clock, SystemClock};
pub use error::{ClientError, NotSent};
pub use holder::{HolderOptions, LeaseHolder, Lost, Standing};
pub use intents::{FoundIntent, IntentFilter, IntentPage};
pub use leases::{Acquire, FoundLease, LeaseFilter, LeasePage, ListedLease};
pub use options::ClientOptions;
pub use pipeline::{Commits, PipelineVerdict, Verdicts};
pub use reconcile::{IntentOutcome, Reconciled, StoredIntent};
pub use scan::{RecordPage, Scan, ScanKeys, TakeOver};
pub use session::Session;
pub use watch::{Watch, WatchChange, WatchUpdate};
