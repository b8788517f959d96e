use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::error::HttpClientError;

/// Names of protocols for ALPN (RFC 7301).
const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// TLS that trusts the platform's certificates and the extra roots.
#[derive(Debug)]
pub(super) struct Tls {
    extra_roots: Vec<CertificateDer<'static>>,
    config: OnceLock<Result<Arc<ClientConfig>, rustls::Error>>,
}

impl Tls {
    /// Reads the extra roots, a PEM text.
    pub(super) fn new(extra_roots: Option<&[u8]>) -> Result<Self, HttpClientError> {
        Ok(Self {
            extra_roots: extra_roots.map(parse).transpose()?.unwrap_or_default(),
            config: OnceLock::new(),
        })
    }

    /// The configuration. The first use reads the platform's certificates, which blocks for a few
    /// milliseconds. Connections without TLS never need it.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        let made = || config(self.extra_roots.clone());
        self.config.get_or_init(made).clone()
    }

    /// The configuration for a connection to a proxy, which is spoken to in HTTP/1.1.
    pub(super) fn proxy_config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        let mut config = ClientConfig::clone(&*self.config()?);
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(Arc::new(config))
    }
}

fn config(mut roots: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    roots.extend(roots_of_environment());
    let builder = match Verifier::new_with_extra_roots(roots, provider) {
        Ok(verifier) => {
            let verifier: Arc<dyn ServerCertVerifier> = Arc::new(verifier);
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
        // Without certificates, plain http still works.
        Err(error) => {
            tracing::warn!(%error, "no certificate is trusted, so https will fail");
            builder.with_root_certificates(RootCertStore::empty())
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    Ok(Arc::new(config))
}

/// Parses certificates from PEM, and checks that each can be a trust anchor.
fn parse(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, HttpClientError> {
    let roots: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, pem::Error>>()
        .map_err(|error| HttpClientError::BadRoots(Arc::new(error)))?;
    if roots.is_empty() {
        return Err(HttpClientError::NoRoots);
    }
    let mut store = RootCertStore::empty();
    for root in &roots {
        store
            .add(root.clone())
            .map_err(|error| HttpClientError::BadRoots(Arc::new(error)))?;
    }
    Ok(roots)
}

/// The certificates of `SSL_CERT_FILE` on Windows and Apple systems. On other systems the verifier
/// reads that file itself.
fn roots_of_environment() -> Vec<CertificateDer<'static>> {
    let is_read_by_verifier = !cfg!(any(windows, target_vendor = "apple"));
    let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|_| !is_read_by_verifier) else {
        return Vec::new();
    };
    let roots = CertificateDer::pem_file_iter(Path::new(&path)).and_then(Iterator::collect);
    roots.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the certificates of SSL_CERT_FILE");
        Vec::new()
    })
}
