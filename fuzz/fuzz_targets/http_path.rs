//! What a caller of the admission port writes: the path and the query on the first line, the body behind it. The real
//! router answers, over webhooks that let every review in.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, Uri, header};
use ephor_admission::http::{Callers, Limits, Reviews, router};
use ephor_engine::policy::FailurePolicy;
use ephor_expr::Value;
use ephor_runtime::decision::{AdmissionRequest, AdmissionReview, Answer, Webhook, WebhookScope, path};
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// The paths of the server, and a yes to every review.
struct Yes;

impl Reviews for Yes {
    fn serves(&self, path: &str) -> bool {
        path::parse(path).is_some()
    }

    fn at_once(&self, _: &str, _: &AdmissionRequest) -> Option<Answer> {
        Some(Answer::allow())
    }

    fn answer(&self, _: &str, _: &AdmissionRequest, _: Instant) -> Answer {
        Answer::allow()
    }

    fn unreadable(&self, _: &str, why: &str) -> Answer {
        Answer::deny(why)
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn answered(&self, _: &str, _: &str, _: Duration) {}

    fn proves(&self, _: &str) -> bool {
        false
    }
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    // Everything is parsed on this thread, where a panic is seen.
    let limits = Limits { body: 64 << 10, at_once: 64 << 10, ..Limits::default() };
    router(Arc::new(Yes), limits, Callers::All)
});

fn post(uri: &Uri, body: &str) -> (StatusCode, String) {
    let request = Request::post(uri.clone()).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    RUNTIME.block_on(async {
        let Ok(response) = ROUTER.clone().oneshot(request).await;
        let status = response.status();
        let text = response.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8(text.to_vec()).expect("text"))
    })
}

/// The path of what [`path::parse`] understood.
fn rendered((webhook, scope): &(Webhook, WebhookScope)) -> String {
    let failing = |policy: &FailurePolicy| match policy {
        FailurePolicy::Fail => "/fail",
        FailurePolicy::Ignore => "/ignore",
    };
    let scope = match scope {
        WebhookScope::All => String::new(),
        WebhookScope::ByFailurePolicy(policy) => failing(policy).to_owned(),
        WebhookScope::OfKind(policy, kind) => return path::of_kind(*policy, *kind).expect("a kind that has webhooks"),
        WebhookScope::Policies(policy, keys) => {
            let names: String = keys
                .iter()
                .flat_map(|key| key.namespace.iter().chain([&key.name]))
                .map(|name| format!("/{name}"))
                .collect();
            match keys.first().and_then(|key| path::word(key.kind)) {
                Some(word) if *policy == FailurePolicy::Ignore => return format!("/{word}-ignore{names}"),
                Some(word) => return format!("/{word}{names}"),
                None => format!("{}/finegrained{names}", failing(policy)),
            }
        }
    };
    format!("/{}{scope}", webhook.as_str())
}

/// The UID and the verdict of an answer.
fn verdict(text: &str) -> (String, bool) {
    let review = Value::from_json(text).expect("an answer is JSON");
    let uid = review.str_at(&["response", "uid"]).expect("an answer has the UID of its question");
    (uid.to_owned(), review.at(&["response", "allowed"]) == Some(&Value::Bool(true)))
}

fuzz_target!(|text: &str| {
    let (line, body) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(uri) = line.parse::<Uri>() else { return };
    let webhook = path::parse(uri.path());
    if let Some(webhook) = &webhook {
        assert_eq!(rendered(webhook), uri.path());
    }
    let (status, answer) = post(&uri, body);
    if status != StatusCode::OK {
        return;
    }
    if webhook.is_none() {
        // Probes answer GET only.
        panic!("{} is no webhook and answered", uri.path());
    }
    let in_time = !uri.query().unwrap_or_default().contains("timeout=");
    let (uid, allowed) = verdict(&answer);
    let Ok(asked) = AdmissionReview::parse(body.as_bytes()) else {
        assert!(!allowed, "what cannot be read is let in");
        return;
    };
    assert_eq!(uid, asked.request.uid.as_str());
    assert!(allowed || !in_time);
    // A review that is cut off is denied under the same UID, or has no answer.
    let plain = |word: &str| body.matches(word).count() == 1;
    if in_time && plain("uid") && plain("request") && !body.contains('\\') {
        let cut = body.floor_char_boundary(body.trim_end().len() / 2);
        let (status, answer) = post(&uri, &body[..cut]);
        if status == StatusCode::OK {
            assert_eq!(verdict(&answer), (uid, false));
        }
    }
});
