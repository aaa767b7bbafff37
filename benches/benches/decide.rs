//! Nanoseconds for one verdict: the decision alone, without fetching rows or making anything
//! durable.

use std::error::Error;
use std::hint::black_box;

use criterion::Criterion;
use highwater_core::{
    Authority, Commit, Condition, CreateDomain, DestinationId, DomainName, EpochMark, Incarnation,
    IncarnationMark, IncarnationNumber, Key, Limits, Policy, State, Value, check_effect, decide,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    let incarnation = Incarnation::new(IncarnationNumber::FIRST, IncarnationMark::new(1));
    let mut state = State::new(DestinationId::new([1; 16]), incarnation, Limits::default());
    let jobs = DomainName::new("jobs")?;
    state.create_domain(&CreateDomain::new(
        jobs.clone(),
        Policy::default(),
        EpochMark::new(9),
    ))?;
    let key = Key::new("0123456789abcdef")?;
    let value = Value::new([7; 256])?;
    let put = |sequence: u64| -> Result<Commit, Box<dyn Error>> {
        let authority = Authority::parse(&format!("1.0000000000000009/{sequence}@worker"))?;
        Ok(Commit::new(jobs.clone())
            .under(authority)
            .put(key.clone(), value.clone()))
    };
    let _ = state.commit(&put(42)?);
    let domain = state.domain(&jobs).ok_or("the domain was just made")?.id;
    let generation = state.record(domain, &key).map(|record| record.generation);
    let condition = Condition::GenerationIs {
        key: key.clone(),
        generation,
    };
    let accepted = put(42)?.when(condition);
    let stale = put(41)?;
    let open = Commit {
        authority: highwater_core::Authorities::None,
        ..put(42)?
    };
    let cases = [
        ("accepted, fenced CAS", &accepted),
        ("refused, stale term", &stale),
        ("refused, no authority", &open),
    ];
    for (name, commit) in cases {
        let view = state.view(commit);
        criterion.bench_function(&format!("decide: {name}"), |bencher| {
            bencher.iter(|| decide(black_box(&view), black_box(commit)));
        });
    }
    let view = state.view(&accepted);
    let highwater_core::Verdict::Accepted(verdict) = decide(&view, &accepted) else {
        return Err("the fenced CAS was refused".into());
    };
    criterion.bench_function("check the invariants of an effect", |bencher| {
        bencher.iter(|| check_effect(black_box(&view), black_box(&verdict.effect)));
    });
    let mut bytes = Vec::new();
    criterion.bench_function("encode an effect", |bencher| {
        bencher.iter(|| {
            bytes.clear();
            highwater_core::codec::encode_effect(black_box(&verdict.effect), &mut bytes);
        });
    });
    criterion.final_summary();
    Ok(())
}
