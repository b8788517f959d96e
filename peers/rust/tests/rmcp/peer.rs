//! The client side: answers to questions, and received notifications.

use plexus_testkit::within;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, Implementation,
    ListRootsResult, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProtocolVersion, ResourceUpdatedNotificationParam, Root, RootsCapabilities, SamplingCapability,
    SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;
use tokio::sync::mpsc;

/// A notification that a test checks.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Progress(f64),
    Log(LoggingLevel),
    Updated(String),
    ToolsChanged,
}

/// The received notifications that a test has not checked yet.
pub(crate) struct Inbox(mpsc::Receiver<Heard>);

impl Inbox {
    pub(crate) async fn next(&mut self) -> Heard {
        within("a notification", self.0.recv()).await.unwrap()
    }
}

/// A client that accepts every question, and forwards notifications to an [`Inbox`].
pub(crate) struct Peer {
    config: ClientConfig,
    heard: mpsc::Sender<Heard>,
}

impl Peer {
    pub(crate) fn new(version: ProtocolVersion) -> (Self, Inbox) {
        let (heard, inbox) = mpsc::channel(64);
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.elicitation = Some(ElicitationCapability::default());
        let mut config = ClientConfig::new(capabilities, Implementation::new("rmcp", "3.8.0"));
        config.protocol_version = version;
        (Self { config, heard }, Inbox(inbox))
    }

    async fn hear(&self, heard: Heard) {
        self.heard.send(heard).await.unwrap();
    }
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        assert_eq!(params.max_tokens, 100);
        let words = SamplingMessage::assistant_text("Paris");
        Ok(CreateMessageResult::new(words, "scripted".to_owned()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = ["file:///one", "file:///two"].map(Root::new);
        Ok(ListRootsResult::new(roots.into()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": "kim", "email": "kim@example.com"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.hear(Heard::Progress(params.progress)).await;
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.hear(Heard::Log(params.level)).await;
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.hear(Heard::Updated(params.uri)).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Heard::ToolsChanged).await;
    }
}
