//! Every bound of the contract, by name, and how the bounds relate.

/// Longest domain name, in bytes.
pub const DOMAIN_NAME_BYTES_MAX: usize = 128;
/// Most domains of one destination.
pub const DOMAINS_MAX: u32 = 1_024;
/// Longest key, and longest prefix or guard, in bytes.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Longest holder, in bytes.
pub const HOLDER_BYTES_MAX: usize = 256;
/// Longest identity of a caller, in bytes.
pub const IDENTITY_BYTES_MAX: usize = 256;
/// Longest value unless configured otherwise, in bytes.
pub const VALUE_BYTES_DEFAULT: usize = 1 << 20;
/// Longest value that can be configured, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Most mutations of one commit, and most guards of one guarded read.
pub const MUTATIONS_MAX: usize = 1_024;
/// Most conditions of one commit.
pub const CONDITIONS_MAX: usize = 1_024;
/// Most bytes of keys, values and metadata in one commit.
pub const COMMIT_BYTES_MAX: usize = 16 << 20;
/// Longest content type, in bytes.
pub const CONTENT_TYPE_BYTES_MAX: usize = 256;
/// Most labels of one key.
pub const LABELS_MAX: usize = 64;
/// Longest name of a label, in bytes.
pub const LABEL_NAME_BYTES_MAX: usize = 128;
/// Longest value of a label, in bytes.
pub const LABEL_VALUE_BYTES_MAX: usize = 1_024;
/// Deepest prefix guard, in path components.
pub const GUARD_DEPTH_MAX: u8 = 32;
/// Longest id of an intent, in bytes.
pub const INTENT_ID_BYTES_MAX: usize = 256;
/// Most steps of one intent.
pub const STEPS_MAX: u32 = 64;
/// Most inputs that an intent is bound to.
pub const INPUTS_MAX: usize = 64;
/// Longest name of an input that isn't a key, in bytes.
pub const INPUT_NAME_BYTES_MAX: usize = 256;
/// Longest name of a configuration's version, in bytes.
pub const CONFIGURATION_BYTES_MAX: usize = 256;
/// Longest name of who owns an indeterminate intent, in bytes.
pub const OWNER_BYTES_MAX: usize = 256;
/// Most mutations of one commit that are about intents.
pub const INTENT_MUTATIONS_MAX: usize = 16;
/// Most bytes that an intent may take with its binding and the receipts of its steps. What doesn't
/// add a step always fits: its state may take an owner's name beyond that.
pub const INTENT_BYTES_MAX: usize = 256 << 10;
/// What one intent takes in the log, at most: its id, its record, its owner, the fixed fields.
pub const INTENT_CHANGE_BYTES_MAX: usize = INTENT_BYTES_MAX + 1_024;
/// Shortest time to live of a lease, in milliseconds.
pub const TTL_MS_MIN: u64 = 100;
/// Longest time to live of a lease, in milliseconds: 7 days.
pub const TTL_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Longest grace after an expiry, in milliseconds: as long as a lease can be.
pub const GRACE_MS_MAX: u64 = TTL_MS_MAX;
/// How many of the terms last issued for a guard are known with their holders.
pub const GRANTS_KEPT: usize = 8;
/// How many openings of the store the lease clock remembers.
pub const OPENINGS_KEPT: usize = 4_096;
/// Most mutations of one commit that are about leases.
pub const LEASE_MUTATIONS_MAX: usize = 64;
/// What one lease mutation takes in the log, at most: a guard, its last terms and their holders,
/// its lease and the one before, and the guard's fence.
pub const LEASE_CHANGE_BYTES_MAX: usize = 8_192;
/// Most bytes that one commit may take in the log: its payload, per mutation room for a key, a
/// holder, a guard and the fixed fields, the intents and the leases.
pub const EFFECT_BYTES_MAX: usize = COMMIT_BYTES_MAX
    + MUTATIONS_MAX * 4_096
    + (INTENT_MUTATIONS_MAX + 1) * INTENT_CHANGE_BYTES_MAX
    + LEASE_MUTATIONS_MAX * LEASE_CHANGE_BYTES_MAX
    + 65_536;

const _: () = assert!(VALUE_BYTES_DEFAULT <= VALUE_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_MAX <= COMMIT_BYTES_MAX);
const _: () = assert!(EFFECT_BYTES_MAX <= 32 << 20);
const _: () = assert!(INTENT_ID_BYTES_MAX + OWNER_BYTES_MAX + 256 <= 1_024);
const _: () = assert!(INPUTS_MAX * (KEY_BYTES_MAX + 64) + 4_096 <= INTENT_BYTES_MAX);
const _: () = assert!(
    KEY_BYTES_MAX * 2
        + (GRANTS_KEPT + 3) * (HOLDER_BYTES_MAX + 64)
        + OWNER_BYTES_MAX
        + HOLDER_BYTES_MAX
        + 256
        <= LEASE_CHANGE_BYTES_MAX
);
const _: () = assert!(KEY_BYTES_MAX * 2 + HOLDER_BYTES_MAX + 512 <= 4_096);

/// The bounds that an operator may set. Part of the view, so that the decision can judge them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest accepted value, in bytes; at most [`VALUE_BYTES_MAX`].
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            value_bytes: VALUE_BYTES_DEFAULT,
        }
    }
}
