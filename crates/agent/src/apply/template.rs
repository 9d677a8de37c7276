//! The source of a template: the configuration, or a file that is read for each rendering.

use std::fs::File;
use std::io::Read;

use bellwether_api::template::MAX_TEMPLATE_BYTES;

use crate::config::recipe::Template;

/// The name of a template for error messages, and its text.
///
/// # Errors
/// One line with the file and the reason.
pub(crate) fn read(template: &Template) -> Result<(String, String), String> {
    match template {
        Template::Text(text) => Ok(("its text".to_owned(), text.clone())),
        Template::File(path) => {
            let name = format!("template {}", path.display());
            let failed = |error: std::io::Error| format!("cannot read {name}: {error}");
            // One byte more than the limit, so that a longer file is noticed; a device has no end.
            let most = u64::try_from(MAX_TEMPLATE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
            let mut text = String::new();
            let file = File::open(path).map_err(failed)?;
            file.take(most).read_to_string(&mut text).map_err(failed)?;
            Ok((name, text))
        }
    }
}
