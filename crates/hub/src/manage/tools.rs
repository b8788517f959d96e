//! Definitions of the six tools.

use std::sync::Arc;

use plexus_mcp_core::{
    BuildError, Context, Fault, Json, LocalService, ResourceContents, ResourceTemplate, Tool,
    ToolAnnotations, ToolResult,
};
use serde::Deserialize;

use super::arguments::{
    ListArguments, PollArguments, ReadArguments, SubscribeArguments, UnsubscribeArguments,
    UnsubscribePollingArguments, Unsubscribed,
};
use super::registry::SubscriptionRegistry;
use super::{NAME, SCHEME, contents, poll, watch};

/// The tools for the subscriptions of `registry`, and each subscription as a resource.
pub(super) fn service(registry: &Arc<SubscriptionRegistry>) -> Result<LocalService, BuildError> {
    let (listing, reading) = (Arc::clone(registry), Arc::clone(registry));
    let (watching, unwatching) = (Arc::clone(registry), Arc::clone(registry));
    let (polling, unpolling) = (Arc::clone(registry), Arc::clone(registry));
    let telling = Arc::clone(registry);
    LocalService::builder(NAME, env!("CARGO_PKG_VERSION"))
        .unchanging()
        .tool(
            reader(
                "ListMcpResources",
                "Lists the resources of all servers, or of one.",
            ),
            move |arguments: ListArguments, _: Context| {
                contents::list(Arc::clone(&listing), arguments)
            },
        )
        .tool(
            reader("ReadMcpResource", "Reads a resource of a server."),
            move |arguments: ReadArguments, context: Context| {
                contents::read(Arc::clone(&reading), arguments, context)
            },
        )
        .tool(
            subscriber(
                "SubscribeMcpResource",
                "Subscribes to a resource of a server. A change is reported in the result of the next tool that you call.",
            ),
            move |arguments: SubscribeArguments, context: Context| {
                watch::subscribe(Arc::clone(&watching), arguments, context)
            },
        )
        .tool(
            subscriber(
                "UnsubscribeMcpResource",
                "Ends subscriptions to resources: the one with this id, or all to this resource or \
                 of this server.",
            ),
            move |arguments: UnsubscribeArguments, context: Context| {
                let ended = unsubscribe(&unwatching, &arguments, &context);
                async move { ended }
            },
        )
        .tool(
            subscriber(
                "SubscribePolling",
                "Polls a tool or a resource of a server, for servers that send no update notifications. A change is reported in the result of the next tool that you call. Needs the permission that the tool needs.",
            ),
            move |arguments: PollArguments, context: Context| {
                poll::subscribe(Arc::clone(&polling), arguments, context)
            },
        )
        .tool(
            subscriber(
                "UnsubscribePolling",
                "Ends polling: the subscription with this id, or all of this tool, resource or \
                 server.",
            ),
            move |arguments: UnsubscribePollingArguments, context: Context| {
                let ended = unsubscribe_polling(&unpolling, &arguments, &context);
                async move { ended }
            },
        )
        .template(
            ResourceTemplate::new(format!("{SCHEME}{{id}}"), "subscription")
                .description("What changed since it was read, by the id of a subscription")
                .mime_type("application/json"),
            move |uri: String, Id { id }: Id, context: Context| {
                let report = report(&telling, uri, &id, &context);
                async move { report }
            },
        )
        .build()
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

fn reader(name: &str, description: &str) -> Tool {
    let annotations = ToolAnnotations {
        read_only_hint: Some(true),
        ..ToolAnnotations::default()
    };
    Tool::new(name)
        .description(description)
        .annotations(annotations)
}

fn subscriber(name: &str, description: &str) -> Tool {
    let annotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        ..ToolAnnotations::default()
    };
    Tool::new(name)
        .description(description)
        .annotations(annotations)
}

fn unsubscribe(
    registry: &SubscriptionRegistry,
    arguments: &UnsubscribeArguments,
    context: &Context,
) -> ToolResult<Json<Unsubscribed>> {
    let UnsubscribeArguments {
        server,
        uri,
        subscription_id,
    } = arguments;
    if server.is_none() && uri.is_none() && subscription_id.is_none() {
        return Err("say which: give a subscriptionId, a server or a uri".into());
    }
    let unsubscribed = registry.end(context.peer(), subscription_id.as_deref(), |target| {
        target.interval_ms.is_none()
            && is_none_or(server.as_deref(), &target.server)
            && is_none_or(uri.as_deref(), target.name())
    });
    Ok(Json(Unsubscribed { unsubscribed }))
}

fn unsubscribe_polling(
    registry: &SubscriptionRegistry,
    arguments: &UnsubscribePollingArguments,
    context: &Context,
) -> ToolResult<Json<Unsubscribed>> {
    let UnsubscribePollingArguments {
        subscription_id,
        server,
        target: name,
    } = arguments;
    if subscription_id.is_none() && server.is_none() && name.is_none() {
        return Err("say which: give a subscriptionId, a server or a target".into());
    }
    let unsubscribed = registry.end(context.peer(), subscription_id.as_deref(), |target| {
        target.interval_ms.is_some()
            && is_none_or(server.as_deref(), &target.server)
            && is_none_or(name.as_deref(), target.name())
    });
    Ok(Json(Unsubscribed { unsubscribed }))
}

fn is_none_or(wanted: Option<&str>, is: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == is)
}

/// The report of a subscription. A subscription that has ended is removed after it was reported.
fn report(
    registry: &SubscriptionRegistry,
    uri: String,
    id: &str,
    context: &Context,
) -> Result<ResourceContents, Fault> {
    let Some(subscription) = registry.find(context.peer(), id) else {
        return Err(Fault::ResourceNotFound(uri));
    };
    let report = subscription.read();
    if subscription.is_over() {
        registry.forget(id);
    }
    match report {
        Ok(report) => Ok(ResourceContents::text(uri, report).mime_type("application/json")),
        Err(error) => Err(Fault::Internal(error.to_string())),
    }
}
