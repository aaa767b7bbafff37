//! `highwater demo`: a paused worker wakes up and writes; the store refuses it.
//!
//! Every verdict comes from the commit path of a real store in a directory of its own. What must
//! come out is data ([`timeline::TIMELINE`]); the run fails if anything else does.

mod check;
mod timeline;
mod world;

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use self::check::{Difference, Seen, differences};
use self::timeline::{Step, TIMELINE};
use self::world::World;
use crate::cli::Format;
use crate::cli::failure::Failure;
use crate::cli::output::Output;

/// The demonstration.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// How many times faster than real time; 1 is real time (default: without waiting)
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
}

/// A speed that isn't above zero, or isn't a number.
#[derive(Debug)]
struct SpeedError;

impl std::fmt::Display for SpeedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a speed is a number from 0.01 to 1000000")
    }
}

impl std::error::Error for SpeedError {}

fn speed(text: &str) -> Result<f64, SpeedError> {
    let factor: f64 = text.parse().map_err(|_| SpeedError)?;
    if (0.01..=1_000_000.0).contains(&factor) {
        Ok(factor)
    } else {
        Err(SpeedError)
    }
}

const PREFACE: &str = "\
Two workers, A and B, and one job, J. A coordinator outside grants leases; the demonstration plays
it. (The store can grant leases itself, too.) It can say who should write; it can't stop a process
that is paused. Every verdict below is the store's, from its real commit path.
";

/// Runs the demonstration.
pub(crate) fn run(args: &DemoArgs, out: &mut Output) -> Result<(), Failure> {
    if out.format() == Format::Table {
        out.raw(PREFACE.as_bytes())?;
    }
    let wrong = play(TIMELINE, args.speed, out)?;
    out.tell(
        || json!({ "summary": { "steps": TIMELINE.len(), "wrong": wrong } }),
        || match wrong {
            0 => format!("\nAll {} steps came out as they must.", TIMELINE.len()),
            _ => format!("\n{wrong} of {} steps came out WRONG.", TIMELINE.len()),
        },
    )?;
    if wrong == 0 {
        Ok(())
    } else {
        Err(Failure::Demo)
    }
}

/// Plays a timeline on a new store; returns how many steps came out otherwise than they must.
fn play(timeline: &[Step], speed: Option<f64>, out: &mut Output) -> Result<usize, Failure> {
    let mut world = World::open()?;
    let begin = Instant::now();
    let mut wrong = 0;
    for step in timeline {
        if let Some(factor) = speed {
            let offset = Duration::from_secs(step.at).div_f64(factor);
            wait_until(begin + offset);
        }
        let seen = world.perform(&step.act)?;
        let found = differences(&step.expected, &seen);
        wrong += usize::from(!found.is_empty());
        out.tell(|| object(step, &seen, &found), || text(step, &seen, &found))?;
    }
    world.close()?;
    Ok(wrong)
}

/// Waits for a moment of the timeline.
fn wait_until(moment: Instant) {
    while let Some(left) = moment.checked_duration_since(Instant::now()) {
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

fn object(step: &Step, seen: &Seen, found: &[Difference]) -> Value {
    let wrong = found.iter().map(|difference| {
        json!({
            "what": difference.what,
            "expected": difference.expected,
            "seen": difference.seen,
        })
    });
    json!({
        "at_seconds": step.at,
        "says": step.says,
        "verdict": seen.verdict,
        "message": seen.message,
        "fence": seen.fence.as_ref().map(|(sequence, holder)| {
            json!({ "sequence": sequence.to_string(), "holder": holder })
        }),
        "result": seen.result,
        "generation_kept": seen.generation_kept,
        "as_it_must_be": found.is_empty(),
        "wrong": wrong.collect::<Vec<_>>(),
    })
}

fn text(step: &Step, seen: &Seen, found: &[Difference]) -> String {
    let mut lines = vec![format!("\nt = {:>2} s  {}", step.at, step.says)];
    if let Some(verdict) = &seen.verdict {
        let word = match verdict.as_str() {
            check::ACCEPTED => "accepted",
            check::ONE_OF_TWO => "exactly one",
            _ => "REFUSED",
        };
        lines.push(format!("          {word}: {}", seen.message));
        let result = seen.result.as_deref().unwrap_or("nothing");
        let kept = if seen.generation_kept {
            ", generation untouched"
        } else {
            ""
        };
        lines.push(format!("          stored result: {result}{kept}"));
    }
    for difference in found {
        lines.push(format!(
            "          WRONG: {} is {}, but must be {}",
            difference.what, difference.seen, difference.expected
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
