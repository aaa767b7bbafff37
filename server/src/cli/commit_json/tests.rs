//! Commits as JSON from both sides.

use super::*;

const FIRST: u64 = 1 << 48;

fn refused(text: &str) -> InputError {
    match parse(text.as_bytes()) {
        Ok(commit) => panic!("{text} was read as {commit:?}"),
        Err(error) => error,
    }
}

fn with_condition(condition: &str) -> String {
    format!(
        r#"{{"domain":"d","conditions":[{condition}],"mutations":[{{"delete":{{"key":"k"}}}}]}}"#
    )
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one document with every field, and what each must become"
)]
fn every_field_is_read() {
    let digest = "ab".repeat(32);
    let text = format!(
        r#"{{
        "domain": "jobs",
        "destination": {{"id": "{id}", "incarnation": "3.00000000000000ff"}},
        "authorities": [{{"guard": "job%207", "authority": "1.0000000000000009/{max}@b"}}],
        "conditions": [
          {{"generation_is": {{"key": "k", "generation": "0"}}}},
          {{"generation_is_not": {{"key": "k", "generation": "{generation}"}}}},
          {{"metageneration_is": {{"key": "k", "metageneration": "{full}"}}}},
          {{"metageneration_is_not": {{"key": "k", "metageneration": "0"}}}},
          {{"written_under": {{"key": "k", "term": "1.0000000000000009/{odd}"}}}},
          {{"value_digest_is": {{"key": "k", "digest": "{digest}"}}}},
          {{"key_unchanged_since": {{"key": "%00", "revision": "{full}"}}}},
          {{"prefix_unchanged_since": {{"prefix": "", "revision": "{generation}"}}}}
        ],
        "mutations": [
          {{"put": {{"key": "%ff", "value_base64": "AP8=",
                     "content_type": "a/b", "labels": {{"x": "y"}}}}}},
          {{"put": {{"key": "e", "value": ""}}}},
          {{"delete": {{"key": "d"}}}},
          {{"set_metadata": {{"key": "m", "labels": {{}}}}}},
          {{"advance": {{"guard": "job%207"}}}}
        ]}}"#,
        id = "0f".repeat(16),
        max = u64::MAX - 1,
        generation = FIRST + 1,
        full = u64::MAX,
        odd = (1_u64 << 53) + 1,
    );
    let commit = parse(text.as_bytes()).unwrap();
    let destination = commit.destination.unwrap();
    assert_eq!(destination.id.bytes(), [0x0f; 16]);
    assert_eq!(destination.incarnation.to_string(), "3.00000000000000ff");
    let Authorities::PerGuard(list) = &commit.authority else {
        panic!("{:?}", commit.authority);
    };
    assert_eq!(list[0].0.as_bytes(), b"job 7");
    assert_eq!(list[0].1.term().sequence.get(), u64::MAX - 1);
    let conditions = &commit.conditions;
    assert_eq!(conditions.len(), 8);
    assert!(matches!(
        &conditions[0],
        Condition::GenerationIs {
            generation: None,
            ..
        }
    ));
    assert!(matches!(&conditions[1],
        Condition::GenerationIsNot { generation: Some(g), .. } if g.get() == FIRST + 1));
    assert!(matches!(&conditions[2],
        Condition::MetagenerationIs { metageneration: Some(m), .. } if m.get() == u64::MAX));
    assert!(matches!(
        &conditions[3],
        Condition::MetagenerationIsNot {
            metageneration: None,
            ..
        }
    ));
    assert!(matches!(&conditions[4],
        Condition::WrittenUnder { term, .. } if term.sequence.get() == (1 << 53) + 1));
    assert!(matches!(&conditions[5],
        Condition::ValueDigestIs { digest, .. } if digest.bytes() == [0xab; 32]));
    assert!(matches!(&conditions[6],
        Condition::KeyUnchangedSince { key, revision }
            if key.as_bytes() == [0] && revision.get() == u64::MAX));
    assert!(matches!(&conditions[7],
        Condition::PrefixUnchangedSince { prefix, .. } if prefix.as_bytes().is_empty()));
    let mutations = &commit.mutations;
    assert!(
        matches!(&mutations[0], Mutation::Put { key, value, metadata }
        if key.as_bytes() == [0xff] && value.as_bytes() == [0, 0xff]
            && metadata.content_type() == Some("a/b") && metadata.labels()["x"] == "y")
    );
    assert!(matches!(&mutations[1], Mutation::Put { value, .. } if value.as_bytes().is_empty()));
    assert!(matches!(&mutations[2], Mutation::Delete { .. }));
    assert!(matches!(&mutations[3], Mutation::SetMetadata { .. }));
    assert!(matches!(&mutations[4], Mutation::Advance { guard } if guard.as_bytes() == b"job 7"));
}

