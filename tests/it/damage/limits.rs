//! Sizes around each limit: refused with a reason, or accepted and there after a reopening.

use std::path::Path;

use highwater::{Config, Store};
use highwater_core::limits::{
    COMMIT_BYTES_MAX, CONDITIONS_MAX, KEY_BYTES_MAX, MUTATIONS_MAX, VALUE_BYTES_DEFAULT,
    VALUE_BYTES_MAX,
};
use highwater_tests::history::Answer;
use highwater_tests::model::Model;
use highwater_tests::raw::{Auth, Change, Cond, Request};

use super::put;
use crate::support::{answer, compare, open_domain, opinion, tight};

/// One below, at, one above, and twice a limit.
const fn around(limit: usize) -> [usize; 4] {
    [limit - 1, limit, limit + 1, limit * 2]
}

fn make(dir: &Path, config: &Config) -> (Store, Model) {
    let store = Store::open(dir, config.clone()).unwrap();
    let model = open_domain(&store);
    (store, model)
}

/// Each request gets what the model says; what was accepted is there after a reopening. How many
/// were.
fn each(config: &Config, requests: impl IntoIterator<Item = Request>) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut model) = make(dir.path(), config);
    let mut accepted = 0;
    for request in requests {
        let got = answer(store.commit(request.typed().unwrap()));
        assert_eq!(got, opinion(&model, &request));
        if let Answer::Accepted(_) = got {
            model.apply(&request);
            accepted += 1;
            store.close().unwrap();
            store = Store::open(dir.path(), config.clone()).unwrap();
            compare(&store.snapshot().unwrap(), &model);
        }
    }
    accepted
}

#[test]
fn values_around_the_limit() {
    let sized = |size: usize| put("k", &vec![1; size]);
    assert_eq!(
        each(&Config::default(), around(VALUE_BYTES_DEFAULT).map(sized)),
        2
    );
    let mut config = Config::default();
    config.limits.value_bytes = 1_000;
    assert_eq!(each(&config, around(1_000).map(sized)), 2);
}

#[test]
fn the_largest_value_there_can_be() {
    let mut config = Config::default();
    config.limits.value_bytes = VALUE_BYTES_MAX;
    // The key counts towards the size of a commit, too.
    let requests = [COMMIT_BYTES_MAX - 1, COMMIT_BYTES_MAX].map(|size| put("k", &vec![1; size]));
    assert_eq!(each(&config, requests), 1);
    config.limits.value_bytes = VALUE_BYTES_MAX + 1;
    assert_eq!(config.validate().unwrap_err().field, "limits.value_bytes");
}

#[test]
fn keys_around_the_limit() {
    let long = |size: usize| "k".repeat(size);
    let requests = [1, KEY_BYTES_MAX - 1, KEY_BYTES_MAX].map(|size| put(&long(size), b"v"));
    assert_eq!(each(&tight(), requests), 3);
    for size in [0, KEY_BYTES_MAX + 1, KEY_BYTES_MAX * 2] {
        assert!(highwater::Key::new(long(size)).is_err());
    }
}

#[test]
fn numbers_of_mutations_and_conditions_around_the_limit() {
    let config = Config::default();
    let many = |count: usize| {
        let change = |number| Change::Put(format!("{number}").into(), b"v".into(), String::new());
        Request::of("d", (0..count).map(change).collect())
    };
    assert_eq!(each(&config, around(MUTATIONS_MAX).map(many)), 2);
    let asked = |count: usize| {
        let cond = |number| Cond::GenerationIs(format!("c{number}").into(), 0);
        let mut request = put("k", b"v");
        request.conds = (0..count).map(cond).collect();
        request
    };
    assert_eq!(each(&config, around(CONDITIONS_MAX).map(asked)), 2);
}

#[test]
fn commits_around_the_limit() {
    /// Keys of one byte with values that are together so large.
    fn whole(total: usize) -> Request {
        let part = COMMIT_BYTES_MAX / 20;
        let count = total.div_ceil(part);
        let sizes = (0..count).map(|at| part.min(total - at * part));
        let put =
            |(name, size): (u8, usize)| Change::Put(vec![name], vec![1; size - 1], String::new());
        Request::of("d", (b'A'..).zip(sizes).map(put).collect())
    }
    assert_eq!(
        each(&Config::default(), around(COMMIT_BYTES_MAX).map(whole)),
        2
    );
}

/// A segment bounds what one commit may take; where exactly is found by trying, from both sides.
#[test]
fn commits_around_the_size_of_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut model) = make(dir.path(), &tight());
    let (mut largest, mut smallest_refused) = (0, usize::MAX);
    for size in (55_000..66_000).step_by(97).chain([120_000]) {
        let request = put("k", &vec![1; size]);
        match store.commit(request.typed().unwrap()) {
            Ok(receipt) => {
                model.apply(&request);
                assert_eq!(receipt.revision.get(), model.revision);
                largest = largest.max(size);
            }
            Err(error) => {
                assert_eq!(error.rejection().unwrap().reason.code(), "Malformed");
                smallest_refused = smallest_refused.min(size);
            }
        }
    }
    assert!(
        largest < smallest_refused && largest > 55_000,
        "{largest} {smallest_refused}"
    );
    store.close().unwrap();
    store = Store::open(dir.path(), tight()).unwrap();
    compare(&store.snapshot().unwrap(), &model);
}

/// Many guards with long names and holders make the largest effect for its commit's size.
#[test]
fn an_effect_that_is_much_larger_than_its_commit() {
    let config = Config::default();
    let dir = tempfile::tempdir().unwrap();
    let (store, mut model) = make(dir.path(), &config);
    let (number, mark) = model.worlds["d"].epoch;
    let change = |at: usize| {
        let name = format!("{at:0>width$}", width = KEY_BYTES_MAX);
        Change::Put(name.into(), vec![1; 15_000], "t".repeat(256))
    };
    let request = Request::of("d", (0..MUTATIONS_MAX).map(change).collect()).under(Auth {
        epoch: number,
        mark,
        sequence: u64::MAX - 1,
        holder: vec![b'h'; 256],
    });
    assert_eq!(
        answer(store.commit(request.typed().unwrap())),
        opinion(&model, &request)
    );
    model.apply(&request);
    drop(store);
    let store = Store::open(dir.path(), config).unwrap();
    compare(&store.snapshot().unwrap(), &model);
}
