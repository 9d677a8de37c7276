//! Addresses that a request gives to the control plane to call or to read: URLs, and paths below a directory.

use bellwether_core::records::sink::{MAX_PATH_BYTES, MAX_URL_BYTES};

use crate::shape::ShapeError;

/// A URL with `http` or `https` and a host, without a user.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn web_url(place: &str, text: &str) -> Result<String, ShapeError> {
    let refuse = |reason: String| Err(ShapeError::at(place, reason));
    if text.len() > MAX_URL_BYTES {
        return refuse(format!("{} bytes; at most {MAX_URL_BYTES}", text.len()));
    }
    let uri: http::Uri = match text.parse() {
        Ok(uri) => uri,
        Err(error) => return refuse(format!("{text:?} is not a URL: {error}")),
    };
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    let (true, Some(authority)) = (known, uri.authority()) else {
        return refuse(format!("{text:?} is not http://… or https://…"));
    };
    if authority.as_str().contains('@') {
        return refuse("it has a user in it, which everybody could read who may get it".to_owned());
    }
    if text.contains('#') {
        return refuse("it has a fragment, which is never sent".to_owned());
    }
    Ok(text.to_owned())
}

/// A path below a directory that leads nowhere else.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn path_below(place: &str, text: &str) -> Result<String, ShapeError> {
    let refuse = |reason: &str| Err(ShapeError::at(place, format!("{text:?}: {reason}")));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if text.is_empty() || text.len() > MAX_PATH_BYTES {
        return refuse("write 1 to 255 characters");
    }
    if text.starts_with('/') {
        return refuse("write a path below the directory of the namespace, without a leading /");
    }
    for part in text.split('/') {
        if part.is_empty() || part.starts_with('.') || !part.bytes().all(is_plain) {
            return refuse("each part has letters, digits and _ - . and begins with no dot");
        }
    }
    Ok(text.to_owned())
}
