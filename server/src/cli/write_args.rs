//! The arguments of writes, and the commits that they make.

use std::ffi::OsString;

use clap::Args;
use highwater::{
    Commit, Condition, Digest, DomainName, Generation, Key, Metadata, Metageneration, Mutation,
    Prefix, Revision, Term, Value,
};

use super::args::{OrAbsent, generation, metageneration};
use super::input::{self, Encoding, InputError};
use super::intent_args::StepArgs;

/// One key to write.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    /// The domain
    pub(crate) domain: String,
    /// The key
    pub(crate) key: String,
    /// The value: text as it is, @FILE, or - for standard input
    pub(crate) value: OsString,
    /// The value is given as base64
    #[arg(long)]
    pub(crate) value_base64: bool,
    /// A label of the key (repeat)
    #[arg(long, value_name = "NAME=VALUE", value_parser = input::label)]
    pub(crate) label: Vec<(String, String)>,
    /// The content type
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    #[command(flatten)]
    pub(crate) conditions: ConditionArgs,
    #[command(flatten)]
    pub(crate) step: StepArgs,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// One key to delete.
#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The domain
    pub(crate) domain: String,
    /// The key
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) conditions: ConditionArgs,
    #[command(flatten)]
    pub(crate) step: StepArgs,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A commit in a file.
#[derive(Args, Debug)]
pub(crate) struct CommitArgs {
    /// The file with the commit as JSON, or - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) step: StepArgs,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What must hold of the key.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct ConditionArgs {
    /// The key has this generation (0: it doesn't exist)
    #[arg(long, value_name = "N", value_parser = generation)]
    pub(crate) if_generation: Option<OrAbsent<Generation>>,
    /// The key hasn't this generation (0: it exists)
    #[arg(long, value_name = "N", value_parser = generation)]
    pub(crate) if_not_generation: Option<OrAbsent<Generation>>,
    /// The key's metadata has this version (0: the key doesn't exist)
    #[arg(long, value_name = "N", value_parser = metageneration)]
    pub(crate) if_metageneration: Option<OrAbsent<Metageneration>>,
    /// The key's metadata hasn't this version (0: the key exists)
    #[arg(long, value_name = "N", value_parser = metageneration)]
    pub(crate) if_not_metageneration: Option<OrAbsent<Metageneration>>,
    /// The key wasn't written, relabelled, deleted or created since this revision
    #[arg(long, value_name = "REVISION", value_parser = input::revision)]
    pub(crate) if_unchanged_since: Option<Revision>,
    /// No key with this prefix was written, relabelled, deleted or created since (repeat)
    #[arg(long, value_name = "PREFIX=REVISION", value_parser = input::prefix_revision)]
    pub(crate) prefix_unchanged_since: Vec<(String, Revision)>,
    /// The key's value has this BLAKE3-256 digest
    #[arg(long, value_name = "HEX", value_parser = input::digest)]
    pub(crate) if_digest: Option<Digest>,
    /// The key's value was last written under this term
    #[arg(long, value_name = "EPOCH.MARK/SEQUENCE", value_parser = input::term)]
    pub(crate) if_written_under: Option<Term>,
}

impl ConditionArgs {
    /// The conditions on a key, in the order in which the help names them.
    fn conditions(&self, key: &Key, keys: Encoding) -> Result<Vec<Condition>, InputError> {
        let key = || key.clone();
        let mut list = Vec::new();
        list.extend(
            self.if_generation
                .map(|OrAbsent(generation)| Condition::GenerationIs {
                    key: key(),
                    generation,
                }),
        );
        list.extend(self.if_not_generation.map(|OrAbsent(generation)| {
            Condition::GenerationIsNot {
                key: key(),
                generation,
            }
        }));
        list.extend(self.if_metageneration.map(|OrAbsent(metageneration)| {
            Condition::MetagenerationIs {
                key: key(),
                metageneration,
            }
        }));
        list.extend(self.if_not_metageneration.map(|OrAbsent(metageneration)| {
            Condition::MetagenerationIsNot {
                key: key(),
                metageneration,
            }
        }));
        list.extend(
            self.if_unchanged_since
                .map(|revision| Condition::KeyUnchangedSince {
                    key: key(),
                    revision,
                }),
        );
        for (prefix, revision) in &self.prefix_unchanged_since {
            list.push(Condition::PrefixUnchangedSince {
                prefix: Prefix::new(keys.bytes(prefix)?)?,
                revision: *revision,
            });
        }
        list.extend(
            self.if_digest
                .map(|digest| Condition::ValueDigestIs { key: key(), digest }),
        );
        list.extend(
            self.if_written_under
                .map(|term| Condition::WrittenUnder { key: key(), term }),
        );
        Ok(list)
    }
}

impl PutArgs {
    /// The commit, without authority and destination. Reads the value's file.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let key = Key::new(keys.bytes(&self.key)?)?;
        let mut metadata = Metadata::default();
        if let Some(content_type) = &self.content_type {
            metadata = metadata.with_content_type(content_type)?;
        }
        for (name, value) in &self.label {
            metadata = metadata.with_label(name, value)?;
        }
        let mut commit = Commit::new(DomainName::new(&self.domain)?);
        commit.conditions = self.conditions.conditions(&key, keys)?;
        let value = Value::new(input::value(&self.value, self.value_base64)?)?;
        self.step.apply(commit.with(Mutation::Put {
            key,
            value,
            metadata,
        }))
    }
}

impl DeleteArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let key = Key::new(keys.bytes(&self.key)?)?;
        let mut commit = Commit::new(DomainName::new(&self.domain)?);
        commit.conditions = self.conditions.conditions(&key, keys)?;
        self.step.apply(commit.delete(key))
    }
}
