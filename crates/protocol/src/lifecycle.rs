//! The lifecycle of a legacy connection: created → initializing → operating → shut down
//! (S002-06…12, S003-28).

use crate::code;
use crate::fault::Fault;
use crate::method;

/// The lifecycle state of a legacy connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the states are fixed by the protocol"
)]
pub enum State {
    /// No message was received yet.
    Created,
    /// `initialize` was answered, `notifications/initialized` has not come.
    Initializing,
    /// In normal operation.
    Operating,
    /// Ended.
    ShutDown,
}

impl State {
    /// The state's name, as error data carries it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Initializing => "initializing",
            Self::Operating => "operating",
            Self::ShutDown => "shut_down",
        }
    }

    const fn complaint(self) -> &'static str {
        match self {
            Self::Created => "Server not initialized",
            Self::Initializing => "Server initializing",
            Self::Operating => "Server already initialized",
            Self::ShutDown => "Server shutting down",
        }
    }
}

/// How strictly the order is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain settings")]
pub struct LifecycleRules {
    /// Requests wait for `notifications/initialized`. Right for pipes, where messages have an
    /// order; wrong for HTTP, where two POSTs may overtake one another (C06).
    pub wait_for_initialized: bool,
    /// Requests are served before any `initialize`. Only for the native view, which has no
    /// handshake (C49); a client that begins one must keep to its order.
    pub ungated: bool,
    /// A second `initialize` starts over instead of being refused (C07, only for old validators).
    pub reinitialize: bool,
    /// The error code of a request in the wrong state (C05).
    pub error_code: i64,
}

impl LifecycleRules {
    /// For ordered channels.
    pub const STRICT: Self = Self {
        wait_for_initialized: true,
        ungated: false,
        reinitialize: false,
        error_code: code::INVALID_REQUEST,
    };
    /// For unordered ones.
    pub const UNORDERED: Self = Self {
        wait_for_initialized: false,
        ..Self::STRICT
    };
    /// For ordered channels on which no handshake is needed.
    pub const UNGATED: Self = Self {
        ungated: true,
        ..Self::STRICT
    };
}

/// The state machine of one legacy connection.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    state: State,
    rules: LifecycleRules,
}

impl Lifecycle {
    /// A connection without messages so far.
    pub const fn new(rules: LifecycleRules) -> Self {
        Self {
            state: State::Created,
            rules,
        }
    }

    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// An `initialize` with valid parameters came (S002-07).
    ///
    /// # Errors
    /// The connection was initialized before (S002-11).
    pub fn initialize(&mut self) -> Result<(), Fault> {
        match self.state {
            State::Created => {}
            State::Initializing | State::Operating if self.rules.reinitialize => {}
            State::Initializing | State::Operating | State::ShutDown => return Err(self.refusal()),
        }
        self.state = State::Initializing;
        Ok(())
    }

    /// Handles `notifications/initialized` (S002-08). In any other state it has no effect.
    pub fn initialized(&mut self) {
        if self.state == State::Initializing {
            self.state = State::Operating;
        }
    }

    /// May a request for `method` be served now? `ping` may in every state (S002-09).
    ///
    /// # Errors
    /// The fault to answer with.
    pub fn admit(&self, method: &str) -> Result<(), Fault> {
        let admitted = match self.state {
            _ if method == method::PING => true,
            State::Operating => true,
            State::Initializing => !self.rules.wait_for_initialized,
            State::Created => self.rules.ungated,
            State::ShutDown => false,
        };
        if admitted {
            Ok(())
        } else {
            Err(self.refusal())
        }
    }

    /// The connection ended.
    pub fn shut_down(&mut self) {
        self.state = State::ShutDown;
    }

    fn refusal(&self) -> Fault {
        Fault::WrongState {
            code: self.rules.error_code,
            message: self.state.complaint(),
            state: self.state.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<(), Fault>) -> String {
        result.unwrap_err().to_string()
    }

    /// S003-28, S002-06…11, S002-38, S002-42, S003-13, S003-29, LIFE-01.
    #[test]
    fn strict_order() {
        let mut life = Lifecycle::new(LifecycleRules::STRICT);
        assert_eq!(message(life.admit("tools/list")), "Server not initialized");
        assert_eq!(life.admit("ping"), Ok(()));
        life.initialized();
        assert_eq!(
            life.state(),
            State::Created,
            "initialized before initialize changes nothing"
        );

        assert_eq!(life.initialize(), Ok(()));
        assert_eq!(message(life.admit("tools/list")), "Server initializing");
        assert_eq!(life.admit("ping"), Ok(()));
        assert_eq!(message(life.initialize()), "Server initializing");

        life.initialized();
        assert_eq!(life.admit("tools/list"), Ok(()));
        assert_eq!(message(life.initialize()), "Server already initialized");

        life.shut_down();
        assert_eq!(message(life.admit("tools/call")), "Server shutting down");
        assert_eq!(life.admit("ping"), Ok(()));
    }

    /// C06: over HTTP the `initialized` notification may arrive after the next request.
    #[test]
    fn unordered_channels_do_not_wait_for_initialized() {
        let mut life = Lifecycle::new(LifecycleRules::UNORDERED);
        assert!(life.admit("tools/list").is_err());
        life.initialize().unwrap();
        assert_eq!(life.admit("tools/list"), Ok(()));
        assert!(life.initialize().is_err());
    }

    /// C49: no handshake is needed, but one that has begun must be completed.
    #[test]
    fn ungated_channels_need_no_handshake() {
        let mut life = Lifecycle::new(LifecycleRules::UNGATED);
        assert_eq!(life.admit("health.check"), Ok(()));
        life.initialize().unwrap();
        assert_eq!(message(life.admit("health.check")), "Server initializing");
        life.initialized();
        assert_eq!(life.admit("health.check"), Ok(()));
        life.shut_down();
        assert!(life.admit("health.check").is_err());
    }

    /// C05, C07: what profiles may change.
    #[test]
    fn profiles() {
        let rules = LifecycleRules {
            reinitialize: true,
            error_code: -32002,
            ..LifecycleRules::STRICT
        };
        let mut life = Lifecycle::new(rules);
        assert!(matches!(
            life.admit("tools/list"),
            Err(Fault::WrongState { code: -32002, .. })
        ));
        life.initialize().unwrap();
        life.initialized();
        assert_eq!(life.initialize(), Ok(()));
        assert_eq!(life.state(), State::Initializing);
    }
}
