//! What a decision may look at: plain data that the shell fetched, and the list of what to fetch.
//!
//! The view names every row that was looked at, the absent ones too. An engine that isn't the only
//! writer can therefore commit a decision by checking that exactly these rows are unchanged.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::Fence;
use crate::command::{Commit, Condition, GuardedRead, Mutation};
use crate::counters::{DestinationId, Incarnation, Revision};
use crate::domain::Domain;
use crate::intent::IntentRecord;
use crate::lease::LeaseRecord;
use crate::lease_clock::LeaseClock;
use crate::limits::Limits;
use crate::names::{Digest, Guard, IntentId, Key, Prefix};
use crate::policy::Policy;
use crate::record::Record;

/// Whether the destination can take effects at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Availability {
    /// It can.
    #[default]
    Ready,
    /// An IO error in the durability path; only reopening clears it.
    Poisoned,
    /// A queue or a budget is full.
    Overloaded,
    /// There is no room on disk for more data. What frees room is still accepted.
    DiskFull,
    /// The store was restored or found behind its witness.
    RecoveryRequired,
}

/// The destination at the moment of the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DestinationView {
    /// Its id.
    pub id: DestinationId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The last revision used.
    pub revision: Revision,
    /// The revision from which on every deletion is remembered.
    pub remembers_since: Revision,
    /// Whether it can take effects.
    pub availability: Availability,
    /// Its configured bounds.
    pub limits: Limits,
}

/// What is known of one key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRow {
    /// What is stored; `None` if the key doesn't exist.
    pub record: Option<Arc<Record>>,
    /// The digest of the value; fetched only where [`KeyNeed::digest`] asks for it.
    pub digest: Option<Digest>,
    /// When the key was deleted, as far as it is remembered; fetched only where
    /// [`KeyNeed::deletion`] asks for it.
    pub deleted_at: Option<Revision>,
}

/// What is known of the keys under one prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixRow {
    /// The highest revision that changed or deleted a key under the prefix, as far as it was
    /// looked for and found. It is enough to know one above the revision that was asked about.
    pub changed_at: Option<Revision>,
    /// The revision from which on this row knows every change; at least the destination's.
    pub remembers_since: Revision,
}

/// Everything that one decision may look at. The lists are sorted by name, without doubles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The destination.
    pub destination: DestinationView,
    /// The domain; `None` if there is none of that name.
    pub domain: Option<Arc<Domain>>,
    /// The fences that were looked up; `None` where no fence exists in the current epoch.
    pub fences: Vec<(Guard, Option<Fence>)>,
    /// The keys that were looked up.
    pub keys: Vec<(Key, KeyRow)>,
    /// The prefixes that were looked up.
    pub prefixes: Vec<(Prefix, PrefixRow)>,
    /// The intents that were looked up; `None` where none of that id is known.
    pub intents: Vec<(IntentId, Option<Arc<IntentRecord>>)>,
    /// The guards whose leases were looked up; `None` where none was ever granted.
    pub leases: Vec<(Guard, Option<Arc<LeaseRecord>>)>,
    /// The lease clock; `None` if it wasn't read.
    pub lease_clock: Option<LeaseClock>,
    /// The digest of [`crate::codec::encode_command`] of the commit; needed for one with an intent.
    pub command_digest: Option<Digest>,
    /// The wall clock in milliseconds since 1970, for the receipt; nothing is judged by it.
    pub advisory_time_ms: Option<u64>,
}

impl View {
    /// A view of the destination and domain alone.
    #[must_use]
    pub const fn new(destination: DestinationView, domain: Option<Arc<Domain>>) -> Self {
        Self {
            destination,
            domain,
            fences: Vec::new(),
            keys: Vec::new(),
            prefixes: Vec::new(),
            intents: Vec::new(),
            leases: Vec::new(),
            lease_clock: None,
            command_digest: None,
            advisory_time_ms: None,
        }
    }

    /// The fence of a guard; the outer `None` means that it wasn't fetched.
    #[must_use]
    pub fn fence(&self, guard: &Guard) -> Option<Option<&Fence>> {
        find(&self.fences, guard).map(Option::as_ref)
    }

    /// The row of a key; `None` means that it wasn't fetched.
    #[must_use]
    pub fn key(&self, key: &Key) -> Option<&KeyRow> {
        find(&self.keys, key)
    }

    /// The row of a prefix; `None` means that it wasn't fetched.
    #[must_use]
    pub fn prefix(&self, prefix: &Prefix) -> Option<&PrefixRow> {
        find(&self.prefixes, prefix)
    }

    /// The record of an intent; the outer `None` means that it wasn't fetched.
    #[must_use]
    pub fn intent(&self, id: &IntentId) -> Option<Option<&Arc<IntentRecord>>> {
        find(&self.intents, id).map(Option::as_ref)
    }

    /// The leases of a guard; the outer `None` means that they weren't fetched.
    #[must_use]
    pub fn lease(&self, guard: &Guard) -> Option<Option<&Arc<LeaseRecord>>> {
        find(&self.leases, guard).map(Option::as_ref)
    }
}

