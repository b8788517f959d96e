//! Calls through a hub with a policy.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::sync::Arc;

use plexus_mcp_config::{self as config, Action, Mode, Rule};
use plexus_mcp_core::{
    Builder, Call, Context, Event, EventSender, Implementation, LocalService, Peer, Principal, Raw,
    Service, Tool, ToolAnnotations,
};
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use tokio_util::sync::CancellationToken;

const FILE: &str = "/home/ada/plexus.toml";

fn raw(text: impl Into<String>) -> Raw {
    Raw::parse(text.into().into(), &Limits::default()).unwrap()
}

fn rule(tool: &str, action: Action) -> Rule {
    Rule::new(tool, action, FILE)
}

fn policy(mode: Mode, rules: impl IntoIterator<Item = Rule>) -> Policy {
    let mut settings = config::Policy::default();
    settings.mode = mode;
    settings.rules.extend(rules);
    Policy::behind_client(&settings)
}

fn asking() -> Policy {
    policy(Mode::Default, [rule("mcp__shop__*", Action::Ask)])
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    item: String,
}

/// A hub with a server `shop`.
struct Gateway {
    hub: Hub,
    shop: LocalService,
}

/// The outcome of a call.
struct Came {
    /// The tool's result, or the refusal.
    result: String,
    /// The questions to the user.
    asked: Vec<String>,
}

impl Came {
    #[track_caller]
    fn was_made(&self) {
        assert!(self.result.contains("a lamp is sold"), "{}", self.result);
    }

