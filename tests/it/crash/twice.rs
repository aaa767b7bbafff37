//! The power goes again: while the store comes back, and right after it has.

use highwater::Store;
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::trace::{Cut, Event};

use super::work::{Known, Work};
use super::{examine, probe};

/// One of so many recoveries is itself cut.
const ONE_IN: usize = 4;

/// Cuts a recovery at a random moment, and once more when it has shown what it found; that must
/// stay, acknowledged or not. Gives how many images were opened.
pub(super) fn cut_again(
    store: &Store,
    disk: &SimDisk,
    work: &Work,
    known: Known,
    found: u64,
    chance: &mut Chance,
) -> u64 {
    if !chance.one_in(ONE_IN) {
        return 0;
    }
    let trace = disk.recorded();
    probe(store, work, found);
    let shown = trace
        .events()
        .iter()
        .position(|event| *event == Event::Mark(0));
    let shown = shown.unwrap();
    let seed = chance.bits();
    let amid = trace.image(chance.below(shown + 1), chance.pick(&Cut::each(seed)));
    examine(&amid, work, known);
    let known = Known {
        acknowledged: known
            .acknowledged
            .max(if known.acknowledged > 0 { found } else { 0 }),
        asked: found,
    };
    examine(&trace.image(shown, Cut::AllLost), work, known);
    2
}
