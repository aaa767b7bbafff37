//! Each numbered invariant: a sound effect or row passes, and one step beside it is named by the
//! invariant that it breaks.

use std::collections::BTreeSet;

use highwater_core::codec::{decode_effect, encode_fence, encode_record};
use highwater_core::{
    Admission, DestinationId, Domain, Effect, EpochEntry, EpochTable, Fence, Generation, GuardRule,
    HolderBinding, Metadata, Metageneration, Record, Value, View, Violation, check_domain,
    check_effect, check_fence, check_record,
};

use crate::oracle::Rules;
use crate::raw::{self, Auth, auth, put, request};
use crate::twin::{MARK, START, Twin};

/// The revision of the effects that are checked.
const NEXT: u64 = START + 3;

/// A domain with one fence for each job: "k" is written at START + 2 under sequence 5 of "a".
fn world() -> Twin {
    let by_job = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    let mut twin = Twin::new(Rules {
        guard: by_job,
        admission: Admission::Open,
        binding: HolderBinding::None,
        step: None,
    });
    assert!(twin.step(&request(vec![put("k", "1")]).under(auth(1, MARK, 5, "a"))));
    twin
}

/// A view of the keys "j" and "k" and of their guards.
fn view(twin: &Twin) -> View {
    let changes = vec![put("j", ""), put("k", "")];
    twin.state.view(&request(changes).commit())
}

/// A record: generation, metageneration and last change, the first and last counted from START.
fn record(generation: u64, metageneration: u64, changed: u64, under: Option<u64>) -> Record {
    Record {
        generation: Generation::new(START + generation).unwrap(),
        metageneration: Metageneration::new(metageneration).unwrap(),
        changed_at: raw::revision(START + changed),
        written_under: under.map(|sequence| raw::term(1, MARK, sequence)),
        value: Value::new("").unwrap(),
        metadata: Metadata::default(),
    }
}

fn fence(auth: &Auth) -> Fence {
    raw::authority(auth).to_fence()
}

/// An effect of any content, judged by nobody: read from bytes.
fn effect(
    revision: u64,
    domain: u8,
    records: &[(&str, Option<Record>)],
    fences: &[(&str, Auth)],
) -> Effect {
    let count = |count: usize| u32::try_from(count).unwrap().to_be_bytes();
    let name = |out: &mut Vec<u8>, name: &str| {
        out.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        out.extend(name.as_bytes());
    };
    let mut out = vec![1];
    out.extend(revision.to_be_bytes());
    out.extend([3, 0, 0, 0, domain]);
    out.extend(count(records.len()));
    for (key, record) in records {
        name(&mut out, key);
        out.push(u8::from(record.is_some()));
        if let Some(record) = record {
            encode_record(record, &mut out);
        }
    }
    out.extend(count(fences.len()));
    for (guard, auth) in fences {
        name(&mut out, guard);
        encode_fence(&fence(auth), &mut out);
    }
    decode_effect(&out).unwrap()
}

fn by(sequence: u64) -> Auth {
    auth(1, MARK, sequence, "a")
}

/// A write of "k" at the next revision, under this sequence.
fn written(under: Option<u64>) -> (&'static str, Option<Record>) {
    ("k", Some(record(3, 1, 3, under)))
}

#[test]
fn a_sound_effect_breaks_nothing() {
    let view = view(&world());
    let twice = Some(record(2, 2, 3, Some(5)));
    for effect in [
        effect(NEXT, 1, &[], &[]),
        effect(NEXT, 1, &[("k", None), written_at("j")], &[]),
        effect(NEXT, 1, &[written(None)], &[]),
        effect(NEXT, 1, &[written(Some(5))], &[]),
        effect(NEXT, 1, &[written(Some(6))], &[("k", by(6))]),
        effect(NEXT, 1, &[("k", twice)], &[("j", by(1)), ("k", by(9))]),
    ] {
        assert_eq!(check_effect(&view, &effect), Ok(()), "{effect:?}");
    }
}

fn written_at(key: &str) -> (&str, Option<Record>) {
    (key, Some(record(3, 1, 3, None)))
}

