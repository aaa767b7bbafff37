//! One ordered walk over several ordered sources, of which the first that knows a key wins.

use std::iter::Peekable;

use crate::error::StorageError;

/// A name with what a source knows of it; `None` for a deletion.
type Row<K, V> = Result<(K, Option<V>), StorageError>;

/// One source: ordered by name, each name once.
pub(crate) type Source<'a, K, V> = Box<dyn Iterator<Item = Row<K, V>> + 'a>;

/// The merged walk. Deleted keys are left out. It ends at the first error.
pub(crate) struct Merge<'a, K, V> {
    sources: Vec<Peekable<Source<'a, K, V>>>,
}

impl<'a, K: Ord + Clone, V> Merge<'a, K, V> {
    /// Merges sources, the one with the newest knowledge first.
    pub(crate) fn new(sources: Vec<Source<'a, K, V>>) -> Self {
        Self {
            sources: sources.into_iter().map(Iterator::peekable).collect(),
        }
    }

    /// The lowest key that any source stands at; an error of a source comes before every key.
    fn lowest(&mut self) -> Option<Result<K, StorageError>> {
        let mut lowest: Option<K> = None;
        for source in &mut self.sources {
            match source.peek() {
                Some(Err(error)) => return Some(Err(error.clone())),
                Some(Ok((key, _))) if lowest.as_ref().is_none_or(|least| key < least) => {
                    lowest = Some(key.clone());
                }
                Some(Ok(_)) | None => {}
            }
        }
        lowest.map(Ok)
    }

    /// Moves every source past the key and returns what the first of them knew.
    fn take(&mut self, key: &K) -> Option<V> {
        let mut known = None;
        for source in &mut self.sources {
            let here = source.next_if(|row| row.as_ref().is_ok_and(|(name, _)| name == key));
            if let (Some(Ok((_, record))), None) = (here, &known) {
                known = Some(record);
            }
        }
        known.flatten()
    }
}

impl<K: Ord + Clone, V> Iterator for Merge<'_, K, V> {
    type Item = Result<(K, V), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = match self.lowest()? {
                Ok(key) => key,
                Err(error) => {
                    self.sources.clear();
                    return Some(Err(error));
                }
            };
            if let Some(record) = self.take(&key) {
                return Some(Ok((key, record)));
            }
        }
    }
}
