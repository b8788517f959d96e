use super::*;

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &plexus_mcp_wire::Limits::default()).unwrap()
}

fn read(properties: &str) -> Result<HeaderParams, InvalidHeaderAnnotation> {
    HeaderParams::from_input_schema(&raw(&format!(
        r#"{{"type":"object","properties":{{{properties}}}}}"#
    )))
}

/// Region (string), Count (integer), Dry (boolean), and Deep two objects down.
fn params() -> HeaderParams {
    read(
        r#""region":{"type":"string","x-mcp-header":"Region"},
           "count":{"type":"integer","x-mcp-header":"Count"},
           "dry":{"type":"boolean","x-mcp-header":"Dry"},
           "plain":{"type":"string"},
           "a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"Deep"}}}"#,
    )
    .unwrap()
}

fn check(arguments: &str, headers: &[(&str, &'static str)]) -> Result<(), HeaderMismatch> {
    params().check(Some(&raw(arguments)), |name| {
        let mut headers = headers.iter();
        headers
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_bytes())
    })
}

/// HDR26-09, HDR26-12, HDR26-14: present values are mirrored as text, null and absent ones not.
#[test]
fn a_client_mirrors_what_is_there() {
    let values = |arguments| -> Vec<String> {
        let headers = params().values(Some(&raw(arguments))).into_iter();
        let mut lines: Vec<_> = headers
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(
        values(r#"{"region":"Zürich","count":42.0,"dry":false,"plain":"x","a":{"b":""}}"#),
        [
            "Mcp-Param-Count: 42",
            "Mcp-Param-Deep: ",
            "Mcp-Param-Dry: false",
            "Mcp-Param-Region: =?base64?WsO8cmljaA==?=",
        ]
    );
    assert!(values(r#"{"region":null,"a":{"b":null}}"#).is_empty());
    assert!(values(r#"{"a":7}"#).is_empty());
    assert!(params().values(None).is_empty());
}

/// HDR26-05, HDR26-06, HDR26-08, HDR26-13.
#[test]
fn headers_that_match_are_accepted() {
    let all = [
        ("mcp-param-region", "=?base64?WsO8cmljaA==?="),
        ("MCP-PARAM-COUNT", "42"),
        ("Mcp-Param-Dry", "true"),
        ("Mcp-Param-Deep", "x"),
    ];
    assert_eq!(
        check(
            r#"{"region":"Zürich","count":42,"dry":true,"a":{"b":"x"}}"#,
            &all
        ),
        Ok(())
    );
    assert_eq!(check("{}", &[]), Ok(()));
    assert_eq!(check(r#"{"region":null}"#, &[]), Ok(()));
    assert_eq!(params().check(None, |_| None), Ok(()));
    for (body, header) in [
        ("42", "42.0"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("-1", "-1"),
        ("18446744073709551615", "18446744073709551615"),
    ] {
        let arguments = format!(r#"{{"count":{body}}}"#);
        assert_eq!(
            check(&arguments, &[("Mcp-Param-Count", header)]),
            Ok(()),
            "{body} {header}"
        );
    }
}

/// HDR26-07, HDR26-13.
#[test]
fn headers_that_do_not_match_are_refused() {
    let region = || "Mcp-Param-Region".to_owned();
    assert_eq!(
        check(r#"{"region":"eu"}"#, &[]),
        Err(HeaderMismatch::Missing { header: region() })
    );
    for arguments in ["{}", r#"{"region":null}"#] {
        let unexpected = Err(HeaderMismatch::Unexpected { header: region() });
        assert_eq!(check(arguments, &[("Mcp-Param-Region", "eu")]), unexpected);
    }
    for value in ["us", "EU", ""] {
        let different = Err(HeaderMismatch::Different { header: region() });
        assert_eq!(
            check(r#"{"region":"eu"}"#, &[("Mcp-Param-Region", value)]),
            different
        );
    }
    assert_eq!(
        check(
            r#"{"region":"a"}"#,
            &[("Mcp-Param-Region", "=?base64?YQ?=")]
        ),
        Err(HeaderMismatch::Malformed {
            header: region(),
            source: BadHeaderValue::Base64
        })
    );
    for (argument, header, value) in [
        (r#""count":42"#, "Mcp-Param-Count", "43"),
        (r#""count":42"#, "Mcp-Param-Count", "forty-two"),
        (r#""count":42"#, "Mcp-Param-Count", "42.5"),
        (
            r#""count":9007199254740993"#,
            "Mcp-Param-Count",
            "9007199254740992",
        ),
        (r#""dry":true"#, "Mcp-Param-Dry", "false"),
        (r#""dry":true"#, "Mcp-Param-Dry", "True"),
        (r#""region":["eu"]"#, "Mcp-Param-Region", "eu"),
    ] {
        let outcome = check(&format!("{{{argument}}}"), &[(header, value)]);
        assert_eq!(
            outcome,
            Err(HeaderMismatch::Different {
                header: header.to_owned()
            })
        );
    }
}

/// HDR26-21: a repeated key would let the header name one value and the tool take the other.
#[test]
fn ambiguous_arguments_are_refused() {
    let outcome = check(
        r#"{"region":"eu","region":"us"}"#,
        &[("Mcp-Param-Region", "eu")],
    );
    assert_eq!(outcome, Err(HeaderMismatch::Arguments));
}

/// HDR26-10, HDR26-22.
#[test]
fn names_must_be_unique_tokens() {
    for name in [
        r#""""#,
        r#""a b""#,
        r#""a:b""#,
        r#""ü""#,
        r#""a\r\nb""#,
        "7",
        "null",
        "{}",
    ] {
        let outcome = read(&format!(r#""p":{{"type":"string","x-mcp-header":{name}}}"#));
        let property = r#"property "p""#.to_owned();
        assert_eq!(
            outcome,
            Err(InvalidHeaderAnnotation::Name { property }),
            "{name}"
        );
    }
    let twice = read(
        r#""p":{"type":"string","x-mcp-header":"Region"},"q":{"type":"string","x-mcp-header":"REGION"}"#,
    );
    assert_eq!(
        twice,
        Err(InvalidHeaderAnnotation::Duplicate {
            name: "REGION".to_owned()
        })
    );
}

/// HDR26-10, HDR26-22.
#[test]
fn only_types_with_a_text_form_are_allowed() {
    for type_member in [
        r#""type":"number","#,
        r#""type":"object","#,
        r#""type":"array","#,
        r#""type":"null","#,
        r#""type":["string","null"],"#,
        "",
    ] {
        let outcome = read(&format!(r#""p":{{{type_member}"x-mcp-header":"P"}}"#));
        assert!(
            matches!(outcome, Err(InvalidHeaderAnnotation::Type { .. })),
            "{type_member}"
        );
    }
}

/// HDR26-10, HDR26-22: reachable through `properties` only.
#[test]
fn annotations_elsewhere_are_refused() {
    let annotated = r#"{"type":"string","x-mcp-header":"P"}"#;
    for (keyword, value) in [
        ("items", annotated.to_owned()),
        ("items", format!("[{annotated}]")),
        ("prefixItems", format!("[{annotated}]")),
        ("oneOf", format!("[{annotated}]")),
        ("anyOf", format!("[true,{annotated}]")),
        (
            "allOf",
            format!(r#"[{{"properties":{{"p":{annotated}}}}}]"#),
        ),
        ("not", annotated.to_owned()),
        ("if", annotated.to_owned()),
        ("then", annotated.to_owned()),
        ("else", annotated.to_owned()),
        ("$defs", format!(r#"{{"x":{annotated}}}"#)),
        ("patternProperties", format!(r#"{{"x":{annotated}}}"#)),
        ("additionalProperties", annotated.to_owned()),
    ] {
        let outcome = read(&format!(r#""p":{{"{keyword}":{value}}}"#));
        let place = InvalidHeaderAnnotation::Place {
            keyword: keyword.to_owned(),
        };
        assert_eq!(outcome, Err(place), "{value}");
    }
    let at_the_root = HeaderParams::from_input_schema(&raw(annotated));
    assert!(matches!(
        at_the_root,
        Err(InvalidHeaderAnnotation::Place { .. })
    ));
}

#[test]
fn header_annotations_outside_a_property_schema_are_ignored() {
    for properties in [
        r#""x-mcp-header":{"type":"number"}"#,
        r#""p":{"type":"number","default":{"x-mcp-header":7}}"#,
        r#""p":{"const":{"x-mcp-header":7}}"#,
        r#""p":true"#,
        "",
    ] {
        assert!(read(properties).unwrap().is_empty(), "{properties}");
    }
}
