//! A second opinion on the whole store: what the contract says, over bare numbers and ordered maps.
//! It shares no comparison with the product; of a policy it reads the settings.

use std::collections::{BTreeMap, BTreeSet};

use highwater::{Admission, HolderBinding, Policy};

use crate::guards::is_guard;
pub use crate::guards::{guard_of, guard_touched};
use crate::plans::{self, Obstacle, Plans, Statement};
pub use crate::raw::presented;
use crate::raw::{Auth, Auths, Bytes, Change, Cond, Place, Request};
use crate::seen::Refusal;

/// The most mutations, and the most conditions, of a commit.
const PARTS_MAX: usize = 1_024;
/// The most bytes of keys, values and metadata of a commit.
const COMMIT_BYTES_MAX: usize = 16 << 20;

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The revision that wrote the value.
    pub generation: u64,
    /// The version of the metadata.
    pub metageneration: u64,
    /// The revision that last changed anything.
    pub changed: u64,
    /// Epoch, mark and sequence that the value was written under.
    pub under: Option<(u64, u64, u64)>,
    /// The value.
    pub value: Bytes,
    /// The content type.
    pub text: String,
}

/// One domain.
#[derive(Clone, Debug)]
pub struct World {
    /// Its settings.
    pub policy: Policy,
    /// Number and mark of its epoch.
    pub epoch: (u64, u64),
    /// What exists.
    pub rows: BTreeMap<Bytes, Row>,
    /// The highest authority accepted under each guard.
    pub fences: BTreeMap<Bytes, Auth>,
    /// The last change of every key there ever was.
    pub touched: BTreeMap<Bytes, u64>,
    /// What is known of each intent.
    pub plans: Plans,
}

/// One destination.
#[derive(Clone, Debug)]
pub struct Model {
    /// Who it is.
    pub place: Place,
    /// The last revision.
    pub revision: u64,
    /// Deletions up to here are forgotten.
    pub floor: u64,
    /// The longest value, in bytes.
    pub value_max: usize,
    /// The domains by name.
    pub worlds: BTreeMap<String, World>,
}

enum Truth {
    Holds,
    Fails,
    TooOld,
}

impl From<Obstacle> for Refusal {
    fn from(obstacle: Obstacle) -> Self {
        Self {
            intent: Some(obstacle.id),
            about: obstacle.about,
            ..refusal(obstacle.code)
        }
    }
}

fn refusal(code: &'static str) -> Refusal {
    Refusal {
        code,
        ..Refusal::default()
    }
}

fn malformed(what: &'static str) -> Refusal {
    Refusal {
        what: Some(what),
        ..refusal("Malformed")
    }
}

fn has_twice<T: Ord>(list: &[T]) -> bool {
    list.iter().collect::<BTreeSet<_>>().len() < list.len()
}

impl Model {
    /// What a request gets on this state, which stays as it is.
    ///
    /// # Errors
    ///
    /// The refusal, with what is observed.
    pub fn judge(&self, request: &Request) -> Result<&World, Box<Refusal>> {
        if let Some(refusal) = self.shapeless(request) {
            return Err(Box::new(refusal));
        }
        if request.destination.is_some_and(|place| place != self.place) {
            return Err(Box::new(refusal("WrongDestination")));
        }
        let Some(world) = self.worlds.get(&request.domain) else {
            return Err(Box::new(refusal("UnknownDomain")));
        };
        let touched: BTreeSet<Bytes> = request
            .changes
            .iter()
            .filter_map(|change| guard_touched(&world.policy, change))
            .collect();
        let refused = world
            .strange_guard(request, &touched)
            .or_else(|| plans::other_outcome(&world.plans, request).map(Refusal::from));
        if refused.is_none() && plans::replayed(&world.plans, request).is_some() {
            return Ok(world);
        }
        let refused = refused
            .or_else(|| self.bare(world, request))
            .or_else(|| world.other_epoch(request, &touched))
            .or_else(|| world.fenced_out(request, &touched))
            .or_else(|| self.condition_fails(world, request))
            .or_else(|| plans::unfit(&world.plans, request, &touched).map(Refusal::from));
        match refused {
            Some(refusal) => Err(Box::new(refusal)),
            None => Ok(world),
        }
    }

