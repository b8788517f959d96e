use bytes::Bytes;
use http::{Request, Response};

use crate::address::Guard;
use crate::ambient::Ambient;
use crate::answer::malformed;
use crate::error::OAuthError;
use crate::keys::SigningKey;
use crate::session::Session;
use crate::sign_in::Step;
use crate::token::{Answered, Form, TokenCall};

/// Gets a new token for an old one, without anybody's help.
#[derive(Debug)]
pub struct Renewal {
    session: Session,
    guard: Guard,
    call: TokenCall,
}

impl Renewal {
    /// Renews `session`; none if that is not possible.
    ///
    /// # Errors
    /// What is stored makes no sense, or leads where the server may not lead.
    pub fn new(session: &Session, guard: Guard) -> Result<Option<Self>, OAuthError> {
        let Some(refresh_token) = &session.refresh_token else {
            return Ok(None);
        };
        let mut form = Form::of_grant("refresh_token");
        form.add("refresh_token", refresh_token.expose());
        form.add_some("resource", session.resource.as_deref());
        let call = call(session, &session.token_endpoint, guard, form)?;
        Ok(Some(Self {
            session: session.clone(),
            guard,
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

    /// What comes after the answer to the last step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn answered(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match self.call.answered(response, ambient)? {
            Answered::Again(request) => Ok(self.send(*request)),
            Answered::Token(answer) => {
                let mut session = self.session.clone();
                session.take(*answer, ambient.now())?;
                Ok(Step::Done(Box::new(session)))
            }
        }
    }

    fn send(&self, request: Request<Bytes>) -> Step {
        Step::Send {
            request,
            reach: Some(self.guard.reach()),
        }
    }
}

/// The request that gives a session back (RFC 7009), where that is possible.
///
/// # Errors
/// What is stored makes no sense, or leads where the server may not lead.
pub fn revocation(
    session: &Session,
    guard: Guard,
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
    let mut call = call(session, endpoint, guard, form)?;
    call.key = None;
    call.request(ambient).map(Some)
}

fn call(
    session: &Session,
    endpoint: &str,
    guard: Guard,
    form: Form,
) -> Result<TokenCall, OAuthError> {
    let endpoint = guard.check(endpoint);
    let key = session.key.as_ref().map(SigningKey::restore).transpose();
    Ok(TokenCall {
        endpoint: endpoint.map_err(|error| malformed("stored session", &error))?,
        form,
        client: Some(session.registration.clone()),
        key: key?,
        nonce: None,
    })
}
