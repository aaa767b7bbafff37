//! The command line's shape.

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use highwater::{
    Authority, DestinationId, Generation, Holder, Incarnation, IntentId, Metageneration, Revision,
    Ttl,
};

use super::audit::AuditCommand;
use super::input::{self, InputError};
use super::intent_args::{IntentCommand, intent};
use super::lease_args::{LeaseCommand, holder, ttl};
use super::serve::ServeArgs;
use super::units::Span;
use super::write_args::{CommitArgs, DeleteArgs, PutArgs};
use crate::demo::DemoArgs;

/// A durable key-value store that fences: it refuses writers that are no longer the newest.
#[derive(Parser, Debug)]
#[command(name = "highwater", version, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes:
  0  accepted, or answered
  1  anything that has no code of its own (a key, domain or intent that doesn't exist, too)
  2  the request is wrong in itself
  3  the authority is lost, or the destination is another one: stop
  4  a condition doesn't hold, or an intent has another outcome, has ended or isn't known:
     read again and decide anew
  5  unavailable or overloaded: nothing was done, try again later
  6  whether the write happened isn't known, or it was accepted and the answer couldn't be
     written, which standard error then says: read before you write again
  7  `lease run`: the lease was lost, and the command was ended
`lease run` otherwise ends with the command's own code.";

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON object a line; all 64-bit numbers are strings.
    Json,
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "For every command")]
pub(crate) struct Global {
    /// How results are written
    #[arg(short, long, value_enum, default_value = "table", global = true)]
    #[arg(env = "HIGHWATER_OUTPUT", value_name = "FORMAT")]
    pub(crate) output: Format,
    /// The server: HOST:PORT, or http://HOST:PORT
    #[arg(
        long,
        global = true,
        env = "HIGHWATER_ENDPOINT",
        default_value = "127.0.0.1:7171"
    )]
    pub(crate) endpoint: String,
    /// The authority: EPOCH.MARK/SEQUENCE@HOLDER, whole as it was granted
    #[arg(long, global = true, env = "HIGHWATER_AUTHORITY", value_parser = input::authority)]
    pub(crate) authority: Option<Authority>,
    /// Refuse unless the server is this destination; needs --incarnation
    #[arg(long, global = true, env = "HIGHWATER_DESTINATION", value_name = "ID")]
    #[arg(value_parser = input::destination_id)]
    pub(crate) destination: Option<DestinationId>,
    /// Refuse unless the destination is in this incarnation; needs --destination
    #[arg(
        long,
        global = true,
        env = "HIGHWATER_INCARNATION",
        value_name = "NUMBER.MARK"
    )]
    #[arg(value_parser = input::incarnation)]
    pub(crate) incarnation: Option<Incarnation>,
    /// How long to wait for a connection and for each answer (a watch waits for ever)
    #[arg(long, global = true, env = "HIGHWATER_TIMEOUT", default_value = "10s")]
    pub(crate) timeout: Span,
    /// Keys, guards and prefixes are given as base64 instead of text with %XX
    #[arg(long, global = true)]
    pub(crate) key_base64: bool,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a server
    Serve(Box<ServeArgs>),
    /// See a paused worker's late write refused, on a store of the demonstration's own
    Demo(DemoArgs),
    /// Make and show domains
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Write a key
    Put(Box<PutArgs>),
    /// Read a key
    Get(GetArgs),
    /// Delete a key
    Delete(Box<DeleteArgs>),
    /// Read the keys of a prefix, a range or a guard, all at one revision
    Scan(ScanArgs),
    /// Follow changes
    Watch(WatchArgs),
    /// Make a commit of several conditions and changes, from JSON
    Commit(CommitArgs),
    /// Show and raise fences
    #[command(subcommand)]
    Fence(FenceCommand),
    /// Bind, show and end intents: operations that take effect once, however often they are sent
    #[command(subcommand)]
    Intent(IntentCommand),
    /// Get, renew, end and show leases: terms that the server itself issues, for a time
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Read the audit trail in a directory, without a server
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show what the server says about itself
    Status,
    /// Write a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// What to do with domains.
#[derive(Subcommand, Debug)]
pub(crate) enum DomainCommand {
    /// Make a domain
    Create(CreateArgs),
    /// Show every domain
    List,
    /// Show one domain: its policy and its epochs
    Show {
        /// The domain
        domain: String,
    },
}

/// Which keys share one fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum GuardChoice {
    /// Every key has its own
    Key,
    /// Keys with the same first components of the path share one
    Prefix,
    /// The whole domain has one
    Domain,
}

/// What every mutation must carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum AdmissionChoice {
    /// An authority
    Fenced,
    /// A generation match
    Versioned,
    /// Nothing
    Open,
}

/// How holders are bound to the identity of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum BindingChoice {
    /// Not at all
    None,
    /// The holder begins with it
    Prefix,
    /// The holder is it
    Exact,
}

/// Which terms are admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TermsChoice {
    /// Every well-formed one: some other coordinator issues them
    External,
    /// Those alone that this server issued to that holder with a lease
    Issued,
}