#[test]
fn numbers_that_may_have_been_rounded_are_refused() {
    let number = with_condition(r#"{"generation_is":{"key":"k","generation":9007199254740993}}"#);
    assert!(matches!(refused(&number), InputError::Json(_)));
    let text = with_condition(r#"{"generation_is":{"key":"k","generation":"0"}}"#);
    assert!(parse(text.as_bytes()).is_ok());
    let wrong = with_condition(r#"{"generation_is":{"key":"k","generation":"7"}}"#);
    assert!(matches!(refused(&wrong), InputError::Number { .. }));
}

#[test]
fn unknown_missing_and_doubled_fields_are_refused() {
    for text in [
        r#"{"domain":"d","mutations":[],"extra":1}"#,
        r#"{"mutations":[]}"#,
        r#"{"domain":"d"}"#,
        r#"{"domain":"d","domain":"e","mutations":[]}"#,
        r#"{"domain":"d","mutations":[{"put":{"key":"k","value":"v","ttl":"1"}}]}"#,
        r#"{"domain":"d","mutations":[{"erase":{"key":"k"}}]}"#,
        r#"{"domain":"d","mutations":[{"put":{"key":"k","value":"v","labels":{"a":"1","a":""}}}]}"#,
        r#"{"domain":"d","mutations":[]} {}"#,
        r#"{"domain":"d","mutations":[],"destination":{"id":"00"}}"#,
        &with_condition(r#"{"generation_is":{"key":"k"}}"#),
        "",
        "[]",
    ] {
        assert!(matches!(refused(text), InputError::Json(_)), "{text}");
    }
}

#[test]
fn a_value_is_given_exactly_once() {
    let put =
        |fields: &str| format!(r#"{{"domain":"d","mutations":[{{"put":{{"key":"k"{fields}}}}}]}}"#);
    assert!(matches!(refused(&put("")), InputError::Missing { .. }));
    assert!(matches!(
        refused(&put(r#","value":"a","value_base64":"YQ==""#)),
        InputError::Both { .. }
    ));
    assert!(parse(put(r#","value_base64":"YQ==""#).as_bytes()).is_ok());
}

#[test]
fn an_authority_is_one_or_by_guard_and_always_whole() {
    let with = |fields: &str| format!(r#"{{"domain":"d",{fields},"mutations":[]}}"#);
    let whole = "1.0000000000000009/42@b";
    let one = parse(with(&format!(r#""authority":"{whole}""#)).as_bytes()).unwrap();
    assert!(matches!(&one.authority, Authorities::One(read) if read.to_string() == whole));
    assert!(matches!(
        refused(&with(r#""authority":"1/42@b""#)),
        InputError::Authority(_)
    ));
    assert!(matches!(
        refused(&with(&format!(r#""authority":"{whole}","authorities":[]"#))),
        InputError::Both { .. }
    ));
    assert!(parse(with(r#""conditions":[]"#).as_bytes()).is_ok());
}

#[test]
fn intents_are_read_and_what_is_wrong_of_them_is_refused() {
    let with = |fields: &str, mutation: &str| {
        format!(r#"{{"domain":"d"{fields},"mutations":[{mutation}]}}"#)
    };
    let delete = r#"{"delete":{"key":"k"}}"#;
    let step = |fields: &str| with(&format!(r#","intent":{{{fields}}}"#), delete);
    let read = parse(step(r#""id":"%ff","step":64,"completes":true"#).as_bytes()).unwrap();
    let used = read.intent.unwrap();
    assert_eq!((used.id.as_bytes(), used.step.get()), (&[0xff][..], 64));
    assert!(used.completes);
    let read = parse(step(r#""id":"i","step":1"#).as_bytes()).unwrap();
    assert!(read.intent.is_some_and(|used| !used.completes));
    for text in [
        step(r#""id":"i""#),
        step(r#""id":"i","step":"1""#),
        step(r#""id":"i","step":1,"more":1"#),
        with("", r#"{"bind_intent":{"intent":"i"}}"#),
        with("", r#"{"close_intent":{"intent":"i","ending":"open"}}"#),
        with(
            "",
            r#"{"suspend_intent":{"intent":"i","owner":"o","review_at_ms":1}}"#,
        ),
    ] {
        assert!(matches!(refused(&text), InputError::Json(_)), "{text}");
    }
    for text in [step(r#""id":"i","step":0"#), step(r#""id":"i","step":65"#)] {
        assert!(
            matches!(refused(&text), InputError::Number { .. }),
            "{text}"
        );
    }
    assert!(matches!(
        refused(&step(r#""id":"","step":1"#)),
        InputError::Name(_)
    ));
    let bind = |inputs: &str| {
        let bind = format!(r#"{{"bind_intent":{{"intent":"i","guard":"","inputs":[{inputs}]}}}}"#);
        with("", &bind)
    };
    for inputs in ["{}", r#"{"key":"k"}"#, r#"{"key":"k","digest":"00"}"#] {
        assert!(
            matches!(refused(&bind(inputs)), InputError::Form { .. }),
            "{inputs}"
        );
    }
    let input = bind(r#"{"key":"k","generation":"0"}"#);
    let read = parse(input.as_bytes()).unwrap();
    assert!(
        matches!(&read.mutations[0], Mutation::BindIntent { work, .. }
        if work.inputs.len() == 1 && work.guard.as_bytes().is_empty())
    );
    let last = u64::MAX;
    let suspend = format!(
        r#"{{"suspend_intent":{{"intent":"i","guard":"","owner":"o","review_at_ms":"{last}"}}}}"#
    );
    let read = parse(with("", &suspend).as_bytes()).unwrap();
    assert!(matches!(
        &read.mutations[0],
        Mutation::SuspendIntent {
            guard: Some(_),
            review_at_ms: u64::MAX,
            ..
        }
    ));
    let close = r#"{"close_intent":{"intent":"i","ending":"superseded"}}"#;
    let read = parse(with("", close).as_bytes()).unwrap();
    assert!(matches!(
        &read.mutations[0],
        Mutation::CloseIntent { guard: None, .. }
    ));
}

#[test]
fn changes_of_leases_are_read_whole_or_refused() {
    let with = |mutation: &str| format!(r#"{{"domain":"d","mutations":[{mutation}]}}"#);
    let lease = format!(r#""guard":"%00","lease":"{}""#, u64::MAX);
    let acquire = r#""guard":"g","holder":"%ff","ttl_ms":"100""#;
    let read = |mutation: &str| {
        let commit = parse(with(mutation).as_bytes());
        commit.map(|mut commit| commit.mutations.remove(0))
    };
    let id = highwater::LeaseId::new(u64::MAX).unwrap();
    let guard = Guard::new([0]).unwrap();
    let renewed = read(&format!(
        r#"{{"renew_lease":{{{lease},"ttl_ms":"604800000"}}}}"#
    ));
    let Mutation::Renew { ttl: Some(ttl), .. } = renewed.unwrap() else {
        panic!("a renewal")
    };
    assert_eq!(ttl.get(), 604_800_000);
    let released = read(&format!(r#"{{"release_lease":{{{lease}}}}}"#)).unwrap();
    let expected = Mutation::Release {
        guard: guard.clone(),
        lease: id,
    };
    assert_eq!(released, expected);
    let expired = read(&format!(r#"{{"expire_lease":{{{lease}}}}}"#)).unwrap();
    assert_eq!(expired, Mutation::Expire { guard, lease: id });
    let revoked = read(r#"{"revoke_lease":{"guard":"g","by":"ops"}}"#).unwrap();
    assert!(matches!(revoked, Mutation::Revoke { lease: None, .. }));
    let acquired = read(&format!(
        r#"{{"acquire_lease":{{{acquire},"seal":false}}}}"#
    ))
    .unwrap();
    let Mutation::Acquire {
        holder,
        seal: false,
        supersede: false,
        ..
    } = acquired
    else {
        panic!("{acquired:?}")
    };
    assert_eq!(holder.as_bytes(), [0xff]);
    for wrong in [
        format!(r#"{{"acquire_lease":{{{acquire}}}}}"#),
        r#"{"acquire_lease":{"guard":"g","holder":"h","ttl_ms":"99","seal":true}}"#.into(),
        r#"{"acquire_lease":{"guard":"g","holder":"h","ttl_ms":100,"seal":true}}"#.into(),
        r#"{"acquire_lease":{"guard":"g","holder":"","ttl_ms":"100","seal":true}}"#.into(),
        format!(r#"{{"renew_lease":{{{lease},"more":1}}}}"#),
        r#"{"release_lease":{"guard":"g"}}"#.into(),
        r#"{"release_lease":{"guard":"g","lease":"0"}}"#.into(),
        r#"{"revoke_lease":{"guard":"g"}}"#.into(),
    ] {
        refused(&with(&wrong));
    }
}