fn find<'a, K: Ord, V>(rows: &'a [(K, V)], name: &K) -> Option<&'a V> {
    let at = rows.binary_search_by(|(key, _)| key.cmp(name)).ok()?;
    rows.get(at).map(|(_, row)| row)
}

/// A key whose row a decision needs, and which of the costly parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyNeed {
    /// The key.
    pub key: Key,
    /// Whether the digest of its value is needed.
    pub digest: bool,
    /// Whether the time of its deletion is needed.
    pub deletion: bool,
}

/// A prefix whose row a decision needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefixNeed {
    /// The prefix.
    pub prefix: Prefix,
    /// The lowest revision that a condition asks about: changes up to it don't matter.
    pub since: Revision,
}

/// The rows that a decision on a request will look at. Sorted by name, without doubles, so that
/// rows fetched in this order make a valid [`View`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// The guards whose fence is needed.
    pub guards: Vec<Guard>,
    /// The keys whose row is needed.
    pub keys: Vec<KeyNeed>,
    /// The prefixes whose row is needed.
    pub prefixes: Vec<PrefixNeed>,
    /// The intents whose record is needed.
    pub intents: Vec<IntentId>,
    /// The guards whose leases are needed, and with them the lease clock.
    pub leases: Vec<Guard>,
}

impl Footprint {
    /// What a decision on the commit needs under this policy.
    #[must_use]
    pub fn of_commit(commit: &Commit, policy: &Policy) -> Self {
        let mut guards = touched_guards(commit, policy);
        let mut leases: Vec<Guard> = leased_guards(commit);
        guards.extend_from_slice(&leases);
        guards.sort_unstable();
        guards.dedup();
        if policy.judges_by_leases() {
            leases.clone_from(&guards);
        }
        let mut footprint = Self {
            guards,
            leases,
            keys: Vec::with_capacity(commit.mutations.len().max(commit.conditions.len())),
            prefixes: Vec::new(),
            intents: named_intents(commit),
        };
        for key in commit.mutations.iter().filter_map(Mutation::key) {
            footprint.keys.push(KeyNeed {
                key: key.clone(),
                digest: false,
                deletion: false,
            });
        }
        for condition in &commit.conditions {
            if let Condition::PrefixUnchangedSince { prefix, revision } = condition {
                let need = PrefixNeed {
                    prefix: prefix.clone(),
                    since: *revision,
                };
                footprint.prefixes.push(need);
            }
            if let Some(key) = condition.key() {
                footprint.keys.push(KeyNeed {
                    key: key.clone(),
                    digest: matches!(condition, Condition::ValueDigestIs { .. }),
                    deletion: matches!(condition, Condition::KeyUnchangedSince { .. }),
                });
            }
        }
        footprint.merge();
        footprint
    }

    /// What a decision on the read needs under this policy.
    #[must_use]
    pub fn of_read(read: &GuardedRead, policy: &Policy) -> Self {
        let mut guards = read.guards.clone();
        guards.sort_unstable();
        guards.dedup();
        Self {
            leases: if policy.judges_by_leases() {
                guards.clone()
            } else {
                Vec::new()
            },
            guards,
            ..Self::default()
        }
    }

    /// Sorts the needs and joins those of one name.
    fn merge(&mut self) {
        self.keys.sort_by(|a, b| a.key.cmp(&b.key));
        self.keys.dedup_by(|next, kept| {
            let same = next.key == kept.key;
            if same {
                kept.digest |= next.digest;
                kept.deletion |= next.deletion;
            }
            same
        });
        self.prefixes.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        self.prefixes.dedup_by(|next, kept| {
            let same = next.prefix == kept.prefix;
            if same {
                kept.since = kept.since.min(next.since);
            }
            same
        });
    }
}

/// The guards whose leases the commit changes; sorted, no doubles.
pub(crate) fn leased_guards(commit: &Commit) -> Vec<Guard> {
    let leased = commit.mutations.iter().filter_map(Mutation::leased_guard);
    let guards: BTreeSet<&Guard> = leased.collect();
    guards.into_iter().cloned().collect()
}

/// The guards that the commit touches under an authority: of every key that it writes, and those
/// that it names itself; sorted, no doubles.
pub(crate) fn touched_guards(commit: &Commit, policy: &Policy) -> Vec<Guard> {
    let guard_of = |mutation: &Mutation| mutation.guard(policy);
    let mut guards: Vec<Guard> = commit.mutations.iter().filter_map(guard_of).collect();
    guards.sort_unstable();
    guards.dedup();
    guards
}

/// The intent that the commit is a step of, and those that it changes; sorted, no doubles.
pub(crate) fn named_intents(commit: &Commit) -> Vec<IntentId> {
    let changed = commit.mutations.iter().filter_map(Mutation::intent);
    let used = commit.intent.iter().map(|used| &used.id);
    let mut intents: Vec<IntentId> = changed.chain(used).cloned().collect();
    intents.sort_unstable();
    intents.dedup();
    intents
}
