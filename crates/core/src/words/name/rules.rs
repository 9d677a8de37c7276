//! What makes a text a valid name of each kind: each function answers the rule that is broken.

/// Longest DNS label (RFC 1035), in bytes.
pub const MAX_LABEL_BYTES: usize = 63;

/// Longest key of a param, in bytes.
pub const MAX_PARAM_KEY_BYTES: usize = 128;

/// Longest name of a network interface on Linux (`IFNAMSIZ` without the final zero), in bytes.
pub const MAX_INTERFACE_BYTES: usize = 15;

/// Longest node name and longest target name, in bytes: a full DNS name.
pub const MAX_TARGET_BYTES: usize = 253;

/// Prefix of a node's name where it is the actor.
pub const NODE_ACTOR: &str = "node/";

pub(super) fn param_key(text: &str) -> Option<&'static str> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    match text {
        "" => Some("it is empty"),
        long if long.len() > MAX_PARAM_KEY_BYTES => Some("it is longer than 128 characters"),
        text if !text.bytes().all(inner) => Some("only letters, digits and '_ - . /' are allowed"),
        _ => None,
    }
}

pub(super) fn label(text: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > MAX_LABEL_BYTES {
        Some("it is longer than 63 characters")
    } else if !text.bytes().all(inner) {
        Some("only lower-case letters, digits and '-' are allowed")
    } else if text.starts_with('-') || text.ends_with('-') {
        Some("it may not start or end with '-'")
    } else {
        None
    }
}

/// A host name as in RFC 1123, in lower case.
pub(super) fn host(text: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let mut labels = text.split('.');
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > MAX_TARGET_BYTES {
        Some("it is longer than 253 characters")
    } else if text.contains('_') {
        Some("'_' is not allowed in host names")
    } else if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Some("upper-case letters are not allowed")
    } else if !text.bytes().all(inner) {
        Some("only lower-case letters, digits, '-' and '.' are allowed")
    } else if labels.clone().any(str::is_empty) {
        Some("it may not start or end with '.', nor have two in a row")
    } else if labels.clone().any(|label| label.len() > MAX_LABEL_BYTES) {
        Some("a label between dots is longer than 63 characters")
    } else if labels.any(|label| label.starts_with('-') || label.ends_with('-')) {
        Some("no label between dots may start or end with '-'")
    } else {
        None
    }
}

pub(super) fn target(text: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b".-_:/".contains(&b);
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > MAX_TARGET_BYTES {
        Some("it is longer than 253 characters")
    } else if !text.bytes().all(inner) {
        Some("only letters, digits and '. _ : / -' are allowed")
    } else {
        None
    }
}

pub(super) fn actor(text: &str) -> Option<&'static str> {
    target(text.strip_prefix(NODE_ACTOR).unwrap_or(text))
}

/// A name whose parts between slashes are not empty.
pub(super) fn grouped(text: &str) -> Option<&'static str> {
    let is_empty_part = || text.split('/').any(str::is_empty);
    target(text)
        .or_else(|| is_empty_part().then_some("no part of it may be empty, before, after or between '/'"))
}

pub(super) fn visible(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > MAX_TARGET_BYTES {
        Some("it is longer than 253 characters")
    } else if !text.bytes().all(|b| b.is_ascii_graphic()) {
        Some("only visible ASCII characters are allowed")
    } else {
        None
    }
}

pub(super) fn serial(text: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b".-_:".contains(&b);
    match text {
        "" => Some("it is empty"),
        long if long.len() > MAX_PARAM_KEY_BYTES => Some("it is longer than 128 characters"),
        text if !text.bytes().all(inner) => Some("only letters, digits and '. _ : -' are allowed"),
        _ => None,
    }
}

pub(super) fn unit(text: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b".-_:@".contains(&b);
    if text.len() > MAX_TARGET_BYTES {
        Some("it is longer than 253 characters")
    } else if !text.bytes().all(inner) {
        Some("only letters, digits and '. _ : @ -' are allowed")
    } else if text.starts_with(['-', '.', '@']) {
        Some("it may not start with '-', '.' or '@'")
    } else if !text.ends_with(".service") {
        Some("it does not end with .service")
    } else {
        None
    }
}

pub(super) fn interface(text: &str) -> Option<&'static str> {
    if text.len() > MAX_INTERFACE_BYTES {
        Some("it is longer than 15 characters")
    } else if text.contains('/') {
        Some("it may not contain '/'")
    } else {
        visible(text)
    }
}
