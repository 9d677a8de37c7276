//! Paths of the certificate authorities.

/// The certificate authorities, and what is behind.
pub const AUTHORITIES: &str = "/v1/authorities";
/// What clients of the control plane trust.
pub const TRUST_BUNDLE: &str = "/v1/authorities/bundle";
/// Makes the next authority.
pub const ROTATE_AUTHORITY: &str = "/v1/authorities/rotate";
/// Brings the next authority into use.
pub const ACTIVATE_AUTHORITY: &str = "/v1/authorities/activate";
/// Ends the trust in the previous authority.
pub const RETIRE_AUTHORITY: &str = "/v1/authorities/retire";
/// Drops the next authority.
pub const CANCEL_AUTHORITY: &str = "/v1/authorities/cancel";
