//! The demonstration passes as it stands, and notices every expectation that is wrong.

use super::*;

#[test]
fn every_verdict_is_as_it_must_be_and_every_wrong_expectation_is_noticed() {
    for (timeline, stale) in [(TIMELINE, 3), (LOST, 1)] {
        assert_eq!(refused_as_stale(timeline), stale);
    }
}

/// Plays a story, and counts what it refuses for its stale term.
fn refused_as_stale(timeline: &[Step]) -> usize {
    let mut world = World::open().unwrap();
    let mut refused = 0;
    for step in timeline {
        let seen = world.perform(&step.act).unwrap();
        assert_eq!(differences(&step.expected, &seen), [], "{}", step.says);
        refused += usize::from(seen.verdict.as_deref() == Some("StaleTerm"));
        let right = step.expected;
        let mut wrong = [right; 4];
        wrong[0].verdict = match right.verdict {
            Some(check::ACCEPTED) => Some("StaleTerm"),
            _ => Some(check::ACCEPTED),
        };
        wrong[1].fence = match right.fence {
            Some((sequence, holder)) => Some((sequence + 1, holder)),
            None => Some((1, "A")),
        };
        wrong[2].result = match right.result {
            Some(_) => None,
            None => Some("something"),
        };
        wrong[3].generation_kept = !right.generation_kept;
        for expected in wrong {
            let found = differences(&expected, &seen);
            assert_eq!(found.len(), 1, "{expected:?} against {seen:?}");
        }
    }
    world.close().unwrap();
    refused
}

#[test]
fn a_run_with_one_wrong_expectation_counts_it() {
    let mut steps = TIMELINE.to_vec();
    let late = steps.iter_mut().find(|step| step.at == 55).unwrap();
    late.expected.verdict = Some(check::ACCEPTED);
    let mut out = Output::to(Format::Json, Box::new(std::io::sink()));
    assert_eq!(play(&steps, None, &mut out).unwrap(), 1);
    assert_eq!(play(TIMELINE, Some(1e6), &mut out).unwrap(), 0);
}

#[test]
fn a_speed_is_a_sensible_number() {
    assert!(speed("1").is_ok());
    assert!(speed("0.01").is_ok());
    for wrong in ["0", "-1", "NaN", "inf", "fast", ""] {
        assert!(speed(wrong).is_err(), "'{wrong}' was read");
    }
}