    /// Does what an accepted request does, and states it.
    pub fn apply(&mut self, request: &Request) -> Statement {
        let revision = self.revision + 1;
        let mut statement = Statement {
            revision,
            ..Statement::default()
        };
        let Some(world) = self.worlds.get_mut(&request.domain) else {
            return statement;
        };
        if let Some(statement) = plans::replayed(&world.plans, request) {
            return statement;
        }
        self.revision = revision;
        statement.intent = request.intent.as_ref().map(|i| (i.0.clone(), i.1));
        let guards = request
            .changes
            .iter()
            .filter_map(|c| guard_touched(&world.policy, c));
        for guard in guards.collect::<BTreeSet<_>>() {
            if let Some(auth) = presented(request, &guard) {
                let previous = world.fences.insert(guard.clone(), auth.clone());
                statement.guards.push((guard, auth.clone(), previous));
            }
        }
        let generation =
            |world: &World, key: &Bytes| world.rows.get(key).map_or(0, |r| r.generation);
        let inputs: BTreeSet<&Bytes> = request.conds.iter().filter_map(Cond::key).collect();
        for key in inputs {
            statement.inputs.push((key.clone(), generation(world, key)));
        }
        for change in &request.changes {
            let Some(key) = change.key() else { continue };
            let before = generation(world, key);
            world.change(change, revision, request);
            let after = world.rows.get(key);
            statement.writes.push((
                key.clone(),
                after.map_or(0, |row| row.generation),
                after.map_or(0, |row| row.metageneration),
                before,
            ));
        }
        plans::note(&mut world.plans, request, &statement);
        statement
    }

    /// Makes a domain; false if there is one of that name.
    pub fn create(&mut self, name: &str, policy: Policy, epoch: (u64, u64)) -> bool {
        if self.worlds.contains_key(name) {
            return false;
        }
        self.revision += 1;
        let world = World {
            policy,
            epoch,
            rows: BTreeMap::new(),
            fences: BTreeMap::new(),
            touched: BTreeMap::new(),
            plans: Plans::new(),
        };
        self.worlds.insert(name.to_owned(), world);
        true
    }

    fn shapeless(&self, request: &Request) -> Option<Refusal> {
        if request.changes.is_empty() {
            return Some(malformed("Empty"));
        }
        if request.changes.len() > PARTS_MAX || request.conds.len() > PARTS_MAX {
            return Some(malformed("TooMany"));
        }
        let mut total = 0;
        for change in &request.changes {
            let (value, text) = match change {
                Change::Put(_, value, text) => (value.len(), text.len()),
                Change::Label(_, text) => (0, text.len()),
                Change::Bind(_, task) => (0, plans::bytes(task)),
                _ => (0, 0),
            };
            if value > self.value_max {
                return Some(malformed("ValueTooLarge"));
            }
            total += value + text + change.key().map_or(0, Vec::len);
        }
        if total > COMMIT_BYTES_MAX {
            return Some(malformed("CommitTooLarge"));
        }
        let keys: Vec<_> = request.changes.iter().filter_map(Change::key).collect();
        if has_twice(&keys) {
            return Some(malformed("DuplicateKey"));
        }
        let advanced = request.changes.iter().filter_map(|change| match change {
            Change::Advance(guard) => Some(guard),
            _ => None,
        });
        let named: Vec<&Bytes> = match &request.auth {
            Auths::PerGuard(list) => list.iter().map(|(guard, _)| guard).collect(),
            Auths::None | Auths::One(_) => Vec::new(),
        };
        let doubled = has_twice(&advanced.collect::<Vec<_>>()) || has_twice(&named);
        if doubled {
            return Some(malformed("DuplicateGuard"));
        }
        plans::malformed(request).map(malformed)
    }

