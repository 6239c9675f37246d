//! Checks the credentials of requests.
//!
//! The server listens on loopback only, but every page in a browser can reach that. So `Host` must be a loopback name
//! (a page of a foreign name that resolves to loopback is stopped), a request with an `Origin` of another server is
//! refused, and everything but the probes needs the token from the kubeconfig.

use axum::http::{HeaderMap, HeaderName, header};
use ephor_cluster::ClusterError;
use ephor_cluster::admission::User;
use ephor_expr::Str;

use crate::live::same;

/// What a request must show.
#[derive(Debug, Clone)]
pub struct Gate {
    port: u16,
    token: Str,
}

impl Gate {
    /// The gate of a server at that port.
    pub fn new(port: u16, token: impl Into<Str>) -> Self {
        Self { port, token: token.into() }
    }

    /// Whether the request was meant for this server.
    ///
    /// `authority` is that of the request line, where HTTP/2 has what is `Host` otherwise.
    pub fn check_origin(&self, authority: Option<&str>, headers: &HeaderMap) -> Result<(), ClusterError> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if !authority.or_else(|| text(header::HOST)).is_some_and(|host| self.is_own(host)) {
            return Err(ClusterError::denied(403, "Forbidden", "the sandbox answers to its own host name only"));
        }
        let foreign = |origin: &str| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            !host.is_some_and(|host| self.is_own(host))
        };
        if text(header::ORIGIN).is_some_and(foreign) {
            return Err(ClusterError::denied(403, "Forbidden", "the sandbox takes no requests from other pages"));
        }
        Ok(())
    }

    fn is_own(&self, host: &str) -> bool {
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
            host.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(':'))
                .is_some_and(|port| port.parse() == Ok(self.port))
        })
    }

    /// On whose behalf the request is: the administrator, or whom the administrator impersonates.
    pub fn user(&self, headers: &HeaderMap) -> Result<User, ClusterError> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
        if !same(given.trim().as_bytes(), self.token.as_bytes()) {
            return Err(ClusterError::denied(401, "Unauthorized", "Unauthorized"));
        }
        impersonated(headers)
    }
}

fn impersonated(headers: &HeaderMap) -> Result<User, ClusterError> {
    let asked: Vec<_> = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-")).collect();
    // Without this check the request would run with the rights of another user.
    if let Some((name, _)) = asked.iter().find(|(_, value)| value.to_str().is_err()) {
        return Err(ClusterError::bad_request(format!("the header {name} is no text")));
    }
    let texts = |name: &str| -> Vec<Str> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(Str::new).collect()
    };
    let groups = texts("impersonate-group");
    let Some(name) = texts("impersonate-user").into_iter().next().filter(|name| !name.is_empty()) else {
        return if asked.is_empty() {
            Ok(User::default())
        } else {
            Err(ClusterError::bad_request("requested impersonation without naming a user"))
        };
    };
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let mut user = match (account, groups.is_empty()) {
        (Some((namespace, account)), true) => User::service_account(namespace, account),
        (None, true) => User::new(name, ["system:authenticated"]),
        (_, false) => User::new(name, groups),
    };
    if user.name != "system:anonymous" && !user.groups.iter().any(|group| group == "system:authenticated") {
        user.groups.push("system:authenticated".into());
    }
    user.uid = texts("impersonate-uid").into_iter().next().unwrap_or_default();
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix("impersonate-extra-"), value.to_str()) {
            user.extra.entry(Str::new(key)).or_default().push(value.into());
        }
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(entries: &[(&'static str, &str)]) -> HeaderMap {
        entries.iter().map(|(key, value)| (HeaderName::from_static(key), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_page_of_another_server_is_kept_out() {
        let gate = Gate::new(8001, "secret");
        for (entries, allowed) in [
            (&[("host", "127.0.0.1:8001")][..], true),
            (&[("host", "localhost:8001")], true),
            (&[("host", "[::1]:8001"), ("origin", "http://[::1]:8001")], true),
            (&[], false),
            (&[("host", "evil.example:8001")], false),
            (&[("host", "127.0.0.1:8002")], false),
            (&[("host", "127.0.0.1.evil.example:8001")], false),
            (&[("host", "127.0.0.1:8001"), ("origin", "http://evil.example")], false),
            (&[("host", "127.0.0.1:8001"), ("origin", "null")], false),
        ] {
            assert_eq!(gate.check_origin(None, &headers(entries)).is_ok(), allowed, "{entries:?}");
        }
    }

    #[test]
    fn the_token_opens_and_impersonation_names_the_user() {
        let gate = Gate::new(1, "secret");
        for token in ["", "Bearer", "Bearer secre", "Bearer secret1", "Basic secret"] {
            assert_eq!(gate.user(&headers(&[("authorization", token)])).unwrap_err().code(), 401, "{token}");
        }
        let ask = |more: &[(&'static str, &str)]| {
            let all: Vec<_> = [("authorization", "Bearer secret")].iter().chain(more).copied().collect();
            gate.user(&headers(&all))
        };
        assert_eq!(ask(&[]).unwrap(), User::default());
        let user = ask(&[("impersonate-user", "bob"), ("impersonate-group", "dev")]).unwrap();
        assert_eq!((user.name.as_str(), user.groups.len()), ("bob", 2));
        let account = ask(&[("impersonate-user", "system:serviceaccount:a:b")]).unwrap();
        assert_eq!(account, User::service_account("a", "b"));
        for half in ["impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
            assert_eq!(ask(&[(half, "dev")]).unwrap_err().code(), 400, "{half}");
        }
        assert_eq!(ask(&[("impersonate-user", "")]).unwrap_err().code(), 400);
        let mut unreadable = headers(&[("authorization", "Bearer secret")]);
        unreadable.insert("impersonate-user", header::HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(gate.user(&unreadable).unwrap_err().code(), 400);
    }
}