/// A new domain.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// The name: 1 to 128 of A-Z a-z 0-9 . _ -
    pub(crate) domain: String,
    /// Which keys share one fence
    #[arg(long, value_enum, default_value = "key")]
    pub(crate) guard: GuardChoice,
    /// With --guard prefix: the one byte between two components
    #[arg(long, default_value = "/")]
    pub(crate) delimiter: String,
    /// With --guard prefix: how many components make the guard, 1 to 32
    #[arg(long, default_value_t = 1)]
    pub(crate) depth: u8,
    /// What every mutation must carry
    #[arg(long, value_enum, default_value = "fenced")]
    pub(crate) admission: AdmissionChoice,
    /// How holders are bound to the identity of the caller
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) holder_binding: BindingChoice,
    /// How far a sequence may rise above a fence in one step; without it there is no bound
    #[arg(long)]
    pub(crate) max_sequence_step: Option<std::num::NonZeroU64>,
    /// Which terms are admitted
    #[arg(long, value_enum, default_value = "external")]
    pub(crate) terms: TermsChoice,
    /// Admit an authority only while its lease is live
    #[arg(long)]
    pub(crate) strict: bool,
    /// For how long after a lease has lapsed nobody but its holder can acquire: up to 7 days
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) grace: Span,
}

/// A read that fails as a write would.
#[derive(Args, Debug)]
pub(crate) struct GuardedArgs {
    /// Read only while --authority is still the highest
    #[arg(long)]
    pub(crate) guarded: bool,
    /// With --guarded: a guard that the read depends on (repeat), instead of the key's own
    #[arg(long, value_name = "GUARD", requires = "guarded")]
    pub(crate) read_guard: Vec<String>,
}

/// One key.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// The domain
    pub(crate) domain: String,
    /// The key
    pub(crate) key: String,
    /// Write the bytes of the value alone
    #[arg(long)]
    pub(crate) raw: bool,
    /// With -o json: write the value as base64 even where it is text
    #[arg(long)]
    pub(crate) value_base64: bool,
    #[command(flatten)]
    pub(crate) guarded: GuardedArgs,
}

/// Several keys.
#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    /// The domain
    pub(crate) domain: String,
    /// The keys that begin with this (default: every key)
    #[arg(long, conflicts_with_all = ["from", "to", "guard"])]
    pub(crate) prefix: Option<String>,
    /// The keys from this one on
    #[arg(long, value_name = "KEY", conflicts_with = "guard")]
    pub(crate) from: Option<String>,
    /// The keys before this one
    #[arg(long, value_name = "KEY", conflicts_with = "guard")]
    pub(crate) to: Option<String>,
    /// The keys under this guard
    #[arg(long)]
    pub(crate) guard: Option<String>,
    /// Most records
    #[arg(long)]
    pub(crate) limit: Option<u64>,
    /// With -o json: write values as base64 even where they are text
    #[arg(long)]
    pub(crate) value_base64: bool,
    #[command(flatten)]
    pub(crate) guarded: GuardedArgs,
}

/// Changes.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The domain
    pub(crate) domain: String,
    /// The keys that begin with this (default: every key)
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<String>,
    /// The keys from this one on
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,
    /// The keys before this one
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,
    /// Begin after this revision (default: from now on)
    #[arg(long, value_name = "REVISION", value_parser = input::revision)]
    pub(crate) after: Option<Revision>,
    /// Tell of raised fences, too
    #[arg(long)]
    pub(crate) fences: bool,
    /// Tell of leases that are granted, renewed or ended, too
    #[arg(long)]
    pub(crate) leases: bool,
    /// End after so many changes
    #[arg(long)]
    pub(crate) count: Option<u64>,
    /// With -o json: write values as base64 even where they are text
    #[arg(long)]
    pub(crate) value_base64: bool,
}

/// What to do with fences.
#[derive(Subcommand, Debug)]
pub(crate) enum FenceCommand {
    /// Show the fence of a guard
    Show {
        /// The domain
        domain: String,
        /// The guard (empty for that of a whole domain)
        #[arg(required_unless_present = "key")]
        guard: Option<String>,
        /// The guard that this key is under
        #[arg(long, conflicts_with = "guard")]
        key: Option<String>,
    },
    /// Raise the fence of a guard to --authority, without data
    Advance {
        /// The domain
        domain: String,
        /// The guard (empty for that of a whole domain)
        guard: String,
        /// Only say what it would get
        #[arg(long)]
        dry_run: bool,
    },
    /// Raise the fence of a guard to --authority and read what is under it, in one step
    Takeover {
        /// The domain
        domain: String,
        /// The guard (empty for that of a whole domain)
        guard: String,
        /// With -o json: write values as base64 even where they are text
        #[arg(long)]
        value_base64: bool,
        /// Tell what became of this intent, too (repeat)
        #[arg(long, value_name = "ID", value_parser = intent)]
        intent: Vec<IntentId>,
        /// In the place of --authority: get a lease for this holder first, and seal
        #[arg(long, value_name = "HOLDER", value_parser = holder, requires = "ttl")]
        acquire: Option<Holder>,
        /// With --acquire: how long the lease lasts unless it is renewed
        #[arg(long, value_name = "TIME", value_parser = ttl, requires = "acquire")]
        ttl: Option<Ttl>,
    },
}

/// A version that may be 0, "does not exist".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrAbsent<T>(pub(crate) Option<T>);

/// Reads a generation or 0.
pub(crate) fn generation(text: &str) -> Result<OrAbsent<Generation>, InputError> {
    input::generation(text).map(OrAbsent)
}

/// Reads a metageneration or 0.
pub(crate) fn metageneration(text: &str) -> Result<OrAbsent<Metageneration>, InputError> {
    input::metageneration(text).map(OrAbsent)
}
