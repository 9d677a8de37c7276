//! Certificates for an etcd on this machine: the members', a client's, and an expired one.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

use crate::EtcdIdentity;

/// PEM files below one directory.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The authority.
    pub ca: PathBuf,
    /// The members' certificate, for 127.0.0.1 and localhost.
    pub server: EtcdIdentity,
    /// A client certificate.
    pub client: EtcdIdentity,
    /// An expired client certificate.
    pub expired: EtcdIdentity,
}

impl Certificates {
    /// Creates all of them in `dir`.
    #[must_use]
    pub fn make(dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("the test's own directory can be written");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let issuer = CertifiedIssuer::self_signed(params, key()).expect("a key signs itself");
        let ca = dir.join("ca.pem");
        fs::write(&ca, issuer.pem()).expect("the test's own directory can be written");
        let made = |name: &str, is_expired: bool| {
            let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
            let mut params = CertificateParams::new(names).expect("these are names");
            params.distinguished_name.push(DnType::CommonName, name);
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            if is_expired {
                params.not_before = rcgen::date_time_ymd(2020, 1, 1);
                params.not_after = rcgen::date_time_ymd(2020, 1, 2);
            }
            let key = key();
            let cert = params.signed_by(&key, &issuer).expect("the authority signs");
            let files = EtcdIdentity {
                cert_file: dir.join(format!("{name}.pem")),
                key_file: dir.join(format!("{name}.key")),
            };
            fs::write(&files.cert_file, cert.pem()).expect("the test's own directory can be written");
            fs::write(&files.key_file, key.serialize_pem()).expect("the test's own directory can be written");
            files
        };
        Self {
            server: made("server", false),
            client: made("client", false),
            expired: made("expired", true),
            ca,
        }
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("this machine makes keys")
}
