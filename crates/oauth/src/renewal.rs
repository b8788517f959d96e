use bytes::Bytes;
use http::{Request, Response};

use crate::address::UrlPolicy;
use crate::ambient::Ambient;
use crate::error::OAuthError;
use crate::http_exchange::malformed;
use crate::keys::SigningKey;
use crate::session::Session;
use crate::sign_in::Step;
use crate::token::{Form, TokenOutcome, TokenRequest};

/// Renews a session with its refresh token. A sans-I/O state machine like [`SignIn`](crate::SignIn).
#[derive(Debug)]
pub struct Renewal {
    session: Session,
    policy: UrlPolicy,
    call: TokenRequest,
}

impl Renewal {
    /// Renews `session`; `None` if it has no refresh token.
    ///
    /// # Errors
    /// The stored session is malformed, or its token endpoint must not be requested.
    pub fn new(session: &Session, policy: UrlPolicy) -> Result<Option<Self>, OAuthError> {
        let Some(refresh_token) = &session.refresh_token else {
            return Ok(None);
        };
        let mut form = Form::of_grant("refresh_token");
        form.add("refresh_token", refresh_token.expose());
        form.add_some("resource", session.resource.as_deref());
        let call = token_request(session, &session.token_endpoint, policy, form)?;
        Ok(Some(Self {
            session: session.clone(),
            policy,
            call,
        }))
    }

    /// The first step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn start(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        Ok(self.send(self.call.request(ambient)?))
    }

    /// Handles the response to the request of the last step, and returns the next step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn handle_response(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match self.call.handle_response(response, ambient)? {
            TokenOutcome::Retry(request) => Ok(self.send(*request)),
            TokenOutcome::Token(answer) => {
                let mut session = self.session.clone();
                session.apply(*answer, ambient.now())?;
                Ok(Step::Done(Box::new(session)))
            }
        }
    }

    fn send(&self, request: Request<Bytes>) -> Step {
        Step::Send {
            request,
            reach: Some(self.policy.reach()),
        }
    }
}

/// The request that revokes the token of a session (RFC 7009); `None` if the authorization server does
/// not support that.
///
/// # Errors
/// The stored session is malformed, or its revocation endpoint must not be requested.
pub fn revocation(
    session: &Session,
    policy: UrlPolicy,
    ambient: &dyn Ambient,
) -> Result<Option<Request<Bytes>>, OAuthError> {
    let Some(endpoint) = &session.revocation_endpoint else {
        return Ok(None);
    };
    let mut form = Form::default();
    let token = session.refresh_token.as_ref();
    let hint = token.map_or("access_token", |_| "refresh_token");
    form.add("token", token.unwrap_or(&session.access_token).expose());
    form.add("token_type_hint", hint);
    let mut call = token_request(session, endpoint, policy, form)?;
    call.key = None;
    call.request(ambient).map(Some)
}

fn token_request(
    session: &Session,
    endpoint: &str,
    policy: UrlPolicy,
    form: Form,
) -> Result<TokenRequest, OAuthError> {
    let endpoint = policy.check(endpoint);
    let key = session.key.as_ref().map(SigningKey::restore).transpose();
    Ok(TokenRequest {
        endpoint: endpoint.map_err(|error| malformed("stored session", &error))?,
        form,
        client: Some(session.registration.clone()),
        key: key?,
        nonce: None,
    })
}