    /// The refusal, which is a tool result that the model reads.
    #[track_caller]
    fn refusal(&self) -> &str {
        assert!(!self.result.contains("is sold"), "{}", self.result);
        assert!(self.result.contains(r#""isError":true"#), "{}", self.result);
        &self.result
    }
}

fn selling(tool: Tool, builder: Builder) -> Builder {
    builder.tool(tool, async |Order { item }: Order, _: Context| {
        format!("a {item} is sold")
    })
}

fn buy() -> Tool {
    Tool::new("buy").description("Buys things")
}

impl Gateway {
    async fn new(tool: Tool, policy: Policy) -> Self {
        let shop = selling(tool, LocalService::builder("shop", "1.0.0"));
        let shop = shop.build().unwrap();
        let hub = Hub::new(Implementation::new("hub", "1.0.0"));
        hub.set_policy(policy);
        let gateway = Self { hub, shop };
        gateway.connect(1).await;
        gateway
    }

    async fn connect(&self, fingerprint: u8) {
        self.hub.set_members(vec![self.spec(fingerprint)]).await;
    }

    fn spec(&self, fingerprint: u8) -> MemberSpec {
        let kind = MemberKind::Local(Arc::new(self.shop.clone()));
        MemberSpec::new("shop", kind, [fingerprint; 32])
    }

    /// Calls `buy` as a client that answers every question like this, or cannot be asked.
    async fn buy(&self, answer: Option<&str>) -> Came {
        self.buy_as(Principal::anonymous(), answer).await
    }

    async fn buy_as(&self, principal: Principal, answer: Option<&str>) -> Came {
        self.buy_while(principal, answer, async || {}).await
    }

    /// The same; every question is answered after `meanwhile`.
    async fn buy_while(
        &self,
        principal: Principal,
        answer: Option<&str>,
        meanwhile: impl AsyncFn(),
    ) -> Came {
        let capabilities = match answer {
            Some(_) => {
                ClientCapabilities::from_raw(&raw(r#"{"elicitation":{"form":{}}}"#)).unwrap()
            }
            None => ClientCapabilities::none(),
        };
        let peer = Peer::new(Revision::NEWEST_STATELESS, capabilities, None, principal);
        let (events, mut queue) = EventSender::channel(Arc::new(peer), false, None);
        let params = raw(r#"{"name":"shop__buy","arguments":{"item":"lamp"}}"#);
        let call = Call::new(
            "tools/call",
            Object::parse(&params).unwrap(),
            events,
            CancellationToken::new(),
        );
        let mut asked = Vec::new();
        let answering = async {
            while let Some(event) = queue.recv().await {
                if let Event::Ask(ask) = event {
                    let params = ask.question.params().unwrap();
                    asked.push(params.as_str().to_owned());
                    meanwhile().await;
                    ask.answer(Ok(raw(answer.unwrap())));
                }
            }
        };
        let (result, ()) = tokio::join!(self.hub.call(call), answering);
        let result = result.unwrap().as_str().to_owned();
        Came { result, asked }
    }
}

const ONCE: Option<&str> = Some(r#"{"action":"accept","content":{"answer":"once"}}"#);
const ALWAYS: Option<&str> = Some(r#"{"action":"accept","content":{"answer":"always"}}"#);
const NO: Option<&str> = Some(r#"{"action":"accept","content":{"answer":"no"}}"#);
const DECLINED: Option<&str> = Some(r#"{"action":"decline"}"#);
const CLOSED: Option<&str> = Some(r#"{"action":"cancel"}"#);
const CANNOT_BE_ASKED: Option<&str> = None;

/// The client asks its user, so calls that no rule matches are not asked about again.
#[tokio::test]
async fn without_a_rule_calls_are_made() {
    let other = rule("mcp__bank__*", Action::Deny);
    for policy in [policy(Mode::Default, []), policy(Mode::Default, [other])] {
        let tool = buy().annotations(ToolAnnotations::new().destructive(true));
        let gateway = Gateway::new(tool, policy).await;
        gateway.buy(CANNOT_BE_ASKED).await.was_made();
    }
}

/// S001-74, C28, C29
#[tokio::test]
async fn an_allowing_rule_is_enough() {
    let rules = [rule("mcp__*", Action::Allow), rule("*", Action::Ask)];
    let gateway = Gateway::new(buy(), policy(Mode::DontAsk, rules)).await;
    gateway.buy(CANNOT_BE_ASKED).await.was_made();
}

/// C29: a denied call is refused without asking.
#[tokio::test]
async fn a_denied_call_says_which_rule_and_what_to_do() {
    let rules = [rule("*", Action::Ask), rule("shop.*", Action::Deny)];
    let gateway = Gateway::new(buy(), policy(Mode::DangerouslySkipPermissions, rules)).await;
    let came = gateway.buy(ONCE).await;
    let refusal = came.refusal().replace('\\', "");
    for part in [
        "shop__buy was not called",
        r#"{ tool = "shop.*", action = "deny" } in /home/ada/plexus.toml"#,
        "to allow it, change or remove that rule",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert!(came.asked.is_empty());
}

/// C26
#[tokio::test]
async fn a_mode_that_denies_says_how_to_allow() {
    let gateway = Gateway::new(buy(), policy(Mode::DontAsk, [])).await;
    let refusal = gateway.buy(ONCE).await.refusal().replace('\\', "");
    let hint = r#"add { tool = "shop__buy", action = "allow" } to the rules under [policy]"#;
    assert!(
        refusal.contains("dont-ask") && refusal.contains(hint),
        "{refusal}"
    );
}

/// A user is asked once per call, also if the server is replaced before the answer arrives. The
/// answer holds for the server that the user was asked about.
#[tokio::test]
async fn a_call_asks_once_also_if_its_server_is_replaced() {
    let gateway = Gateway::new(buy(), asking()).await;
    let same_server = async || {
        let mut spec = gateway.spec(1);
        spec.auto_restart = false;
        gateway.hub.set_members(vec![spec]).await;
    };
    let anybody = Principal::anonymous;
    let came = gateway.buy_while(anybody(), ONCE, same_server).await;
    came.was_made();
    assert_eq!(came.asked.len(), 1, "{:?}", came.asked);

    let other_server = async || gateway.connect(2).await;
    let came = gateway.buy_while(anybody(), ONCE, other_server).await;
    let refusal = came.refusal();
    assert!(refusal.contains("must be asked again"), "{refusal}");
    assert_eq!(came.asked.len(), 1, "{:?}", came.asked);
}

/// S001-73
#[tokio::test]
async fn once_means_once() {
    let gateway = Gateway::new(buy(), asking()).await;
    for _ in 0..2 {
        let came = gateway.buy(ONCE).await;
        came.was_made();
        let [question] = &came.asked[..] else {
            panic!("{:?}", came.asked);
        };
        for part in ["shop__buy", "lamp", "mcp__shop__*", FILE, "once", "always"] {
            assert!(question.contains(part), "{part}: {question}");
        }
    }
}

/// S001-D11: "always" allows a tool until its definition changes.
#[tokio::test]
async fn always_lasts_until_the_tool_changes() {
    let gateway = Gateway::new(buy(), asking()).await;
    let asked = async |answer| {
        let came = gateway.buy(answer).await;
        came.was_made();
        came.asked.len()
    };
    assert_eq!(asked(ALWAYS).await, 1);
    assert_eq!(asked(CANNOT_BE_ASKED).await, 0);

    let mut catalogue = gateway.hub.catalogue();
    catalogue.mark_unchanged();
    let changed = buy().description("Buys things, and sends your files along");
    let edited = gateway
        .shop
        .edit(|builder| selling(changed, builder.remove_tool("buy")));
    edited.unwrap();
    catalogue.changed().await.unwrap();
    gateway.buy(CANNOT_BE_ASKED).await.refusal();
    assert_eq!(asked(ALWAYS).await, 1);
    assert_eq!(asked(ONCE).await, 0);

    gateway.connect(2).await;
    assert_eq!(asked(ONCE).await, 1, "the same tool of another program");
}

/// A stored consent holds for the next process as well, until its file is removed.
#[tokio::test]
async fn always_outlives_the_process_where_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let consents = directory.path().join("consents");
    let start = async || {
        let gateway = Gateway::new(buy(), asking()).await;
        gateway.hub.keep_consents_in(&consents);
        gateway
    };
    assert_eq!(start().await.buy(ALWAYS).await.asked.len(), 1);
    let second = start().await;
    second.buy(CANNOT_BE_ASKED).await.was_made();
    second.buy_as(Principal::new("eve"), NO).await.refusal();

    let files: Vec<_> = std::fs::read_dir(&consents).unwrap().collect();
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let file = file.as_ref().unwrap().path();
    let about = std::fs::read_to_string(&file).unwrap();
    assert!(
        about.contains("shop__buy") && about.contains(FILE),
        "{about}"
    );
    std::fs::remove_file(file).unwrap();
    second.buy(CANNOT_BE_ASKED).await.refusal();
}

#[tokio::test]
async fn always_is_said_for_oneself_and_for_the_rule_that_asked() {
    let gateway = Gateway::new(buy(), asking()).await;
    let ada = || Principal::new("ada");
    assert_eq!(gateway.buy_as(ada(), ALWAYS).await.asked.len(), 1);
    assert_eq!(gateway.buy_as(ada(), ONCE).await.asked.len(), 0);
    let eve = gateway.buy_as(Principal::new("eve"), NO).await;
    assert_eq!(eve.asked.len(), 1);
    eve.refusal();

    let mut lamps = rule("*", Action::Ask);
    lamps.pattern = Some("lamp".to_owned());
    gateway.hub.set_policy(policy(Mode::Default, [lamps]));
    assert_eq!(gateway.buy_as(ada(), ONCE).await.asked.len(), 1);

    let denial = rule("*", Action::Deny);
    gateway.hub.set_policy(policy(Mode::Default, [denial]));
    gateway.buy_as(ada(), ONCE).await.refusal();
}

#[tokio::test]
async fn no_is_no_and_is_asked_again() {
    let gateway = Gateway::new(buy(), asking()).await;
    for answer in [NO, DECLINED, NO] {
        let came = gateway.buy(answer).await;
        assert!(came.refusal().contains("declined"), "{}", came.result);
        assert_eq!(came.asked.len(), 1);
    }
    gateway.buy(ONCE).await.was_made();
}

/// C26: an answer that cannot be parsed is not consent.
#[tokio::test]
async fn without_an_answer_nothing_is_called() {
    let gateway = Gateway::new(buy(), asking()).await;
    for answer in [
        CLOSED,
        Some(r#"{"action":"accept"}"#),
        Some(r#"{"action":"accept","content":{"answer":"sure"}}"#),
        Some(r#"{"action":"accept","content":{"answer":true}}"#),
        Some(r#"{"action":"maybe"}"#),
        Some("7"),
    ] {
        let came = gateway.buy(answer).await;
        assert!(
            came.refusal().contains("to allow it without being asked"),
            "{}",
            came.result
        );
    }
    assert_eq!(
        gateway.buy(ONCE).await.asked.len(),
        1,
        "nothing was remembered"
    );
}

/// C26: a client that cannot be asked is refused.
#[tokio::test]
async fn a_client_that_cannot_be_asked_is_refused_with_a_hint() {
    let gateway = Gateway::new(buy(), asking()).await;
    let refusal = gateway
        .buy(CANNOT_BE_ASKED)
        .await
        .refusal()
        .replace('\\', "");
    for part in [
        r#"{ tool = "mcp__shop__*", action = "ask" } in /home/ada/plexus.toml"#,
        "it did not declare elicitation",
        r#"put { tool = "shop__buy", action = "allow" } before that rule"#,
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

/// C26: warnings of any server are shown in the question, reassurances only of trusted servers.
#[tokio::test]
async fn the_question_says_what_is_believed_of_the_tool() {
    let destructive = ToolAnnotations::new().destructive(true);
    let read_only = ToolAnnotations::new().read_only(true);
    let (warning, reassurance) = ("may destroy something", "changes nothing");
    for (annotations, trusted, said) in [
        (destructive, false, Some(warning)),
        (read_only.clone(), false, None),
        (read_only, true, Some(reassurance)),
    ] {
        let trusted = trusted.then(|| "shop".to_owned());
        let policy = asking().trusting(trusted);
        let gateway = Gateway::new(buy().annotations(annotations), policy).await;
        let came = gateway.buy(ONCE).await;
        let question = came.asked.concat();
        for text in [warning, reassurance] {
            assert_eq!(question.contains(text), said == Some(text), "{question}");
        }
    }
}
