//! The invariants of intents: what a decision records passes, and one step beside it is named by
//! what it breaks.

use std::sync::Arc;

use highwater_core::codec::{decode_effect, encode_intent};
use highwater_core::{
    Admission, Effect, Ending, GuardRule, HolderBinding, IntentRecord, IntentState, Step,
    StepRecord, View, Violation, check_effect, check_intent,
};

use crate::oracle::Rules;
use crate::raw::{self, Change, auth, put, request, task};
use crate::twin::{MARK, START, Twin};

/// The revision of the effects that are checked.
const NEXT: u64 = START + 4;

/// "i" is bound and has one step, "j" has ended.
fn world() -> Twin {
    let mut twin = Twin::new(Rules {
        guard: GuardRule::Key,
        admission: Admission::Open,
        binding: HolderBinding::None,
        step: None,
    });
    let bind = vec![Change::Bind(b"i".to_vec(), task("k")), put("k", "1")];
    assert!(twin.step(&request(bind).under(auth(1, MARK, 1, "a")).step("i", 1)));
    assert!(twin.step(&request(vec![put("k", "2")]).step("j", 1).completing()));
    twin
}

/// A view of the intents "i", "j" and "n", of which the last isn't known.
fn view(twin: &Twin) -> View {
    let close = |id: &str| Change::Close(id.into(), None, "rejected");
    let changes = vec![close("i"), close("j"), close("n")];
    twin.state.view(&request(changes).commit())
}

fn stored(twin: &Twin, id: &str) -> IntentRecord {
    let domain = twin.domain().id;
    let record = twin.state.intent(domain, &raw::intent(id.as_bytes()));
    IntentRecord::clone(record.unwrap())
}

