//! The arguments about leases, and the mutations that they make.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use highwater::{Commit, DomainName, Guard, Holder, LeaseId, Mutation, Owner, Ttl, unescape};
use highwater_client::Acquire;

use super::input::{self, Encoding, InputError};
use super::intent_args::{StepArgs, owner};
use super::units::Span;

/// What to do with leases.
#[derive(Subcommand, Debug)]
pub(crate) enum LeaseCommand {
    /// Get a lease on a guard, with a term that was never issued before
    Acquire(Box<AcquireArgs>),
    /// Let a live lease last its whole time again, under --authority
    Renew(RenewArgs),
    /// End a live lease, under --authority: stop all work under it before
    Release(ReleaseArgs),
    /// End a live lease, whoever holds it; it fences nobody
    Revoke(RevokeArgs),
    /// List the guards that leases were granted on, ordered by name
    List {
        /// The domain
        domain: String,
        /// Only those with a live lease
        #[arg(long)]
        live: bool,
        /// Most guards
        #[arg(long)]
        limit: Option<u64>,
    },
    /// Show the leases of a guard: the current one, how it stands, and how the last one ended
    Observe {
        /// The domain
        domain: String,
        /// The guard (empty for that of a whole domain)
        #[arg(required_unless_present = "key")]
        guard: Option<String>,
        /// The guard that this key is under
        #[arg(long, conflicts_with = "guard")]
        key: Option<String>,
    },
    /// Run a command while a lease is held, which is renewed meanwhile; the command is ended when
    /// the lease is lost, and the lease is released when the command ends
    Run(Box<RunArgs>),
}

/// A lease to get.
#[derive(Args, Debug)]
pub(crate) struct WantedArgs {
    /// The domain
    pub(crate) domain: String,
    /// The guard (empty for that of a whole domain)
    pub(crate) guard: String,
    /// Who is to hold it: one process instance or session, in which %XX is a byte
    #[arg(long, value_parser = holder)]
    pub(crate) holder: Holder,
    /// How long it lasts unless it is renewed: 100ms to 7 days
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(crate) ttl: Ttl,
    /// How long to wait in line for a guard that isn't free, besides --timeout
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) wait: Span,
    /// A live lease of the same holder gives way
    #[arg(long)]
    pub(crate) supersede: bool,
}

/// A lease to get.
#[derive(Args, Debug)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    /// Leave the fence where it is: earlier holders can write until the new one does
    #[arg(long)]
    pub(crate) no_seal: bool,
    #[command(flatten)]
    pub(crate) step: StepArgs,
    /// Only say what it would get now
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A lease to renew.
#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// The domain
    pub(crate) domain: String,
    /// The guard (empty for that of a whole domain)
    pub(crate) guard: String,
    /// The lease: the revision of its grant
    #[arg(env = "HIGHWATER_LEASE", value_parser = lease)]
    pub(crate) lease: LeaseId,
    /// How long it lasts from now on [default: as long as before]
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A lease to let go.
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The domain
    pub(crate) domain: String,
    /// The guard (empty for that of a whole domain)
    pub(crate) guard: String,
    /// The lease: the revision of its grant
    #[arg(env = "HIGHWATER_LEASE", value_parser = lease)]
    pub(crate) lease: LeaseId,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A lease to take away.
#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// The domain
    pub(crate) domain: String,
    /// The guard (empty for that of a whole domain)
    pub(crate) guard: String,
    /// The lease: the revision of its grant [default: whichever is current]
    #[arg(long, value_parser = lease)]
    pub(crate) lease: Option<LeaseId>,
    /// Who takes it away
    #[arg(long, value_name = "OWNER", value_parser = owner)]
    pub(crate) by: Owner,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A command to run under a lease.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    /// How long the command has, after SIGTERM, to end by itself once the lease is lost
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) kill_after: Span,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A holder, in which `%XX` is a byte.
pub(crate) fn holder(text: &str) -> Result<Holder, InputError> {
    Ok(Holder::new(unescape(text).ok_or(InputError::Escape)?)?)
}

/// A time to live.
pub(crate) fn ttl(text: &str) -> Result<Ttl, InputError> {
    let milliseconds = text.parse::<Span>()?.0.as_millis();
    let ttl = u64::try_from(milliseconds).ok().and_then(Ttl::new);
    ttl.ok_or(InputError::Form {
        form: "a time from 100ms to 7 days",
    })
}

/// The id of a lease.
pub(crate) fn lease(text: &str) -> Result<LeaseId, InputError> {
    let what = "lease";
    LeaseId::new(input::number(what, text)?).ok_or(InputError::Number { what })
}

fn only(domain: &str, mutation: Mutation) -> Result<Commit, InputError> {
    Ok(Commit::new(DomainName::new(domain)?).with(mutation))
}

fn guard(keys: Encoding, text: &str) -> Result<Guard, InputError> {
    Ok(Guard::new(keys.bytes(text)?)?)
}

impl WantedArgs {
    /// The lease that is wanted.
    pub(crate) fn acquire(&self, keys: Encoding) -> Result<Acquire, InputError> {
        let guard = guard(keys, &self.guard)?;
        let mut acquire = Acquire::new(guard, self.holder.clone(), self.ttl);
        acquire.supersede = self.supersede;
        Ok(acquire.waiting(self.wait.0))
    }
}

impl AcquireArgs {
    /// The commit that asks for it, and the wish. Neither has a destination.
    pub(crate) fn wish(&self, keys: Encoding) -> Result<(Commit, Acquire), InputError> {
        let mut acquire = self.wanted.acquire(keys)?;
        acquire.seal = !self.no_seal;
        let mutation = Mutation::Acquire {
            guard: acquire.guard.clone(),
            holder: acquire.holder.clone(),
            ttl: acquire.ttl,
            seal: acquire.seal,
            supersede: acquire.supersede,
        };
        let commit = self.step.apply(only(&self.wanted.domain, mutation)?)?;
        acquire.intent.clone_from(&commit.intent);
        Ok((commit, acquire))
    }
}

impl RenewArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let (guard, lease, ttl) = (guard(keys, &self.guard)?, self.lease, self.ttl);
        only(&self.domain, Mutation::Renew { guard, lease, ttl })
    }
}

impl ReleaseArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let (guard, lease) = (guard(keys, &self.guard)?, self.lease);
        only(&self.domain, Mutation::Release { guard, lease })
    }
}

impl RevokeArgs {
    /// The commit, without destination. It takes no authority.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let (guard, lease) = (guard(keys, &self.guard)?, self.lease);
        let by = self.by.clone();
        only(&self.domain, Mutation::Revoke { guard, lease, by })
    }
}
