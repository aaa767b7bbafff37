//! What a mutation of a lease asks for, told apart.

use std::collections::BTreeSet;

use highwater_core::{Holder, LeaseId, Mutation, Owner};

use crate::leases::{acquire, commit, expire, release, renew, revoke, ttl};
use crate::raw;

/// Two commits ask for the same exactly if they are the same: every part of every lease mutation
/// counts.
#[test]
fn the_digest_covers_every_part_of_a_lease_mutation() {
    let lease = |raw: u64| LeaseId::new(u64::MAX - raw).unwrap();
    let acquiring = |ms, seal, supersede| Mutation::Acquire {
        guard: raw::guard(b"k"),
        holder: Holder::new("a").unwrap(),
        ttl: ttl(ms),
        seal,
        supersede,
    };
    let renewing = |ms: Option<u64>| Mutation::Renew {
        guard: raw::guard(b"k"),
        lease: lease(0),
        ttl: ms.map(ttl),
    };
    let revoking = |raw: Option<u64>, by: &str| Mutation::Revoke {
        guard: raw::guard(b"k"),
        lease: raw.map(lease),
        by: Owner::new(by).unwrap(),
    };
    let all = vec![
        acquiring(100, false, false),
        acquiring(101, false, false),
        acquiring(100, true, false),
        acquiring(100, false, true),
        acquire("k", "a", false),
        acquire("k", "b", false),
        acquire("j", "a", false),
        renewing(None),
        renewing(Some(100)),
        renewing(Some(101)),
        renew("j", lease(0)),
        renew("k", lease(1)),
        release("k", lease(0)),
        release("k", lease(1)),
        release("j", lease(0)),
        revoking(None, "a"),
        revoking(None, "b"),
        revoking(Some(0), "a"),
        revoking(Some(1), "a"),
        revoke("j"),
        expire("k", lease(0)),
        expire("k", lease(1)),
        expire("j", lease(0)),
    ];
    let digests: BTreeSet<Vec<u8>> = all
        .iter()
        .map(|mutation| {
            let mut out = Vec::new();
            highwater_core::codec::encode_command(&commit([mutation.clone()]), &mut out);
            out
        })
        .collect();
    assert_eq!(digests.len(), all.len());
}