/// An effect that leaves these intents, judged by nobody: read from bytes.
fn effect(intents: &[(&str, IntentRecord)]) -> Effect {
    let mut out = vec![1];
    out.extend(NEXT.to_be_bytes());
    out.extend([4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(u32::try_from(intents.len()).unwrap().to_be_bytes());
    for (id, record) in intents {
        out.extend(u16::try_from(id.len()).unwrap().to_be_bytes());
        out.extend(id.as_bytes());
        encode_intent(record, &mut out);
    }
    out.extend([0; 4]);
    decode_effect(&out).unwrap()
}

/// A record after a change at a revision.
fn changed(
    mut record: IntentRecord,
    at: u64,
    change: impl FnOnce(&mut IntentRecord),
) -> IntentRecord {
    record.changed_at = raw::revision(at);
    change(&mut record);
    record
}

/// A step more, with the receipt of a revision.
fn add(record: &mut IntentRecord, at: u64) {
    let last = record.steps.last().unwrap();
    let mut step = StepRecord::clone(last);
    step.step = last.step.next().unwrap();
    step.receipt.revision = raw::revision(at);
    record.steps.push(Arc::new(step));
}

fn edit(record: &mut IntentRecord, change: impl FnOnce(&mut StepRecord)) {
    let mut step = StepRecord::clone(&record.steps[0]);
    change(&mut step);
    record.steps[0] = Arc::new(step);
}

const CANCELLED: IntentState = IntentState::Ended(Ending::Cancelled);

#[test]
fn what_follows_breaks_nothing() {
    let twin = world();
    let (i, view) = (stored(&twin, "i"), view(&twin));
    let mut new = i.clone();
    edit(&mut new, |step| step.receipt.revision = raw::revision(NEXT));
    for intents in [
        vec![("i", changed(i.clone(), NEXT, |i| i.state = CANCELLED))],
        vec![("i", changed(i.clone(), NEXT, |i| add(i, NEXT)))],
        vec![("n", changed(new.clone(), NEXT, |_| {}))],
        vec![
            ("i", changed(i, NEXT, |_| {})),
            ("n", changed(new, NEXT, |n| n.steps.clear())),
        ],
    ] {
        let effect = effect(&intents);
        assert_eq!(check_effect(&view, &effect), Ok(()), "{effect:?}");
    }
}

/// Effects beside the sound ones, with the invariant that each breaks.
pub(crate) fn unsound() -> Vec<(Effect, Violation)> {
    use Violation::{BadName, IntentOutOfStep, IntentRewritten, StepsOutOfOrder, UnknownRow};
    let twin = world();
    let (i, j) = (stored(&twin, "i"), stored(&twin, "j"));
    let of_i =
        |change: &dyn Fn(&mut IntentRecord)| vec![("i", changed(i.clone(), NEXT, |i| change(i)))];
    let of_j =
        |change: &dyn Fn(&mut IntentRecord)| vec![("j", changed(j.clone(), NEXT, |j| change(j)))];
    let ends = |record: &IntentRecord| changed(record.clone(), NEXT, |r| r.state = CANCELLED);
    let digest = |i: &mut IntentRecord| edit(i, |s| s.digest = raw::digest(b"other"));
    let receipt = |i: &mut IntentRecord| edit(i, |s| s.receipt.writes.clear());
    let cases = [
        (
            of_i(&|i| i.changed_at = raw::revision(NEXT - 1)),
            IntentOutOfStep,
        ),
        (
            of_i(&|i| i.changed_at = raw::revision(NEXT + 1)),
            StepsOutOfOrder,
        ),
        (of_i(&|i| add(i, NEXT - 1)), IntentOutOfStep),
        (of_i(&|i| add(i, NEXT + 1)), StepsOutOfOrder),
        (of_i(&|i| add(i, START + 2)), StepsOutOfOrder),
        (
            of_i(&|i| {
                add(i, NEXT - 1);
                add(i, NEXT);
            }),
            IntentOutOfStep,
        ),
        (of_i(&|i| i.steps.clear()), IntentRewritten),
        (of_i(&digest), IntentRewritten),
        (of_i(&receipt), IntentRewritten),
        (of_i(&|i| i.binding = None), IntentRewritten),
        (of_j(&|j| j.binding.clone_from(&i.binding)), IntentRewritten),
        (of_j(&|j| j.state = CANCELLED), IntentRewritten),
        (of_j(&|j| j.state = IntentState::Open), IntentRewritten),
        (of_j(&|j| add(j, NEXT)), IntentRewritten),
        (vec![("q", ends(&i))], UnknownRow),
        (vec![("i", ends(&i)), ("i", ends(&i))], BadName),
        (
            vec![
                ("n", changed(i.clone(), NEXT, |n| n.steps.clear())),
                ("i", ends(&i)),
            ],
            BadName,
        ),
    ];
    cases
        .map(|(intents, violation)| (effect(&intents), violation))
        .into()
}

#[test]
fn what_does_not_follow_is_named_by_what_it_breaks() {
    let view = view(&world());
    for (effect, violation) in unsound() {
        assert_eq!(check_effect(&view, &effect), Err(violation), "{effect:?}");
    }
}

#[test]
fn the_steps_of_a_stored_intent_are_numbered_without_a_gap() {
    let last = raw::revision(START + 100);
    let record = changed(stored(&world(), "i"), START + 100, |_| {});
    let checked = |change: &dyn Fn(&mut IntentRecord)| {
        let mut record = record.clone();
        change(&mut record);
        check_intent(&record, last)
    };
    let wrong = Err(Violation::StepsOutOfOrder);
    assert_eq!(checked(&|_| {}), Ok(()));
    assert_eq!(checked(&|i| add(i, START + 9)), Ok(()));
    assert_eq!(checked(&|i| i.steps.clear()), Ok(()));
    assert_eq!(
        checked(&|i| edit(i, |s| s.step = Step::new(2).unwrap())),
        wrong
    );
    assert_eq!(checked(&|i| i.steps.push(i.steps[0].clone())), wrong);
    assert_eq!(checked(&|i| add(i, START + 2)), wrong);
    assert_eq!(checked(&|i| add(i, START + 101)), wrong);
    assert_eq!(checked(&|i| i.changed_at = raw::revision(START + 1)), wrong);
    assert_eq!(
        checked(&|i| i.changed_at = raw::revision(START + 101)),
        wrong
    );
}
