//! Requests in raw numbers and bytes, as the tests of the whole store have them, and short ways to
//! make them and the core's types.

use highwater_core::{
    Authority, Commit, Digest, Epoch, EpochMark, EpochNumber, ExpectedDestination, Fence, Guard,
    Incarnation, IncarnationMark, IncarnationNumber, IntentId, Key, Revision, Sequence, Term,
};

#[path = "../shared/raw.rs"]
#[expect(unreachable_pub, reason = "the tests of the whole store share it")]
mod shared;

pub(crate) use shared::*;

pub(crate) fn auth(epoch: u64, mark: u64, sequence: u64, holder: &str) -> Auth {
    Auth {
        epoch,
        mark,
        sequence,
        holder: holder.as_bytes().to_vec(),
    }
}

pub(crate) fn put(key: &str, value: &str) -> Change {
    Change::Put(key.into(), value.into(), String::new())
}

pub(crate) fn delete(key: &str) -> Change {
    Change::Delete(key.into())
}

pub(crate) fn label(key: &str, text: &str) -> Change {
    Change::Label(key.into(), text.into())
}

pub(crate) fn advance(guard: &str) -> Change {
    Change::Advance(guard.into())
}

/// A request on the domain "d" with these changes, under nobody's authority.
pub(crate) fn request(changes: Vec<Change>) -> Request {
    Request::of("d", changes)
}

/// Work under a guard, without inputs.
pub(crate) fn task(guard: &str) -> Task {
    Task {
        guard: guard.into(),
        inputs: Vec::new(),
        configuration: None,
    }
}

impl Request {
    pub(crate) fn called_by(mut self, caller: &str) -> Self {
        self.caller = Some(caller.into());
        self
    }

    pub(crate) fn completing(mut self) -> Self {
        self.intent.as_mut().unwrap().2 = true;
        self
    }

    pub(crate) fn commit(&self) -> Commit {
        self.typed_with(digest).unwrap()
    }
}

pub(crate) fn expected(place: Place) -> ExpectedDestination {
    destination(place).unwrap()
}

pub(crate) fn authority(auth: &Auth) -> Authority {
    auth.typed().unwrap()
}

pub(crate) fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

pub(crate) fn intent(bytes: &[u8]) -> IntentId {
    IntentId::new(bytes).unwrap()
}

pub(crate) fn guard(bytes: &[u8]) -> Guard {
    Guard::new(bytes).unwrap()
}

pub(crate) fn incarnation(number: u16, mark: u64) -> Incarnation {
    let number = IncarnationNumber::new(number).unwrap();
    Incarnation::new(number, IncarnationMark::new(mark))
}

pub(crate) fn epoch(number: u64, mark: u64) -> Epoch {
    Epoch::new(EpochNumber::new(number).unwrap(), EpochMark::new(mark))
}

pub(crate) fn term(epoch_number: u64, mark: u64, sequence: u64) -> Term {
    Term {
        epoch: epoch(epoch_number, mark),
        sequence: Sequence::new(sequence).unwrap(),
    }
}

/// A fence of the core in raw numbers.
pub(crate) fn raw_fence(fence: &Fence) -> Auth {
    Auth {
        epoch: fence.term.epoch.number().get(),
        mark: fence.term.epoch.mark().get(),
        sequence: fence.term.sequence.get(),
        holder: fence.holder.as_bytes().to_vec(),
    }
}

pub(crate) fn revision(raw: u64) -> Revision {
    Revision::new(raw).unwrap()
}

/// A digest that keeps apart what nobody made to collide: four different sums over all bytes.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    let mut lanes = [1_u64, 2, 3, 4];
    for lane in &mut lanes {
        for byte in bytes {
            let mixed = (*lane ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            *lane = mixed.rotate_left(29);
        }
    }
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_be_bytes()).collect();
    Digest::new(bytes.try_into().unwrap())
}

pub(crate) fn prefix_of(cond: &Cond) -> Option<&Bytes> {
    match cond {
        Cond::PrefixSince(prefix, _) => Some(prefix),
        _ => None,
    }
}