/// Effects beside the sound ones, with the invariant that each breaks.
fn unsound() -> Vec<(Effect, Violation)> {
    use Violation::{
        BadName, FenceNotRaised, FenceOfAnotherEpoch, GenerationOutOfStep, MetagenerationOutOfStep,
        RecordFromTheFuture, RecordOfUnknownEpoch, RevisionNotNext, UnknownRow,
        WrittenBelowTheFence,
    };
    let one = |record: Record| effect(NEXT, 1, &[("k", Some(record))], &[]);
    let raise = |fences: &[(&str, Auth)]| effect(NEXT, 1, &[], fences);
    let mut strange = record(3, 1, 3, Some(5));
    strange.written_under = Some(raw::term(1, MARK + 1, 5));
    let genesis = Effect::genesis(DestinationId::new([1; 16]), raw::incarnation(2, 1));
    vec![
        (effect(NEXT + 1, 1, &[], &[]), RevisionNotNext),
        (effect(NEXT - 1, 1, &[], &[]), RevisionNotNext),
        (genesis, RevisionNotNext),
        (effect(NEXT, 2, &[], &[]), UnknownRow),
        (
            effect(NEXT, 1, &[("q", Some(record(3, 1, 3, None)))], &[]),
            UnknownRow,
        ),
        (raise(&[("q", by(1))]), UnknownRow),
        (effect(NEXT, 1, &[("k", None), ("k", None)], &[]), BadName),
        (raise(&[("j", by(1)), ("j", by(2))]), BadName),
        (raise(&[("k", by(6)), ("j", by(6))]), BadName),
        (raise(&[("k/x", by(6))]), BadName),
        (
            raise(&[("k", auth(1, MARK + 1, 6, "a"))]),
            FenceOfAnotherEpoch,
        ),
        (raise(&[("k", auth(2, MARK, 6, "a"))]), FenceOfAnotherEpoch),
        (raise(&[("k", by(5))]), FenceNotRaised),
        (raise(&[("k", auth(1, MARK, 5, "b"))]), FenceNotRaised),
        (raise(&[("k", by(4))]), FenceNotRaised),
        (one(record(3, 1, 4, None)), RecordFromTheFuture),
        (one(record(4, 1, 3, None)), RecordFromTheFuture),
        (one(record(3, 2, 3, None)), MetagenerationOutOfStep),
        (one(record(2, 1, 3, None)), MetagenerationOutOfStep),
        (one(strange), RecordOfUnknownEpoch),
        (one(record(2, 1, 2, None)), GenerationOutOfStep),
        (one(record(2, 3, 3, None)), GenerationOutOfStep),
        (one(record(1, 2, 3, None)), GenerationOutOfStep),
        (
            effect(NEXT, 1, &[("j", Some(record(2, 2, 3, None)))], &[]),
            GenerationOutOfStep,
        ),
        (one(record(3, 1, 3, Some(4))), WrittenBelowTheFence),
        (one(record(3, 1, 3, Some(6))), WrittenBelowTheFence),
        (
            effect(NEXT, 1, &[written(Some(5))], &[("k", by(6))]),
            WrittenBelowTheFence,
        ),
        (
            effect(NEXT, 1, &[("j", Some(record(3, 1, 3, Some(1))))], &[]),
            WrittenBelowTheFence,
        ),
    ]
}

#[test]
fn an_unsound_effect_is_named_by_what_it_breaks() {
    let view = view(&world());
    let mut named = BTreeSet::new();
    for (effect, violation) in unsound() {
        assert_eq!(check_effect(&view, &effect), Err(violation), "{effect:?}");
        named.insert(number(violation));
    }
    named.insert(number(Violation::EpochsOutOfOrder));
    for (_, violation) in crate::intents_kept::unsound() {
        named.insert(number(violation));
    }
    for (_, violation) in crate::leases_kept::unsound() {
        named.insert(number(violation));
    }
    assert!(named.into_iter().eq(1..=19));
}

