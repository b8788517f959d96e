//! Differences of other clients that are more than the name of a key.

use std::borrow::Cow;

use plexus_mcp_wire::{Kind, Object, Raw};

use super::rules::{Translation, literal};
use super::variables::with_values;

/// Gemini CLI has one member for each kind of URL.
pub(super) fn gemini(server: &mut Translation) {
    let definition = &mut server.definition;
    if let Some(url) = definition.remove("httpUrl") {
        if definition.set("url", url).is_some() {
            let note = "its second address, for HTTP+SSE, is left out";
            server.notes.push(note.to_owned());
        }
        set_type(definition, "http");
    } else if definition.contains("url") {
        set_type(definition, "sse");
    }
    // `true` is the default if there is such an object.
    if let Some(oauth) = definition.get("oauth").and_then(object)
        && oauth.get("enabled").map(Raw::as_str) == Some("true")
    {
        let mut oauth = oauth;
        oauth.remove("enabled");
        definition.set("oauth", oauth.to_raw());
    }
}

/// Codex has the names of the variables that hold secrets.
pub(super) fn codex(server: &mut Translation) {
    let definition = &mut server.definition;
    let headers = definition.get("http_headers").and_then(object);
    let mut headers = headers.unwrap_or_default();
    if let Some(variables) = definition.get("env_http_headers").and_then(object) {
        for (header, variable) in variables.iter() {
            set_reference(&mut headers, header, "", variable);
        }
        definition.remove("env_http_headers");
    }
    if let Some(variable) = definition.get("bearer_token_env_var")
        && variable.kind() == Kind::String
    {
        set_reference(&mut headers, "Authorization", "Bearer ", variable);
        definition.remove("bearer_token_env_var");
    }
    if !headers.is_empty() {
        definition.set("http_headers", headers.to_raw());
    }
}

/// Older versions of Zed have the program, its arguments and variables in an object.
pub(super) fn zed(server: &mut Translation) {
    let definition = &mut server.definition;
    let is_extension = definition.text("source").as_deref() == Some("extension");
    if is_extension || (definition.contains("settings") && !definition.contains("command")) {
        server.refused = Some("it is an extension of Zed".to_owned());
    }
    let Some(command) = definition.get("command").and_then(object) else {
        return;
    };
    definition.remove("command");
    for (key, value) in command.iter() {
        let key = if key == "path" { "command" } else { key };
        definition.set(key.to_owned(), value.clone());
    }
}

/// opencode has the program and its arguments in one list.
pub(super) fn opencode(server: &mut Translation) {
    let definition = &mut server.definition;
    match definition.text("type").as_deref() {
        Some("local") => set(definition, "type", "stdio"),
        Some("remote") => set(definition, "type", "http"),
        _ => {}
    }
    let words = definition.get("command").and_then(Raw::elements);
    let words: Vec<_> = words.into_iter().flatten().collect();
    if let Some((command, args)) = words.split_first() {
        definition.set("command", command.clone());
        definition.set("args", Raw::array(args));
    }
}

/// goose has parts of its own among the servers, and keeps secrets in a keyring of its own.
pub(super) fn goose(server: &mut Translation) {
    let definition = &mut server.definition;
    let kind = definition.text("type").map(Cow::into_owned);
    match kind.as_deref() {
        Some("streamable_http") => set(definition, "type", "http"),
        Some("builtin" | "platform" | "frontend" | "inline_python") => {
            server.refused = Some("it is a part of goose".to_owned());
        }
        _ => {}
    }
    // No tool is named: all are available.
    if definition.get("available_tools").map(Raw::as_str) == Some("[]") {
        definition.remove("available_tools");
    }
    let stored = definition
        .remove("env_keys")
        .and_then(|keys| keys.decode::<Vec<String>>().ok());
    let stored = stored.unwrap_or_default();
    for name in &stored {
        server.notes.push(format!(
            "set the environment variable {name}: goose has it in its keyring"
        ));
    }
    let mut variables = definition.get("envs").and_then(object).unwrap_or_default();
    if kind.as_deref() == Some("streamable_http") {
        // An address has no environment: the values are for its headers.
        definition.remove("envs");
        if let Some(headers) = definition.get("headers") {
            let headers = with_values(headers, &variables);
            definition.set("headers", headers);
        }
        return;
    }
    for name in stored {
        let reference = literal(&format!("${{{name}}}"));
        variables.set(name, reference);
    }
    if !variables.is_empty() {
        definition.set("envs", variables.to_raw());
    }
}

/// Cline takes an address without a type for one of HTTP+SSE.
pub(super) fn cline(server: &mut Translation) {
    let definition = &mut server.definition;
    let transport = definition.text("transportType");
    let transport = transport.map(Cow::into_owned);
    match transport.as_deref() {
        Some(transport @ ("stdio" | "sse" | "http")) => set_type(definition, transport),
        _ if definition.contains("command") => {}
        _ => set_type(definition, "sse"),
    }
}

/// Copilot CLI names the tools that are available, or `*`.
pub(super) fn copilot(server: &mut Translation) {
    let definition = &mut server.definition;
    if definition.text("type").as_deref() == Some("local") {
        set(definition, "type", "stdio");
    }
    if let Some(tools) = definition.get("tools")
        && let Ok(tools) = tools.decode::<Vec<String>>()
    {
        if tools.is_empty() {
            definition.remove("tools");
            definition.set("deny", literal(&["*"]));
        } else if tools.iter().any(|tool| tool == "*") {
            definition.remove("tools");
        }
    }
    if let Some(id) = definition.remove("oauthClientId") {
        let mut oauth = Object::new();
        oauth.set("clientId", id);
        definition.set("oauth", oauth.to_raw());
    }
}

/// Continue has the headers among the options of requests.
pub(super) fn continue_dev(server: &mut Translation) {
    let definition = &mut server.definition;
    let Some(options) = definition.get("requestOptions").and_then(object) else {
        return;
    };
    definition.remove("requestOptions");
    for (key, value) in options.iter() {
        match key {
            "headers" => {
                definition.set("headers", value.clone());
            }
            _ => server.left_out.push(format!("requestOptions.{key}")),
        }
    }
}

fn object(raw: &Raw) -> Option<Object> {
    Object::parse(raw).ok()
}

fn set(definition: &mut Object, key: &'static str, value: &str) {
    definition.set(key, literal(value));
}

fn set_type(definition: &mut Object, name: &str) {
    if !definition.contains("type") {
        set(definition, "type", name);
    }
}

fn set_reference(headers: &mut Object, header: &str, prefix: &str, variable: &Raw) {
    if let Ok(variable) = variable.decode::<String>() {
        let reference = literal(&format!("{prefix}${{{variable}}}"));
        headers.set(header.to_owned(), reference);
    }
}
