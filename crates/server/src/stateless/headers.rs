//! Headers that mirror the body (HDR26); a proxy may route by them, so they must match it.

use http::{HeaderMap, HeaderName};
use plexus_mcp_core::{Catalogue, Fault, Section};
use plexus_mcp_protocol::header::{self, decode_value};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Object;

pub(crate) const VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(header::METHOD);
const NAME: HeaderName = HeaderName::from_static(header::NAME);

/// HDR26-01, HDR26-02, HTTP26-23.
pub(super) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), Fault> {
    check(headers, &VERSION, version)
}

/// HDR26-03, HDR26-07.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), Fault> {
    check(headers, &METHOD, method)
}

/// HDR26-03: the tool, prompt or resource that the request names; HDR26-13: arguments of the tool.
pub(super) fn check_params(
    headers: &HeaderMap,
    method: &str,
    params: &Object,
    catalogue: &Catalogue,
) -> Result<(), Fault> {
    let Some(member) = method::name_member(method) else {
        return Ok(());
    };
    let name = params
        .text(member)
        .ok_or_else(|| Fault::InvalidParams(format!("params.{member} must be a string")))?;
    check(headers, &NAME, &name)?;
    if method == method::TOOLS_CALL {
        check_arguments(headers, &name, params, catalogue)?;
    }
    Ok(())
}

/// HDR26-13: arguments that the tool's schema wants to see in headers.
fn check_arguments(
    headers: &HeaderMap,
    tool: &str,
    params: &Object,
    catalogue: &Catalogue,
) -> Result<(), Fault> {
    let Some(tool) = catalogue.list(Section::Tools).get(tool) else {
        return Ok(());
    };
    if let Some(name) = doubled(headers) {
        return Err(Fault::HeaderMismatch(format!(
            "the {name} header is given twice"
        )));
    }
    tool.headers
        .check(params.get("arguments"), |name| {
            headers.get(name).map(http::HeaderValue::as_bytes)
        })
        .map_err(|mismatch| Fault::HeaderMismatch(mismatch.to_string()))
}

/// A mirrored argument that is given more than once: readers may pick different values.
fn doubled(headers: &HeaderMap) -> Option<&str> {
    let mirrored = headers
        .keys()
        .filter(|name| name.as_str().starts_with("mcp-param-"));
    let mut doubled = mirrored.filter(|name| headers.get_all(*name).iter().nth(1).is_some());
    doubled.next().map(http::HeaderName::as_str)
}

fn check(headers: &HeaderMap, name: &HeaderName, expected: &str) -> Result<(), Fault> {
    let mut values = headers.get_all(name).iter();
    let given = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (Some(_), Some(_)) => {
            return Err(Fault::HeaderMismatch(format!(
                "the {name} header is given twice"
            )));
        }
        (None, _) => {
            return Err(Fault::HeaderMismatch(format!(
                "the {name} header is missing"
            )));
        }
    };
    let given = decode_value(given.as_bytes())
        .map_err(|error| Fault::HeaderMismatch(format!("the {name} header: {error}")))?;
    if given == expected {
        return Ok(());
    }
    Err(Fault::HeaderMismatch(format!(
        "the {name} header is {given:?} but the body has {expected:?}"
    )))
}
