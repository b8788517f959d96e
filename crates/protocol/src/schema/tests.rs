use super::*;

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &plexus_mcp_wire::Limits::default()).unwrap()
}

fn compile(schema: &str) -> Result<Validator, InvalidSchema> {
    Validator::compile_tool_input(&raw(schema))
}

fn validation_error(schema: &str, instance: &str) -> String {
    compile(schema)
        .unwrap()
        .validate(&raw(instance))
        .unwrap_err()
        .to_string()
}

/// S000-37, C10: the text a model is shown names the argument and says what would be right.
#[test]
fn violations_say_where_and_what() {
    let schema = r#"{"type":"object","properties":{
        "count":{"type":"integer","minimum":1},
        "mode":{"enum":["fast","slow"]},
        "items":{"type":"array","items":{"type":"object","required":["name"]}}},
        "required":["count"],"additionalProperties":false}"#;
    assert_eq!(
        compile(schema).unwrap().validate(&raw(r#"{"count":1}"#)),
        Ok(())
    );
    for (instance, message) in [
        (
            r#"{"count":0}"#,
            "arguments.count: 0 is less than the minimum of 1",
        ),
        (
            r#"{"count":"1"}"#,
            r#"arguments.count: "1" is not of type "integer""#,
        ),
        ("{}", r#"arguments: "count" is a required property"#),
        (
            r#"{"count":1,"items":[{}]}"#,
            r#"arguments.items[0]: "name" is a required property"#,
        ),
        (
            r#"{"count":1,"mode":"warp"}"#,
            r#"arguments.mode: "warp" is not one of "fast" or "slow""#,
        ),
        (
            r#"{"count":1,"x":1}"#,
            "arguments: Additional properties are not allowed ('x' was unexpected)",
        ),
        ("[]", r#"arguments: [] is not of type "object""#),
    ] {
        assert_eq!(validation_error(schema, instance), message);
    }
    let both = validation_error(schema, r#"{"count":0,"mode":"warp"}"#);
    assert!(
        both.contains("arguments.count") && both.contains("; arguments.mode"),
        "{both}"
    );
}

#[test]
fn violations_are_few_and_short() {
    let schema = r#"{"type":"object","additionalProperties":{"type":"integer"}}"#;
    let many: Vec<String> = (0..50).map(|number| format!(r#""k{number}":"""#)).collect();
    let violations = compile(schema)
        .unwrap()
        .validate(&raw(&format!("{{{}}}", many.join(","))));
    assert_eq!(violations.unwrap_err().iter().count(), MAX_VIOLATIONS);

    let long = validation_error(schema, &format!(r#"{{"k":"{}"}}"#, "é".repeat(10_000)));
    assert!(
        long.chars().count() < MAX_MESSAGE_CHARS + 30,
        "{}",
        long.len()
    );
}

/// JS-01.
#[test]
fn the_declared_dialect_counts_and_2020_12_is_the_default() {
    // `prefixItems` is new in 2020-12, an array of `items` was dropped by it.
    let by_2020 = r#"{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#;
    let old = |dialect: &str| {
        format!(
            r#"{{"$schema":"{dialect}","type":"object",
                "properties":{{"a":{{"items":[{{"type":"string"}}],"prefixItems":[{{"type":"null"}}]}}}}}}"#
        )
    };
    let instance = raw(r#"{"a":[1]}"#);
    assert!(compile(by_2020).unwrap().validate(&instance).is_err());
    for dialect in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        let validator = compile(&old(dialect)).unwrap();
        assert!(validator.validate(&instance).is_err(), "{dialect}");
        assert_eq!(
            validator.validate(&raw(r#"{"a":["x"]}"#)),
            Ok(()),
            "{dialect}"
        );
    }
    assert!(compile(&old("https://json-schema.org/draft/2020-12/schema")).is_err());
}

/// JS-01: an unknown dialect is an error that names it.
#[test]
fn unknown_dialects_are_refused() {
    for dialect in [
        "https://example.com/my-dialect",
        "http://json-schema.org/draft-03/schema#",
        "",
    ] {
        let outcome = compile(&format!(r#"{{"$schema":"{dialect}","type":"object"}}"#));
        assert_eq!(
            outcome.unwrap_err(),
            InvalidSchema::UnknownDialect(dialect.to_owned())
        );
    }
    assert!(compile(r#"{"$schema":7,"type":"object"}"#).is_err());
}

/// JS-02, JS-03: nothing is fetched, and the reason names the refused reference.
#[test]
fn references_beyond_the_schema_are_refused() {
    for reference in [
        "http://127.0.0.1:1/schema.json",
        "https://example.com/schema.json#/a",
        "file:///etc/passwd",
        "other.json",
        "/etc/passwd",
        "http://json-schema.org/draft-07/schema#",
        "",
    ] {
        for schema in [
            format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}}}}"#),
            format!(r#"{{"type":"object","anyOf":[{{"$dynamicRef":"{reference}"}}]}}"#),
            format!(r##"{{"type":"object","$ref":"#/x","x":{{"$ref":"{reference}"}}}}"##),
        ] {
            let refused = compile(&schema).unwrap_err();
            assert_eq!(
                refused,
                InvalidSchema::ExternalReference(reference.to_owned()),
                "{schema}"
            );
        }
    }
}

#[test]
fn local_references_work() {
    for schema in [
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#n"}},"$defs":{"x":{"$anchor":"n","type":"integer"}}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a%20n"}},"$defs":{"a n":{"type":"integer"}}}"##,
        r##"{"$id":"https://example.com/t","type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}"##,
    ] {
        let validator = compile(schema).unwrap();
        assert_eq!(validator.validate(&raw(r#"{"a":1}"#)), Ok(()));
        assert!(
            validator.validate(&raw(r#"{"a":"x"}"#)).is_err(),
            "{schema}"
        );
    }
    assert!(matches!(
        compile(r##"{"type":"object","$ref":"#/$defs/gone"}"##),
        Err(InvalidSchema::Rejected(_))
    ));
}

/// A `$ref` inside data, such as a default, is not a reference.
#[test]
fn data_is_not_searched_for_references() {
    let schema = r#"{"type":"object","properties":{"$ref":{"type":"string"}},
        "default":{"$ref":"http://example.com"},"examples":[{"$ref":"http://example.com"}]}"#;
    assert_eq!(
        compile(schema).unwrap().validate(&raw(r#"{"$ref":"x"}"#)),
        Ok(())
    );
}

/// JS-03: the nesting depth is limited, and followed references count.
#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| {
        let (open, close) = (r#"{"type":"object","not":"#, "}");
        format!("{}{{}}{}", open.repeat(depth), close.repeat(depth))
    };
    assert!(compile(&nested(MAX_DEPTH - 1)).is_ok());
    assert_eq!(
        compile(&nested(MAX_DEPTH)).unwrap_err(),
        InvalidSchema::TooDeep
    );

    let chain = |length: usize| {
        let links = (0..length).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1));
        let links: Vec<_> = links.chain([format!(r#""d{length}":{{}}"#)]).collect();
        format!(
            r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{}}}}}"##,
            links.join(",")
        )
    };
    let validator = compile(&chain(60)).unwrap();
    assert_eq!(validator.validate(&raw("{}")), Ok(()));
    assert_eq!(compile(&chain(64)).unwrap_err(), InvalidSchema::TooDeep);
    assert_eq!(compile(&chain(9_000)).unwrap_err(), InvalidSchema::TooDeep);
}

/// JS-03: size, references followed.
#[test]
fn size_is_bounded() {
    let wide = |count: usize| {
        let properties: Vec<_> = (0..count).map(|n| format!(r#""p{n}":{{}}"#)).collect();
        format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            properties.join(",")
        )
    };
    assert!(compile(&wide(5_000)).is_ok());
    assert_eq!(
        compile(&wide(MAX_SUBSCHEMAS)).unwrap_err(),
        InvalidSchema::TooLarge
    );

    let doubling = |levels: usize| {
        let each = |n| {
            format!(
                r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                n + 1
            )
        };
        let defs: Vec<_> = (0..levels)
            .map(each)
            .chain([format!(r#""d{levels}":{{"type":"integer"}}"#)])
            .collect();
        format!(
            r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{}}}}}"##,
            defs.join(",")
        )
    };
    let validator = compile(&doubling(10)).unwrap();
    assert_eq!(validator.validate(&raw(r#"{"a":1}"#)), Ok(()));
    assert!(validator.validate(&raw(r#"{"a":"x"}"#)).is_err());
    assert_eq!(compile(&doubling(28)).unwrap_err(), InvalidSchema::TooLarge);
}

/// JS-03: recursive schemas are fine, and circles end.
#[test]
fn recursion_ends() {
    let tree = r##"{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}},
        "additionalProperties":false}"##;
    let nested = format!("{}{{}}{}", r#"{"children":["#.repeat(50), "]}".repeat(50));
    assert_eq!(compile(tree).unwrap().validate(&raw(&nested)), Ok(()));

    for circle in [
        r##"{"type":"object","$ref":"#"}"##,
        r##"{"type":"object","allOf":[{"$ref":"#"}]}"##,
        r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},
            "$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}"##,
        r##"{"type":"object","$dynamicAnchor":"n","properties":{"x":{"allOf":[{"$dynamicRef":"#n"}]}}}"##,
    ] {
        if let Ok(validator) = compile(circle) {
            let _either = validator.validate(&raw(r#"{"x":{"x":1}}"#));
        }
    }
}

/// JS-03: this schema leads to each part of an instance in two ways, so the number of ways doubles
/// with each level. The instance is validated, but its errors are not listed if there are too many
/// ways.
#[test]
fn branching_recursion_is_not_exponential() {
    let schema = r##"{"type":"object","properties":{
        "x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]},"end":{"type":"integer"}}}"##;
    let nested = |depth: usize, end: &str| {
        let (open, close) = (r#"{"x":"#.repeat(depth), "}".repeat(depth));
        raw(&format!(r#"{open}{{"end":{end}}}{close}"#))
    };
    let validator = compile(schema).unwrap();
    assert_eq!(validator.validate(&nested(60, "1")), Ok(()));
    let deep = validator.validate(&nested(60, "null")).unwrap_err();
    assert_eq!(
        deep.to_string(),
        "arguments: does not match the schema, which is too complex to say where"
    );
    let shallow = validator
        .validate(&nested(2, "null"))
        .unwrap_err()
        .to_string();
    assert!(
        shallow.starts_with(r#"arguments.x.x.end: null is not of type "integer""#),
        "{shallow}"
    );
}

/// JS-03: the errors are not listed either if the schema or the instance has too many parts.
#[test]
fn explaining_is_bounded_by_the_instance_too() {
    let all = r#"{"type":"string"},"#.repeat(1_000);
    let schema = format!(
        r#"{{"type":"object","properties":{{"a":{{"items":{{"allOf":[{}]}}}}}}}}"#,
        all.trim_end_matches(',')
    );
    let instance = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(20_000));
    assert!(validation_error(&schema, &instance).ends_with("too complex to say where"));
    assert!(
        validation_error(&schema, r#"{"a":[1]}"#)
            .starts_with(r#"arguments.a[0]: 1 is not of type "string""#)
    );
}

#[test]
fn patterns_that_backtrack_end() {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=(a+)+$)(a+)+b$"}}}"#;
    let validator = compile(schema).unwrap();
    let evil = format!(r#"{{"a":"{}!"}}"#, "a".repeat(200));
    assert!(validator.validate(&raw(&evil)).is_err());
}

/// TOOL-10, JS-04.
#[test]
fn an_input_schema_is_a_valid_schema_of_objects() {
    for schema in ["null", "7", r#""object""#, "[]"] {
        assert!(compile(schema).is_err(), "{schema}");
        assert_eq!(
            Validator::compile(&raw(schema)).unwrap_err(),
            InvalidSchema::NotASchema
        );
    }
    for schema in [
        "{}",
        "true",
        r#"{"type":"string"}"#,
        r#"{"type":["object","null"]}"#,
        r#"{"properties":{}}"#,
    ] {
        assert_eq!(
            compile(schema).unwrap_err(),
            InvalidSchema::NotOfObjects,
            "{schema}"
        );
    }
    for schema in [
        r#"{"type":"object","properties":7}"#,
        r#"{"type":"object","properties":{"a":{"type":"text"}}}"#,
        r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#,
        r#"{"type":"object","required":"a"}"#,
    ] {
        assert!(
            matches!(compile(schema), Err(InvalidSchema::Rejected(_))),
            "{schema}"
        );
    }
}

/// A schema that is not for the input of a tool may be of any value.
#[test]
fn schemas_are_of_any_value() {
    let validator =
        Validator::compile(&raw(r#"{"type":"array","items":{"type":"integer"}}"#)).unwrap();
    assert_eq!(validator.validate(&raw("[1,2]")), Ok(()));
    let violations = validator.validate(&raw("[1,\"x\"]")).unwrap_err();
    assert_eq!(
        violations.to_string(),
        r#"value[1]: "x" is not of type "integer""#
    );
    assert!(
        Validator::compile(&raw("true"))
            .unwrap()
            .validate(&raw("7"))
            .is_ok()
    );
}
