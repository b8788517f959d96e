//! What is built in, as far as it is chosen.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_activations::{Aliased, Builtin, Choice, Data, Extras};
use plexus_hub::config::{BuiltinWords, ConfigProblem};
use plexus_hub::{MemberKind, MemberSpec};
use plexus_service::BuildError;
use tokio::sync::watch;

use crate::VERSION;
use crate::cli::Profile;
use crate::session::BUILTIN;

/// The built-in services. They are made anew when others are chosen.
pub(super) struct Builtins {
    profile: Profile,
    data: Data,
    extras: RwLock<Extras>,
    service: watch::Sender<Arc<Aliased>>,
}

impl Builtins {
    /// Those of `extras`, on this data.
    pub(super) fn new(profile: Profile, data: Data, extras: Extras) -> Result<Self, BuildError> {
        let service = plexus_activations::profile(profile.into(), VERSION, &data, &extras)?;
        Ok(Self {
            profile,
            data,
            extras: RwLock::new(extras),
            service: watch::Sender::new(Arc::new(service)),
        })
    }

    /// What they remember.
    pub(super) fn data(&self) -> &Data {
        &self.data
    }

    /// The services as they are offered now.
    pub(super) fn service(&self) -> Arc<Aliased> {
        Arc::clone(&self.service.borrow())
    }

    /// Offers what is chosen, from now on. A founding system always shows all that it has.
    pub(super) fn choose(&self, choice: Choice) -> Result<(), BuildError> {
        if self.profile != Profile::Plexus {
            return Ok(());
        }
        let mut extras = self.extras.write().unwrap_or_else(PoisonError::into_inner);
        if extras.choice.as_ref() == Some(&choice) {
            return Ok(());
        }
        extras.choice = Some(choice);
        let (profile, data) = (self.profile.into(), &self.data);
        let service = plexus_activations::profile(profile, VERSION, data, &extras)?;
        self.service.send_replace(Arc::new(service));
        Ok(())
    }

    /// The services as a member of the hub, under the names that their tools always had.
    pub(super) fn member(&self) -> MemberSpec {
        let service = self.service();
        let kind = MemberKind::Local(Arc::clone(&service) as _);
        let mut member = MemberSpec::new(BUILTIN, kind, self.fingerprint());
        member.plain_names = true;
        member.resolve_tool = Some(Arc::new(move |name| service.tool(name).map(str::to_owned)));
        member
    }

    /// The service that a tool of this name would be of, if it is not offered.
    pub(super) fn left_out(&self, tool: &str) -> Option<Builtin> {
        let extras = self.extras.read().unwrap_or_else(PoisonError::into_inner);
        let choice = extras.choice.as_ref()?;
        let (service, _) = tool.split_once(['_', '.'])?;
        let mut all = Builtin::ALL.into_iter();
        all.find(|one| one.as_str() == service && !choice.has(*one))
    }

    /// Tells subscribers what other processes change, for as long as it is polled.
    pub(super) fn follow(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let mut service = self.service.subscribe();
        async move {
            loop {
                let following = service.borrow_and_update().follow();
                tokio::select! {
                    never = following => return never,
                    Ok(()) = service.changed() => {}
                }
            }
        }
    }

    /// Another one for every choice.
    fn fingerprint(&self) -> [u8; 32] {
        let extras = self.extras.read().unwrap_or_else(PoisonError::into_inner);
        let mut fingerprint = [0; 32];
        let chosen = extras.choice.iter().flat_map(Choice::services);
        for service in chosen {
            if let Some(byte) = fingerprint.get_mut(service as usize) {
                *byte = 1;
            }
        }
        fingerprint
    }
}

/// What the settings choose, or what is wrong with it.
pub(super) fn chosen(words: &BuiltinWords) -> Result<Choice, ConfigProblem> {
    let choice = words.words.parse::<Choice>();
    choice.map_err(|error| ConfigProblem::new(&words.file, error.to_string()).key("hub.builtin"))
}