/// The number of an invariant, which its sentence begins with. A new one doesn't compile until it
/// stands here.
fn number(violation: Violation) -> u8 {
    let number = match violation {
        Violation::RevisionNotNext => 1,
        Violation::RecordFromTheFuture => 2,
        Violation::MetagenerationOutOfStep => 3,
        Violation::FenceOfAnotherEpoch => 4,
        Violation::FenceNotRaised => 5,
        Violation::BadName => 6,
        Violation::EpochsOutOfOrder => 7,
        Violation::RecordOfUnknownEpoch => 8,
        Violation::GenerationOutOfStep => 9,
        Violation::WrittenBelowTheFence => 10,
        Violation::UnknownRow => 11,
        Violation::StepsOutOfOrder => 12,
        Violation::IntentRewritten => 13,
        Violation::IntentOutOfStep => 14,
        Violation::GrantsOutOfOrder => 15,
        Violation::TermNotAbove => 16,
        Violation::LeaseOutOfStep => 17,
        Violation::LeaseReturned => 18,
        Violation::LeaseClockBehind => 19,
    };
    assert!(violation.to_string().starts_with(&format!("I{number}: ")));
    number
}

/// Epochs by number and by the revision that installed them, counted from START.
fn with_epochs(epochs: &[(u64, u64)]) -> Domain {
    let entry = |(number, at): &(u64, u64)| EpochEntry {
        epoch: raw::epoch(*number, MARK),
        installed_at: raw::revision(START + at),
    };
    let (current, retired) = epochs.split_last().unwrap();
    let mut domain = world().domain();
    domain.epochs = EpochTable::with_retired(retired.iter().map(entry).collect(), entry(current));
    domain
}

#[test]
fn epochs_and_their_revisions_strictly_rise() {
    let out_of_order = Err(Violation::EpochsOutOfOrder);
    for (epochs, wanted) in [
        (vec![(1, 1)], Ok(())),
        (vec![(1, 1), (2, 2)], Ok(())),
        (vec![(1, 1), (5, 2), (7, 9)], Ok(())),
        (vec![(1, 1), (1, 2)], out_of_order),
        (vec![(2, 1), (1, 2)], out_of_order),
        (vec![(1, 1), (2, 1)], out_of_order),
        (vec![(1, 2), (2, 1)], out_of_order),
        (vec![(1, 1), (3, 2), (2, 3)], out_of_order),
    ] {
        let domain = with_epochs(&epochs);
        assert_eq!(check_domain(&domain), wanted, "{epochs:?}");
        let mut twin = world();
        twin.state.replace_domain(domain);
        assert_eq!(twin.state.check().is_ok(), wanted.is_ok());
    }
}

#[test]
fn rows_are_checked_against_their_domain() {
    let domain = with_epochs(&[(1, 1), (4, 2)]);
    let current = fence(&auth(4, MARK, 1, "a"));
    assert_eq!(check_fence(&domain, &current), Ok(()));
    for other in [auth(1, MARK, 1, "a"), auth(4, MARK + 1, 1, "a")] {
        let violation = check_fence(&domain, &fence(&other));
        assert_eq!(violation, Err(Violation::FenceOfAnotherEpoch));
    }
    let last = raw::revision(START + 3);
    let under = |number| {
        let mut record = record(3, 1, 3, None);
        record.written_under = Some(raw::term(number, MARK, 1));
        check_record(&domain, &record, last)
    };
    assert_eq!((under(1), under(4)), (Ok(()), Ok(())));
    assert_eq!(under(2), Err(Violation::RecordOfUnknownEpoch));
    let late = check_record(&domain, &record(3, 1, 3, None), raw::revision(START + 2));
    assert_eq!(late, Err(Violation::RecordFromTheFuture));
}

/// Folding has no rule: what was never judged is folded, and the check of the whole state shows it.
#[test]
fn damage_in_a_state_shows() {
    let mut twin = world();
    twin.state.check().unwrap();
    let ahead = effect(NEXT, 1, &[("k", Some(record(9, 1, 9, None)))], &[]);
    twin.state.apply(&ahead);
    assert_eq!(twin.state.check(), Err(Violation::RecordFromTheFuture));
    let mut twin = world();
    twin.state
        .apply(&effect(NEXT, 7, &[("k", Some(record(3, 1, 3, None)))], &[]));
    assert_eq!(twin.state.check(), Err(Violation::UnknownRow));
    let mut twin = world();
    twin.state.apply(&effect(NEXT, 7, &[], &[("k", by(1))]));
    assert_eq!(twin.state.check(), Err(Violation::UnknownRow));
}