    /// What the admission demands and isn't there.
    fn bare(&self, world: &World, request: &Request) -> Option<Refusal> {
        let admission = world.policy.admission();
        for change in &request.changes {
            let Some(guard) = guard_touched(&world.policy, change) else {
                if admission == Admission::Fenced {
                    return Some(refusal("AuthorityRequired"));
                }
                continue;
            };
            let raises = matches!(change, Change::Advance(_) | Change::Bind(..));
            let demanded = admission == Admission::Fenced || raises;
            if demanded && presented(request, &guard).is_none() {
                return Some(world.at_guard("AuthorityRequired", &guard, None));
            }
            let Some(key) = change.key() else { continue };
            let pinned = |c: &Cond| matches!(c, Cond::GenerationIs(on, _) if on == key);
            if admission == Admission::Versioned && !request.conds.iter().any(pinned) {
                let bare = refusal("PreconditionRequired");
                return Some(self.at_key(bare, world, request, key));
            }
        }
        None
    }

    fn condition_fails(&self, world: &World, request: &Request) -> Option<Refusal> {
        for (index, cond) in request.conds.iter().enumerate() {
            let code = match self.truth(world, cond) {
                Truth::Holds => continue,
                Truth::Fails => "ConditionFailed",
                Truth::TooOld => "TooOld",
            };
            let failed = Refusal {
                index: Some(index),
                ..refusal(code)
            };
            return Some(match (code, cond) {
                ("TooOld", _) => Refusal {
                    remembers: Some(self.floor),
                    ..failed
                },
                (_, Cond::PrefixSince(_, since)) if *since > self.revision => failed,
                (_, Cond::PrefixSince(prefix, _)) => Refusal {
                    changed: self.known_change(world, |key| key.starts_with(prefix)),
                    ..failed
                },
                (_, cond) => match cond.key() {
                    Some(key) => self.at_key(failed, world, request, key),
                    None => failed,
                },
            });
        }
        request.changes.iter().find_map(|change| match change {
            Change::Label(key, _) if !world.rows.contains_key(key) => {
                Some(self.at_key(refusal("ConditionFailed"), world, request, key))
            }
            _ => None,
        })
    }

    fn truth(&self, world: &World, cond: &Cond) -> Truth {
        let row = cond.key().and_then(|key| world.rows.get(key));
        let generation = row.map_or(0, |row| row.generation);
        let metageneration = row.map_or(0, |row| row.metageneration);
        let holds = match cond {
            Cond::GenerationIs(_, number) => generation == *number,
            Cond::GenerationIsNot(_, number) => generation != *number,
            Cond::MetagenerationIs(_, number) => metageneration == *number,
            Cond::MetagenerationIsNot(_, number) => metageneration != *number,
            Cond::WrittenUnder(_, term) => row.and_then(|row| row.under) == Some(*term),
            Cond::DigestOf(_, value) => row.is_some_and(|row| row.value == *value),
            Cond::KeySince(key, since) => {
                return self.quiet(world, *since, row.is_some(), |name| name == key);
            }
            Cond::PrefixSince(prefix, since) => {
                return self.quiet(world, *since, false, |name| name.starts_with(prefix));
            }
        };
        if holds { Truth::Holds } else { Truth::Fails }
    }

    fn quiet(
        &self,
        world: &World,
        since: u64,
        certain: bool,
        of: impl Fn(&Bytes) -> bool,
    ) -> Truth {
        let known = self.known_change(world, of);
        if since > self.revision || known.is_some_and(|at| at > since) {
            Truth::Fails
        } else if since < self.floor && !certain {
            Truth::TooOld
        } else {
            Truth::Holds
        }
    }

    /// The last change of the keys that is still known: those of keys that exist, and deletions
    /// above the floor.
    fn known_change(&self, world: &World, of: impl Fn(&Bytes) -> bool) -> Option<u64> {
        let known = world
            .touched
            .iter()
            .filter(|(key, at)| of(key) && (world.rows.contains_key(*key) || **at > self.floor));
        known.map(|(_, at)| *at).max()
    }

