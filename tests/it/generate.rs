//! Random requests that have a fair chance in the world that they are made for.

use highwater_tests::chance::Chance;
use highwater_tests::model::{Model, World, guard_of, guard_touched};
use highwater_tests::raw::{Auth, Auths, Bytes, Change, Cond, ENDINGS, Request, Task};

const KEYS: [&str; 12] = [
    "a", "a/", "a/b", "a/b/c", "a/b/d", "a/c", "b", "b/a", "/", "ab", "c/x", "c/y",
];
const INTENTS: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];
const HOLDERS: [&str; 4] = ["w", "w/1", "w/2", "x"];

/// How requests are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The longest value.
    pub(crate) value_bytes: usize,
    /// One of so many requests has a fault that has nothing to do with fencing.
    pub(crate) odd_one_in: usize,
}

fn authority(chance: &mut Chance, world: &World) -> Auth {
    let (epoch, mark) = match chance.below(16) {
        0 => (world.epoch.0, world.epoch.1 ^ 1),
        1 => (world.epoch.0 + 1, world.epoch.1),
        _ => world.epoch,
    };
    let highest = world.fences.values().map(|fence| fence.sequence).max();
    let above = chance.pick(&[0, 0, 0, 0, 1, 2, 4]);
    let below = chance.pick(&[0, 0, 0, 0, 0, 1, 2]);
    let sequence = (highest.unwrap_or(1) + above).saturating_sub(below).max(1);
    let holder = match world.fences.values().find(|f| f.sequence == sequence) {
        Some(fence) if !chance.one_in(4) => fence.holder.clone(),
        _ => chance.pick(&HOLDERS).into(),
    };
    Auth {
        epoch,
        mark,
        sequence,
        holder,
    }
}

fn change(chance: &mut Chance, world: &World, shape: Shape) -> Change {
    let key: Bytes = chance.pick(&KEYS).into();
    let text = chance.pick(&["", "text", "json"]).to_owned();
    let guard = guard_of(&world.policy, &key);
    let id: Bytes = chance.pick(&INTENTS).into();
    let bound = match world.plans.get(&id) {
        Some(plan) if !chance.one_in(4) => plan.told.binding.as_ref().map(|b| b.0.guard.clone()),
        _ => chance.pick(&[None, Some(guard.clone())]),
    };
    match chance.below(32) {
        30 => {
            let generation = world.rows.get(&key).map_or(0, |row| row.generation);
            let inputs = vec![(key, generation)];
            let configuration = chance.pick(&[None, Some(b"v1".to_vec())]);
            let task = Task {
                guard,
                inputs,
                configuration,
            };
            Change::Bind(id, task)
        }
        31 if chance.one_in(2) => Change::Suspend(id, bound, b"ops".into(), chance.bits() % 3),
        31 => Change::Close(id, bound, chance.pick(&ENDINGS).0),
        0..6 => Change::Delete(key),
        6..9 => Change::Label(key, text),
        9..12 => Change::Advance(guard),
        12..15 if chance.one_in(4) => Change::Advance(key),
        _ => Change::Put(key, chance.bytes(shape.value_bytes), text),
    }
}

fn condition(chance: &mut Chance, model: &Model, world: &World) -> Cond {
    let key: Bytes = chance.pick(&KEYS).into();
    let row = world.rows.get(&key);
    let now = model.revision;
    let moments = [now - 40, now - 9, now - 2, now, now, now + 1, model.floor];
    let moment = chance.pick(&moments).max(1 << 48);
    let generation = row.map_or(0, |row| row.generation);
    let metageneration = row.map_or(0, |row| row.metageneration);
    let other = chance.pick(&[0, now]);
    match chance.below(9) {
        0 | 1 => Cond::GenerationIs(key, chance.pick(&[generation, generation, other])),
        2 => Cond::GenerationIsNot(key, chance.pick(&[other, generation])),
        3 => Cond::MetagenerationIs(key, chance.pick(&[metageneration, 1])),
        4 => Cond::MetagenerationIsNot(key, chance.pick(&[metageneration, 7, 7])),
        5 => {
            let (number, mark) = world.epoch;
            let term = row.and_then(|row| row.under);
            Cond::WrittenUnder(key, term.unwrap_or((number, mark, 1)))
        }
        6 => Cond::DigestOf(key, row.map_or(Vec::new(), |row| row.value.clone())),
        7 => Cond::KeySince(key, moment),
        _ => Cond::PrefixSince(
            chance.pick(&["", "a/", "a/b", "b", "c", "zz"]).into(),
            moment,
        ),
    }
}

/// A request on this domain.
pub(crate) fn request(chance: &mut Chance, model: &Model, name: &str, shape: Shape) -> Request {
    let world = &model.worlds[name];
    let changes = (0..1 + chance.below(3)).map(|_| change(chance, world, shape));
    let mut request = Request::of(name, changes.collect());
    let conditions = chance.pick(&[0, 0, 0, 1, 2]);
    request.conds = (0..conditions)
        .map(|_| condition(chance, model, world))
        .collect();
    if !chance.one_in(8) {
        for key in request.changes.iter().filter_map(Change::key) {
            let generation = world.rows.get(key).map_or(0, |row| row.generation);
            request
                .conds
                .push(Cond::GenerationIs(key.clone(), generation));
        }
    }
    let auth = authority(chance, world);
    request.caller = match chance.below(12) {
        0 => None,
        1 => Some(b"w".to_vec()),
        _ => Some(auth.holder.clone()),
    };
    request.auth = match chance.below(12) {
        0 => Auths::None,
        1..=3 => Auths::PerGuard(per_guard(chance, world, &request)),
        _ => Auths::One(auth),
    };
    if chance.one_in(6) {
        as_step(chance, world, &mut request);
    }
    if chance.one_in(shape.odd_one_in) {
        odd(chance, model, &mut request);
    }
    request
}

/// Makes a request a step of an intent: the next one, or another, or one that there was.
fn as_step(chance: &mut Chance, world: &World, request: &mut Request) {
    let id: Bytes = chance.pick(&INTENTS).into();
    let done = world.plans.get(&id).map_or(&[][..], |plan| &plan.asked);
    let next = u32::try_from(done.len()).unwrap() + 1;
    let step = chance
        .pick(&[next, next, next, next, next - 1, next + 1])
        .clamp(1, 64);
    request.intent = Some((id.clone(), step, chance.one_in(12)));
    if chance.one_in(2)
        && let Some((changes, conds, completes)) = done.last()
    {
        request.changes.clone_from(changes);
        request.conds.clone_from(conds);
        request.intent = Some((id, next - 1, *completes));
    }
}

fn per_guard(chance: &mut Chance, world: &World, request: &Request) -> Vec<(Bytes, Auth)> {
    let mut list: Vec<(Bytes, Auth)> = Vec::new();
    for change in &request.changes {
        let Some(guard) = guard_touched(&world.policy, change) else {
            continue;
        };
        if list.iter().all(|(named, _)| *named != guard) {
            list.push((guard, authority(chance, world)));
        }
    }
    list
}

/// Breaks a request in a way that has nothing to do with fencing.
fn odd(chance: &mut Chance, model: &Model, request: &mut Request) {
    match chance.below(5) {
        0 => request.changes.clear(),
        1 => request.domain = "nowhere".into(),
        2 => request.changes.extend(request.changes.clone()),
        3 => request.destination = Some((model.place.0, model.place.1, model.place.2 ^ 1)),
        _ => request.destination = Some(model.place),
    }
}
