//! The selected built-in services.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_agents::{AgentData, Builtin, BuiltinSelection, Extras};
use plexus_mcp_builtins::AliasedService;
use plexus_mcp_config::{BuiltinWords, ConfigProblem};
use plexus_mcp_core::{BuildError, Layered};
use plexus_mcp_hub::{MemberKind, MemberSpec};
use tokio::sync::watch;

use super::call_log::CallLog;
use crate::VERSION;
use crate::cli::Profile;
use crate::session::BUILTIN;

/// The built-in services. They are created again when the selection changes.
pub(super) struct Builtins {
    profile: Profile,
    data: AgentData,
    extras: RwLock<Extras>,
    service: watch::Sender<Arc<AliasedService>>,
}

impl Builtins {
    /// The services of `extras`, on this data.
    pub(super) fn new(
        profile: Profile,
        data: AgentData,
        extras: Extras,
    ) -> Result<Self, BuildError> {
        let service = plexus_mcp_agents::profile(profile.into(), VERSION, &data, &extras)?;
        Ok(Self {
            profile,
            data,
            extras: RwLock::new(extras),
            service: watch::Sender::new(Arc::new(service)),
        })
    }

    /// Their databases.
    pub(super) fn data(&self) -> &AgentData {
        &self.data
    }

    /// The services that are offered now.
    pub(super) fn service(&self) -> Arc<AliasedService> {
        Arc::clone(&self.service.borrow())
    }

    /// Changes the selection. A profile other than `plexus` always has all of its services.
    pub(super) fn choose(&self, choice: BuiltinSelection) -> Result<(), BuildError> {
        if self.profile != Profile::Plexus {
            return Ok(());
        }
        let mut extras = self.extras.write().unwrap_or_else(PoisonError::into_inner);
        if extras.choice.as_ref() == Some(&choice) {
            return Ok(());
        }
        extras.choice = Some(choice);
        let (profile, data) = (self.profile.into(), &self.data);
        let service = plexus_mcp_agents::profile(profile, VERSION, data, &extras)?;
        self.service.send_replace(Arc::new(service));
        Ok(())
    }

    /// The services as a member of the hub, with plain names.
    pub(super) fn member(&self) -> MemberSpec {
        let service = self.service();
        let logged = Layered::new(Arc::clone(&service) as _, CallLog);
        let kind = MemberKind::Local(Arc::new(logged));
        let mut member = MemberSpec::new(BUILTIN, kind, self.fingerprint());
        member.plain_names = true;
        member.resolve_tool = Some(Arc::new(move |name| service.tool(name).map(str::to_owned)));
        member
    }

    /// The service that has a tool of this name, if it is not offered.
    pub(super) fn left_out(&self, tool: &str) -> Option<Builtin> {
        let extras = self.extras.read().unwrap_or_else(PoisonError::into_inner);
        let choice = extras.choice.as_ref()?;
        let (service, _) = tool.split_once(['_', '.'])?;
        let mut all = Builtin::ALL.into_iter();
        all.find(|one| one.as_str() == service && !choice.has(*one))
    }

    /// Notifies subscribers of changes by other processes, for as long as it is polled.
    pub(super) fn follow(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let mut service = self.service.subscribe();
        async move {
            loop {
                let following = service.borrow_and_update().follow_external_changes();
                tokio::select! {
                    never = following => return never,
                    Ok(()) = service.changed() => {}
                }
            }
        }
    }

    /// Differs for every selection.
    fn fingerprint(&self) -> [u8; 32] {
        let extras = self.extras.read().unwrap_or_else(PoisonError::into_inner);
        let mut fingerprint = [0; 32];
        let chosen = extras.choice.iter().flat_map(BuiltinSelection::services);
        for service in chosen {
            if let Some(byte) = fingerprint.get_mut(service as usize) {
                *byte = 1;
            }
        }
        fingerprint
    }
}

/// Parses the selection in the settings.
pub(super) fn chosen(words: &BuiltinWords) -> Result<BuiltinSelection, ConfigProblem> {
    let choice = words.words.parse::<BuiltinSelection>();
    choice.map_err(|error| ConfigProblem::new(&words.file, error.to_string()).key("hub.builtin"))
}