    /// A refusal that shows a key. When a key that doesn't exist was deleted is shown only to who
    /// asked about its changes.
    fn at_key(
        &self,
        mut refusal: Refusal,
        world: &World,
        request: &Request,
        key: &Bytes,
    ) -> Refusal {
        let asked = |c: &Cond| matches!(c, Cond::KeySince(on, _) if on == key);
        let row = world.rows.get(key);
        refusal.key = Some(key.clone());
        refusal.generation = row.map(|row| row.generation);
        refusal.metageneration = row.map(|row| row.metageneration);
        refusal.changed = if row.is_some() || request.conds.iter().any(asked) {
            self.known_change(world, |name| name == key)
        } else {
            None
        };
        refusal
    }
}

impl World {
    fn at_guard(&self, code: &'static str, guard: &Bytes, auth: Option<&Auth>) -> Refusal {
        Refusal {
            guard: Some(guard.clone()),
            fence: self.fences.get(guard).cloned(),
            presented: auth.cloned(),
            ..refusal(code)
        }
    }

    fn strange_guard(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        let stranger = |change: &Change| {
            let named = change.named_guard();
            named.is_some_and(|guard| !is_guard(&self.policy, guard))
        };
        if request.changes.iter().any(stranger) {
            return Some(malformed("NoSuchGuard"));
        }
        let Auths::PerGuard(list) = &request.auth else {
            return None;
        };
        let stray = list.iter().any(|(guard, _)| !touched.contains(guard));
        stray.then(|| malformed("UntouchedGuard"))
    }

    fn other_epoch(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        let auths = touched.iter().filter_map(|guard| presented(request, guard));
        let mut strangers = auths.filter(|auth| (auth.epoch, auth.mark) != self.epoch);
        strangers.next().map(|auth| Refusal {
            presented: Some(auth.clone()),
            ..refusal("UnknownEpoch")
        })
    }

    fn fenced_out(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        let step = self.policy.max_sequence_step().map(|step| step.get());
        for guard in touched {
            let Some(auth) = presented(request, guard) else {
                continue;
            };
            let code = match self.fences.get(guard) {
                Some(fence) if auth.sequence < fence.sequence => "StaleTerm",
                Some(fence) if auth.sequence == fence.sequence && auth.holder != fence.holder => {
                    "HolderConflict"
                }
                Some(fence)
                    if step.is_some_and(|n| {
                        u128::from(auth.sequence) > u128::from(fence.sequence) + u128::from(n)
                    }) =>
                {
                    "SequenceJump"
                }
                _ if !self.may_use(&auth.holder, request.caller.as_deref()) => "WrongHolder",
                _ => continue,
            };
            return Some(self.at_guard(code, guard, Some(auth)));
        }
        None
    }

    fn may_use(&self, holder: &[u8], caller: Option<&[u8]>) -> bool {
        match (self.policy.holder_binding(), caller) {
            (HolderBinding::None, _) => true,
            (_, None) => false,
            (HolderBinding::Exact, Some(caller)) => holder == caller,
            (HolderBinding::Prefix, Some(caller)) => {
                holder == caller || holder.starts_with(&[caller, b"/"].concat())
            }
        }
    }

    fn change(&mut self, change: &Change, revision: u64, request: &Request) {
        let Some(key) = change.key() else { return };
        match change {
            Change::Put(_, value, text) => {
                let auth = presented(request, &guard_of(&self.policy, key));
                let row = Row {
                    generation: revision,
                    metageneration: 1,
                    changed: revision,
                    under: auth.map(|auth| (auth.epoch, auth.mark, auth.sequence)),
                    value: value.clone(),
                    text: text.clone(),
                };
                self.rows.insert(key.clone(), row);
            }
            Change::Label(_, text) => {
                if let Some(row) = self.rows.get_mut(key) {
                    row.metageneration += 1;
                    row.changed = revision;
                    row.text.clone_from(text);
                }
            }
            _ => {
                if self.rows.remove(key).is_none() {
                    return;
                }
            }
        }
        self.touched.insert(key.clone(), revision);
    }
}
