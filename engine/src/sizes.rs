//! What a request takes: in memory while it waits, and in the log if it is accepted.

use highwater_core::limits::{INTENT_CHANGE_BYTES_MAX, LEASE_CHANGE_BYTES_MAX};
use highwater_core::{
    Authorities, Authority, Condition, Configuration, Guard, Input, IntentId, Key, Mutation,
};

use crate::queue::Request;
use crate::weight;

/// What every request counts beside what it holds, in bytes: the request itself, its place in the
/// queue, and where its answer goes.
const REQUEST_OVERHEAD_BYTES: usize = 512;
/// What bytes that are shared count beside themselves: their counts, and the allocator's rounding.
const SHARED_OVERHEAD_BYTES: usize = 32;
/// What every part of a request takes in the log beside its key and value, in bytes, at most:
/// record header, term, fence, holder, and the guard's name where that isn't the key's.
pub(crate) const PART_OVERHEAD_BYTES: usize = 2_048;

/// The bytes of a request in memory, and an upper bound for its effect in the log.
pub(crate) fn sizes(request: &Request) -> (usize, usize) {
    let commit = match request {
        Request::CreateDomain(_) | Request::NoteClock => {
            return (REQUEST_OVERHEAD_BYTES, PART_OVERHEAD_BYTES);
        }
        Request::Commit(asked) => &asked.commit,
    };
    let caller = commit.caller.as_ref();
    let mut bytes = REQUEST_OVERHEAD_BYTES
        + shared(commit.domain.as_str().as_bytes())
        + caller.map_or(0, |caller| shared(caller.as_bytes()))
        + of_authorities(&commit.authority);
    let mut log_bytes = PART_OVERHEAD_BYTES;
    if let Some(used) = &commit.intent {
        bytes += shared(used.id.as_bytes());
        log_bytes += INTENT_CHANGE_BYTES_MAX;
    }
    for mutation in &commit.mutations {
        let (content, held) = match mutation {
            Mutation::Put {
                key,
                value,
                metadata,
            } => {
                let (key, value) = (key.as_bytes(), value.as_bytes());
                let held = shared(key) + shared(value) + weight::of_metadata(metadata);
                (key.len() + value.len() + metadata.bytes(), held)
            }
            Mutation::SetMetadata { key, metadata } => {
                let key = key.as_bytes();
                let held = shared(key) + weight::of_metadata(metadata);
                (key.len() + metadata.bytes(), held)
            }
            Mutation::Delete { key } => (key.as_bytes().len(), shared(key.as_bytes())),
            Mutation::Advance { guard } => (guard.as_bytes().len(), shared(guard.as_bytes())),
            Mutation::BindIntent { .. }
            | Mutation::CloseIntent { .. }
            | Mutation::SuspendIntent { .. } => (INTENT_CHANGE_BYTES_MAX, of_intent(mutation)),
            Mutation::Acquire { .. }
            | Mutation::Renew { .. }
            | Mutation::Release { .. }
            | Mutation::Revoke { .. }
            | Mutation::Expire { .. } => (LEASE_CHANGE_BYTES_MAX, weight::of_leasing(mutation)),
        };
        bytes += size_of::<Mutation>() + held;
        log_bytes += content + PART_OVERHEAD_BYTES;
    }
    bytes += commit.conditions.iter().map(of_condition).sum::<usize>();
    (bytes, log_bytes)
}

/// What a mutation of an intent holds beside itself.
fn of_intent(mutation: &Mutation) -> usize {
    let name = |name: Option<&[u8]>| name.map_or(0, shared);
    let id = name(mutation.intent().map(IntentId::as_bytes));
    let guard = name(mutation.named_guard().map(Guard::as_bytes));
    let rest = match mutation {
        Mutation::BindIntent { work, .. } => {
            let input = |input: &Input| match input {
                Input::Key { key, .. } => size_of::<Input>() + shared(key.as_bytes()),
                Input::Named { name, .. } => size_of::<Input>() + shared(name.as_bytes()),
            };
            let inputs: usize = work.inputs.iter().map(input).sum();
            let configuration = work.configuration.as_ref();
            inputs + name(configuration.map(Configuration::as_bytes))
        }
        Mutation::SuspendIntent { owner, .. } => shared(owner.as_bytes()),
        _ => 0,
    };
    id + guard + rest
}

/// Bytes that are shared behind a count of their owners.
const fn shared(bytes: &[u8]) -> usize {
    SHARED_OVERHEAD_BYTES + bytes.len()
}

fn of_condition(condition: &Condition) -> usize {
    let name = match condition {
        Condition::PrefixUnchangedSince { prefix, .. } => prefix.as_bytes(),
        _ => condition.key().map_or(&[][..], Key::as_bytes),
    };
    size_of::<Condition>() + shared(name)
}

fn of_authorities(authorities: &Authorities) -> usize {
    let holder = |authority: &Authority| shared(authority.holder().as_bytes());
    match authorities {
        Authorities::None => 0,
        Authorities::One(authority) => holder(authority),
        Authorities::PerGuard(list) => list
            .iter()
            .map(|(guard, authority)| {
                size_of::<(Guard, Authority)>() + shared(guard.as_bytes()) + holder(authority)
            })
            .sum(),
    }
}
