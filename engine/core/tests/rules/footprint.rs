//! What a decision says it needs is what it needs: with it the verdict is the state's, and without
//! any part of it the verdict is a refusal.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{
    Admission, DestinationId, DomainName, EpochMark, Footprint, GuardRule, HolderBinding, Key,
    Limits, Policy, Reason, State, Unavailable, Verdict, View, decide,
};

use crate::generate::Chance;
use crate::histories::{World, random_request};
use crate::oracle::{self, Rules};
use crate::raw::{self, Bytes, Change, Cond, Request, auth, label, put, request};
use crate::twin::{MARK, START, Twin, policy};

fn world() -> Twin {
    let mut twin = Twin::new(Rules {
        guard: GuardRule::Key,
        admission: Admission::Fenced,
        binding: HolderBinding::None,
        step: None,
    });
    let by = |changes| request(changes).under(auth(1, MARK, 1, "a"));
    assert!(twin.step(&by(vec![put("a", "1"), put("b", "2"), put("c", "3")])));
    twin
}

/// A request that looks at every kind of row and is accepted.
fn looking() -> Request {
    request(vec![put("a", "2"), label("b", "t"), raw::advance("g")])
        .under(auth(1, MARK, 2, "b"))
        .when(Cond::GenerationIsNot(b"c".to_vec(), 0))
        .when(Cond::KeySince(b"d".to_vec(), START + 2))
        .when(Cond::DigestOf(b"e".to_vec(), b"x".to_vec()))
        .when(Cond::PrefixSince(b"f".to_vec(), START + 2))
}

fn incomplete(view: &View, request: &Request) -> bool {
    let Verdict::Rejected(rejection) = decide(view, &request.commit()) else {
        return false;
    };
    rejection.reason == Reason::Unavailable(Unavailable::Incomplete)
}

#[test]
fn a_row_that_was_not_fetched_refuses_the_commit() {
    let mut twin = world();
    let by = |changes| request(changes).under(auth(1, MARK, 1, "a"));
    assert!(twin.step(&by(vec![put("e", "x")])));
    let request = looking();
    assert!(matches!(twin.judge(&request), Verdict::Accepted(_)));
    let full = twin.state.view(&request.commit());
    assert_eq!(
        (full.fences.len(), full.keys.len(), full.prefixes.len()),
        (3, 5, 1)
    );
    for at in 0..3 {
        let mut view = full.clone();
        view.fences.remove(at);
        assert!(incomplete(&view, &request), "fence {at}");
    }
    for at in 0..5 {
        let mut view = full.clone();
        view.keys.remove(at);
        assert!(incomplete(&view, &request), "key {at}");
    }
    let mut view = full.clone();
    view.prefixes.clear();
    assert!(incomplete(&view, &request));
    let mut view = full.clone();
    let hashed = view.keys.iter_mut().find(|(key, _)| key.as_bytes() == b"e");
    hashed.unwrap().1.digest = None;
    assert!(incomplete(&view, &request), "a digest");
    assert!(!incomplete(&full, &request));
}

/// A view may hold more than a decision needs: it isn't looked at.
#[test]
fn rows_beside_the_footprint_change_nothing() {
    let twin = world();
    let small = request(vec![put("a", "9")]).under(auth(1, MARK, 2, "b"));
    let large = looking();
    let view = twin.state.view(&large.commit());
    let commit = small.commit();
    assert_eq!(decide(&view, &commit), twin.state.judge(&commit));
}

