//! One frame of the log, appended and synced, by size.

use std::error::Error;
use std::sync::Arc;

use criterion::{Criterion, Throughput};
use highwater_wal::{FrameBuf, Log, LogOptions, OsDisk};

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    let dir = tempfile::tempdir_in(".")?;
    let disk = Arc::new(OsDisk::open(dir.path())?);
    let (mut log, _) = Log::open(disk, LogOptions::new([1; 16]), &mut |_, _| Ok(()))?;
    let mut group = criterion.benchmark_group("log append + sync");
    for records in [1_u64, 8, 64, 256] {
        let payload = vec![7_u8; 390 * usize::try_from(records)?];
        group.throughput(Throughput::Elements(records));
        let mut failure = None;
        group.bench_function(format!("{records} records"), |bencher| {
            let mut frame = FrameBuf::new();
            bencher.iter(|| {
                frame.clear();
                frame.extend_from_slice(&payload);
                match log.append(&mut frame) {
                    Ok(durable) => {
                        if let Err(error) = log.recycle_through(durable.lsn()) {
                            failure = Some(error);
                        }
                    }
                    Err(error) => failure = Some(error),
                }
            });
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
