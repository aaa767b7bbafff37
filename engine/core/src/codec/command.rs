//! What a commit asks for, as bytes of which the digest is kept: mutations and conditions, in their
//! order, and whether it completes its intent. Not under whose authority, nor of which destination,
//! nor who calls: another holder that asks for the same asks for the same. Written, never read.

use alloc::vec::Vec;

use super::intent::{put_guard, put_state, put_work};
use super::row::{put_metadata, put_term};
use super::write;
use crate::command::{Commit, Condition, Mutation};
use crate::counters::{Generation, LeaseId, Metageneration};
use crate::intent::IntentState;
use crate::lease::Ttl;
use crate::names::{Guard, Key};

/// The version of the encoding: the first byte. Digests of two versions never agree.
const VERSION: u8 = 1;

/// Appends what a commit asks for, so that two commits have the same bytes exactly if they ask for
/// the same.
pub fn encode_command(commit: &Commit, out: &mut Vec<u8>) {
    out.push(VERSION);
    out.push(u8::from(
        commit.intent.as_ref().is_some_and(|used| used.completes),
    ));
    write::count(out, commit.mutations.len());
    for mutation in &commit.mutations {
        put_mutation(mutation, out);
    }
    write::count(out, commit.conditions.len());
    for condition in &commit.conditions {
        put_condition(condition, out);
    }
}

fn put_mutation(mutation: &Mutation, out: &mut Vec<u8>) {
    match mutation {
        Mutation::Put {
            key,
            value,
            metadata,
        } => {
            put_key(1, key, out);
            put_metadata(metadata, out);
            write::long(out, value.as_bytes());
        }
        Mutation::Delete { key } => put_key(2, key, out),
        Mutation::SetMetadata { key, metadata } => {
            put_key(3, key, out);
            put_metadata(metadata, out);
        }
        Mutation::Advance { guard } => {
            out.push(4);
            write::short(out, guard.as_bytes());
        }
        Mutation::BindIntent { intent, work } => {
            out.push(5);
            write::short(out, intent.as_bytes());
            put_work(work, out);
        }
        Mutation::CloseIntent {
            intent,
            guard,
            ending,
        } => {
            out.push(6);
            write::short(out, intent.as_bytes());
            put_guard(guard.as_ref(), out);
            put_state(&IntentState::Ended(*ending), out);
        }
        Mutation::SuspendIntent {
            intent,
            guard,
            owner,
            review_at_ms,
        } => {
            out.push(7);
            write::short(out, intent.as_bytes());
            put_guard(guard.as_ref(), out);
            write::short(out, owner.as_bytes());
            write::u64(out, *review_at_ms);
        }
        Mutation::Acquire { guard, .. }
        | Mutation::Renew { guard, .. }
        | Mutation::Release { guard, .. }
        | Mutation::Revoke { guard, .. }
        | Mutation::Expire { guard, .. } => put_lease_mutation(mutation, guard, out),
    }
}

fn put_lease_mutation(mutation: &Mutation, guard: &Guard, out: &mut Vec<u8>) {
    let mut put = |kind: u8| {
        out.push(kind);
        write::short(out, guard.as_bytes());
    };
    match mutation {
        Mutation::Acquire {
            holder,
            ttl,
            seal,
            supersede,
            ..
        } => {
            put(8);
            write::short(out, holder.as_bytes());
            write::u64(out, ttl.get());
            out.push(u8::from(*seal));
            out.push(u8::from(*supersede));
        }
        Mutation::Renew { lease, ttl, .. } => {
            put(9);
            write::u64(out, lease.get());
            write::u64(out, ttl.map_or(0, Ttl::get));
        }
        Mutation::Release { lease, .. } => {
            put(10);
            write::u64(out, lease.get());
        }
        Mutation::Revoke { lease, by, .. } => {
            put(11);
            write::u64(out, lease.map_or(0, LeaseId::get));
            write::short(out, by.as_bytes());
        }
        Mutation::Expire { lease, .. } => {
            put(12);
            write::u64(out, lease.get());
        }
        _ => {}
    }
}

fn put_key(kind: u8, key: &Key, out: &mut Vec<u8>) {
    out.push(kind);
    write::short(out, key.as_bytes());
}

fn put_condition(condition: &Condition, out: &mut Vec<u8>) {
    let generation = |number: &Option<Generation>| number.map_or(0, Generation::get);
    let metageneration = |number: &Option<Metageneration>| number.map_or(0, Metageneration::get);
    match condition {
        Condition::GenerationIs {
            key,
            generation: number,
        } => {
            put_key(1, key, out);
            write::u64(out, generation(number));
        }
        Condition::GenerationIsNot {
            key,
            generation: number,
        } => {
            put_key(2, key, out);
            write::u64(out, generation(number));
        }
        Condition::MetagenerationIs {
            key,
            metageneration: number,
        } => {
            put_key(3, key, out);
            write::u64(out, metageneration(number));
        }
        Condition::MetagenerationIsNot {
            key,
            metageneration: number,
        } => {
            put_key(4, key, out);
            write::u64(out, metageneration(number));
        }
        Condition::WrittenUnder { key, term } => {
            put_key(5, key, out);
            put_term(term, out);
        }
        Condition::ValueDigestIs { key, digest } => {
            put_key(6, key, out);
            out.extend_from_slice(&digest.bytes());
        }
        Condition::KeyUnchangedSince { key, revision } => {
            put_key(7, key, out);
            write::u64(out, revision.get());
        }
        Condition::PrefixUnchangedSince { prefix, revision } => {
            out.push(8);
            write::short(out, prefix.as_bytes());
            write::u64(out, revision.get());
        }
    }
}
