//! Writes the kubeconfig for the sandbox.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Str, Value};

/// A random token. Fails if the system has no randomness.
pub fn token() -> Result<Str, io::Error> {
    let mut bytes = [0_u8; 32];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| io::Error::other("the system has no randomness"))?;
    Ok(bytes
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
        .into())
}

/// The text of a kubeconfig.
pub fn text(server: &str, certificate: &str, token: &str) -> String {
    let named = |key: &'static str, value: Value| {
        Value::array(vec![Value::from([("name", Value::from("sandbox")), (key, value)])])
    };
    let cluster = Value::from([
        ("certificate-authority-data", Value::from(STANDARD.encode(certificate))),
        ("server", Value::from(server)),
    ]);
    let context = Value::from([("cluster", Value::from("sandbox")), ("user", Value::from("sandbox"))]);
    to_yaml(&Value::from([
        ("apiVersion", Value::from("v1")),
        ("clusters", named("cluster", cluster)),
        ("contexts", named("context", context)),
        ("current-context", Value::from("sandbox")),
        ("kind", Value::from("Config")),
        ("users", named("user", Value::from([("token", Value::from(token))]))),
    ]))
}

/// Writes a file that only its owner can read. A file of that name is replaced, never written through.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_file_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        fs::write(&path, "old").unwrap();
        write_private(&path, &text("https://127.0.0.1:1", "c", "t")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let config = ephor_expr::yaml::parse_value(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(config.str_at(&["current-context"]), Some("sandbox"));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert!(a != b && a.len() == 64);
    }
}