/// The rows named are exactly those of the request, sorted, joined, with what they are for.
#[test]
fn a_footprint_names_exactly_the_rows_of_its_request() {
    let mut chance = Chance::new(7);
    for seed in 0..300 {
        let world = World::new(seed);
        let request = random_request(&mut chance, &world.twin.model);
        let rules = world.twin.model.rules;
        let footprint = Footprint::of_commit(&request.commit(), &policy(rules));
        let guards = request.changes.iter();
        let guards = guards.filter_map(|change| oracle::touches(rules.guard, change));
        let guards: BTreeSet<Bytes> = guards.collect();
        let named = footprint.guards.iter().map(|g| g.as_bytes().to_vec());
        assert!(named.eq(guards));
        let mut keys: BTreeMap<Bytes, (bool, bool)> = BTreeMap::new();
        for key in request.changes.iter().filter_map(Change::key) {
            keys.entry(key.clone()).or_default();
        }
        let mut prefixes: BTreeMap<Bytes, u64> = BTreeMap::new();
        for cond in &request.conds {
            if let Some(key) = cond.key() {
                let needs = keys.entry(key.clone()).or_default();
                needs.0 |= matches!(cond, Cond::DigestOf(..));
                needs.1 |= matches!(cond, Cond::KeySince(..));
            }
            if let Cond::PrefixSince(prefix, since) = cond {
                let lowest = prefixes.entry(prefix.clone()).or_insert(u64::MAX);
                *lowest = (*lowest).min(*since);
            }
        }
        let needs = footprint.keys.iter();
        let needs = needs.map(|n| (n.key.as_bytes().to_vec(), (n.digest, n.deletion)));
        assert!(needs.eq(keys));
        let needs = footprint.prefixes.iter();
        let needs = needs.map(|n| (n.prefix.as_bytes().to_vec(), n.since.get()));
        assert!(needs.eq(prefixes));
        let changed = request.changes.iter().filter_map(Change::intent);
        let used = request.intent.iter().map(|(id, ..)| id);
        let intents: BTreeSet<Bytes> = changed.chain(used).cloned().collect();
        assert!(
            footprint
                .intents
                .iter()
                .map(|id| id.as_bytes().to_vec())
                .eq(intents)
        );
    }
}

#[test]
fn a_read_needs_the_fences_of_its_guards() {
    let read = crate::reads::read(&["k", "j", "k"], auth(1, MARK, 1, "a"));
    let footprint = Footprint::of_read(&read, &Policy::default());
    let guards: Vec<_> = footprint.guards.iter().map(AsRef::<[u8]>::as_ref).collect();
    assert_eq!(guards, [b"j", b"k"]);
    assert!(footprint.keys.is_empty() && footprint.prefixes.is_empty());
}

/// Two domains of one destination share nothing but the revision.
#[test]
fn domains_do_not_see_each_other() {
    let mut state = State::new(
        DestinationId::new([1; 16]),
        raw::incarnation(1, 1),
        Limits::default(),
    );
    let open = Policy::default().with_admission(Admission::Open);
    let mut ids = Vec::new();
    for domain in ["d", "e"] {
        let name = DomainName::new(domain).unwrap();
        let create = highwater_core::CreateDomain::new(name, open, EpochMark::new(MARK));
        ids.push(state.create_domain(&create).unwrap().id);
    }
    let start = state.destination().revision.get();
    let by = |domain: &str, sequence, holder: &str| {
        let mut request = request(vec![put("k", domain)]).under(auth(1, MARK, sequence, holder));
        request.domain = domain.into();
        request.when(Cond::PrefixSince(Vec::new(), start))
    };
    let mut accepted =
        |request: &Request| matches!(state.commit(&request.commit()), Verdict::Accepted(_));
    assert!(accepted(&by("d", 9, "a")));
    assert!(
        accepted(&by("e", 1, "b")),
        "another fence, no change under the prefix"
    );
    assert!(!accepted(&by("d", 9, "a")), "its own change");
    let key = Key::new("k").unwrap();
    for (id, value) in ids.iter().zip(["d", "e"]) {
        let record = state.record(*id, &key).unwrap();
        assert_eq!(record.value.as_bytes(), value.as_bytes());
        assert_eq!(state.records(*id).count(), 1);
    }
    state.check().unwrap();
}

/// What several parts of a request need of one row is joined, in whatever order they stand.
#[test]
fn needs_of_one_row_are_joined() {
    let key = || b"a".to_vec();
    let mut conds = vec![
        Cond::PrefixSince(b"p".to_vec(), START + 2),
        Cond::PrefixSince(b"p".to_vec(), START + 5),
        Cond::KeySince(key(), START + 2),
        Cond::DigestOf(key(), Vec::new()),
    ];
    for _ in 0..2 {
        let mut request = request(vec![put("a", "1")]);
        request.conds.clone_from(&conds);
        let footprint = Footprint::of_commit(&request.commit(), &Policy::default());
        let [prefix] = footprint.prefixes.as_slice() else {
            panic!("{footprint:?}");
        };
        assert_eq!(prefix.since.get(), START + 2);
        let [row] = footprint.keys.as_slice() else {
            panic!("{footprint:?}");
        };
        assert!(row.digest && row.deletion);
        conds.reverse();
    }
}
