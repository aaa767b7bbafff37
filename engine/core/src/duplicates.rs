//! Finds names that stand twice in one request.

use alloc::vec::Vec;

use crate::command::{Authorities, Commit, Mutation};
use crate::names::{Guard, Key};

/// A key that two mutations name.
pub(crate) fn key_named_twice(mutations: &[Mutation]) -> Option<Key> {
    twice(mutations.iter().filter_map(Mutation::key))
}

/// A guard that two advances, or two authorities, name.
pub(crate) fn guard_named_twice(commit: &Commit) -> Option<Guard> {
    let advanced = commit
        .mutations
        .iter()
        .filter_map(|mutation| match mutation {
            Mutation::Advance { guard } => Some(guard),
            _ => None,
        });
    if let Some(guard) = twice(advanced) {
        return Some(guard);
    }
    match &commit.authority {
        Authorities::PerGuard(list) => twice(list.iter().map(|(guard, _)| guard)),
        Authorities::None | Authorities::One(_) => None,
    }
}

/// A guard that two mutations of leases name.
pub(crate) fn lease_changed_twice(mutations: &[Mutation]) -> Option<Guard> {
    twice(mutations.iter().filter_map(Mutation::leased_guard))
}

fn twice<'a, T: Ord + Clone + 'a>(names: impl Iterator<Item = &'a T>) -> Option<T> {
    let mut names = names.peekable();
    names.peek()?;
    let mut sorted: Vec<&T> = names.collect();
    sorted.sort_unstable();
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs.find(|(a, b)| a == b).map(|(a, _)| (*a).clone())
}
