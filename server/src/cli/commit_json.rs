//! A commit as JSON. Every 64-bit number is a string; a JSON number in its place is refused, as it
//! may have been rounded already. So are unknown fields, and fields that are given twice.

mod intents;
mod leases;

use std::collections::BTreeMap;
use std::fmt;

use highwater::{
    Authorities, Commit, Condition, DomainName, ExpectedDestination, Guard, Key, Metadata,
    Mutation, Prefix, Value,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use self::intents::{EndingForm, InputForm, StepForm};
use self::leases::{AcquireForm, LeaseForm, RenewForm, RevokeForm};
use super::input::{self, Encoding, InputError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    domain: String,
    destination: Option<DestinationForm>,
    authority: Option<String>,
    authorities: Option<Vec<GuardForm>>,
    #[serde(default)]
    conditions: Vec<ConditionForm>,
    mutations: Vec<MutationForm>,
    intent: Option<StepForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DestinationForm {
    id: String,
    incarnation: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardForm {
    guard: String,
    authority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ConditionForm {
    GenerationIs { key: String, generation: String },
    GenerationIsNot { key: String, generation: String },
    MetagenerationIs { key: String, metageneration: String },
    MetagenerationIsNot { key: String, metageneration: String },
    WrittenUnder { key: String, term: String },
    ValueDigestIs { key: String, digest: String },
    KeyUnchangedSince { key: String, revision: String },
    PrefixUnchangedSince { prefix: String, revision: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum MutationForm {
    Put {
        key: String,
        value: Option<String>,
        value_base64: Option<String>,
        content_type: Option<String>,
        #[serde(default)]
        labels: Labels,
    },
    Delete {
        key: String,
    },
    SetMetadata {
        key: String,
        content_type: Option<String>,
        #[serde(default)]
        labels: Labels,
    },
    Advance {
        guard: String,
    },
    BindIntent {
        intent: String,
        guard: String,
        #[serde(default)]
        inputs: Vec<InputForm>,
        configuration: Option<String>,
    },
    CloseIntent {
        intent: String,
        guard: Option<String>,
        ending: EndingForm,
    },
    SuspendIntent {
        intent: String,
        guard: Option<String>,
        owner: String,
        review_at_ms: String,
    },
    AcquireLease(AcquireForm),
    RenewLease(RenewForm),
    ReleaseLease(LeaseForm),
    RevokeLease(RevokeForm),
    ExpireLease(LeaseForm),
}

/// Labels by name; a name that is given twice is refused.
#[derive(Default)]
struct Labels(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if labels.contains_key(&name) {
                        return Err(A::Error::custom(format!("label '{name}' is given twice")));
                    }
                    labels.insert(name, value);
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

fn key(text: &str) -> Result<Key, InputError> {
    Ok(Key::new(Encoding::Escaped.bytes(text)?)?)
}

fn guard(text: &str) -> Result<Guard, InputError> {
    Ok(Guard::new(Encoding::Escaped.bytes(text)?)?)
}

fn metadata(content_type: Option<String>, labels: Labels) -> Result<Metadata, InputError> {
    let mut metadata = Metadata::default();
    if let Some(content_type) = content_type {
        metadata = metadata.with_content_type(&content_type)?;
    }
    for (name, value) in labels.0 {
        metadata = metadata.with_label(&name, &value)?;
    }
    Ok(metadata)
}

fn value(text: Option<String>, base64: Option<String>) -> Result<Value, InputError> {
    match (text, base64) {
        (Some(text), None) => Ok(Value::new(text)?),
        (None, Some(base64)) => Ok(Value::new(input::from_base64(base64.as_bytes())?)?),
        (Some(_), Some(_)) => Err(InputError::Both {
            one: "value",
            other: "value_base64",
        }),
        (None, None) => Err(InputError::Missing { what: "value" }),
    }
}

impl ConditionForm {
    fn condition(self) -> Result<Condition, InputError> {
        Ok(match self {
            Self::GenerationIs {
                key: name,
                generation,
            } => Condition::GenerationIs {
                key: key(&name)?,
                generation: input::generation(&generation)?,
            },
            Self::GenerationIsNot {
                key: name,
                generation,
            } => Condition::GenerationIsNot {
                key: key(&name)?,
                generation: input::generation(&generation)?,
            },
            Self::MetagenerationIs {
                key: name,
                metageneration,
            } => Condition::MetagenerationIs {
                key: key(&name)?,
                metageneration: input::metageneration(&metageneration)?,
            },
            Self::MetagenerationIsNot {
                key: name,
                metageneration,
            } => Condition::MetagenerationIsNot {
                key: key(&name)?,
                metageneration: input::metageneration(&metageneration)?,
            },
            Self::WrittenUnder { key: name, term } => Condition::WrittenUnder {
                key: key(&name)?,
                term: input::term(&term)?,
            },
            Self::ValueDigestIs { key: name, digest } => Condition::ValueDigestIs {
                key: key(&name)?,
                digest: input::digest(&digest)?,
            },
            Self::KeyUnchangedSince {
                key: name,
                revision,
            } => Condition::KeyUnchangedSince {
                key: key(&name)?,
                revision: input::revision(&revision)?,
            },
            Self::PrefixUnchangedSince { prefix, revision } => Condition::PrefixUnchangedSince {
                prefix: Prefix::new(Encoding::Escaped.bytes(&prefix)?)?,
                revision: input::revision(&revision)?,
            },
        })
    }
}

impl MutationForm {
    fn mutation(self) -> Result<Mutation, InputError> {
        Ok(match self {
            Self::Put {
                key: name,
                value: text,
                value_base64,
                content_type,
                labels,
            } => Mutation::Put {
                key: key(&name)?,
                value: value(text, value_base64)?,
                metadata: metadata(content_type, labels)?,
            },
            Self::Delete { key: name } => Mutation::Delete { key: key(&name)? },
            Self::SetMetadata {
                key: name,
                content_type,
                labels,
            } => Mutation::SetMetadata {
                key: key(&name)?,
                metadata: metadata(content_type, labels)?,
            },
            Self::Advance { guard: name } => Mutation::Advance {
                guard: guard(&name)?,
            },
            Self::BindIntent {
                intent,
                guard: under,
                inputs,
                configuration,
            } => intents::bind(&intent, &under, inputs, configuration)?,
            Self::CloseIntent {
                intent,
                guard: named,
                ending,
            } => intents::close(&intent, named, ending)?,
            Self::SuspendIntent {
                intent,
                guard: named,
                owner,
                review_at_ms,
            } => intents::suspend(&intent, named, &owner, &review_at_ms)?,
            Self::AcquireLease(form) => form.mutation()?,
            Self::RenewLease(form) => form.mutation()?,
            Self::ReleaseLease(form) => form.release()?,
            Self::RevokeLease(form) => form.mutation()?,
            Self::ExpireLease(form) => form.expire()?,
        })
    }
}

impl Form {
    fn authorities(&mut self) -> Result<Authorities, InputError> {
        match (self.authority.take(), self.authorities.take()) {
            (None, None) => Ok(Authorities::None),
            (Some(one), None) => Ok(Authorities::One(input::authority(&one)?)),
            (None, Some(list)) => {
                let each = list
                    .iter()
                    .map(|entry| Ok((guard(&entry.guard)?, input::authority(&entry.authority)?)));
                Ok(Authorities::PerGuard(
                    each.collect::<Result<_, InputError>>()?,
                ))
            }
            (Some(_), Some(_)) => Err(InputError::Both {
                one: "authority",
                other: "authorities",
            }),
        }
    }
}

/// Reads a commit.
pub(crate) fn parse(text: &[u8]) -> Result<Commit, InputError> {
    let mut form: Form = serde_json::from_slice(text).map_err(InputError::Json)?;
    let mut commit = Commit::new(DomainName::new(&form.domain)?);
    commit.authority = form.authorities()?;
    if let Some(destination) = form.destination {
        commit.destination = Some(ExpectedDestination {
            id: input::destination_id(&destination.id)?,
            incarnation: input::incarnation(&destination.incarnation)?,
        });
    }
    for condition in form.conditions {
        commit.conditions.push(condition.condition()?);
    }
    for mutation in form.mutations {
        commit.mutations.push(mutation.mutation()?);
    }
    commit.intent = form.intent.map(StepForm::read).transpose()?;
    Ok(commit)
}

#[cfg(test)]
mod tests;
