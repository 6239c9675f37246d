//! `page/feed.js`, run by a JavaScript engine.

use rquickjs::{Context, Runtime};

const PRELUDE: &str = r#"
    const wanted = (over) => ({ verdict: "", policy: "", namespace: "", text: "", unmatched: false, ...over });
    const entry = (topic, over) =>
      ({ topic, outcome: "allowed", namespace: "default", policies: ["p"], searched: "", ...over });
    const feed = new Feed();
    const arrives = (count, made) => Array.from({ length: count }, (_, i) => i).forEach((i) => {
      const next = made(i);
      feed.totals[next.topic] += 1;
      feed.wait(next, wanted());
    });
    const lists = (count, made) => Array.from({ length: count }, (_, i) => i).forEach((i) => {
      const next = made(i);
      feed.totals[next.topic] += 1;
      feed.add(next);
    });
"#;

/// What the last expression of a script over a `feed` gives, as JSON.
fn evaluated(script: &str) -> String {
    let context = Context::full(&Runtime::new().unwrap()).unwrap();
    context.with(|page| {
        page.eval::<(), _>(include_str!("page/feed.js")).unwrap();
        page.eval::<(), _>(PRELUDE).unwrap();
        page.eval::<String, _>(script).unwrap()
    })
}

#[test]
fn requests_without_policies_push_no_waiting_decision_out() {
    let kept = evaluated(
        r#"
        arrives(1, () => entry("decision", { outcome: "denied" }));
        arrives(600, () => entry("request"));
        JSON.stringify([feed.counts(wanted()).news, feed.release().filter((e) => e.topic === "decision").length])
        "#,
    );
    assert_eq!(kept, "[1,1]");
}

#[test]
fn what_came_is_counted_also_beyond_what_is_kept() {
    let counted = evaluated(
        r#"
        lists(545, () => entry("decision"));
        const before = feed.counts(wanted()).text;
        arrives(700, () => entry("decision"));
        const { news, text } = feed.counts(wanted());
        const released = feed.release();
        released.forEach((e) => feed.add(e));
        JSON.stringify([before, news, text, released.length, feed.entries.length, feed.counts(wanted()).text])
        "#,
    );
    assert_eq!(counted, r#"["latest 500 of 545",700,"500 of 1245",500,500,"latest 500 of 1245"]"#);
}

#[test]
fn the_newest_are_first_and_the_oldest_of_the_topic_leave() {
    let left = evaluated(
        r#"
        lists(1, () => entry("request", { searched: "request" }));
        lists(500, (i) => entry("decision", { searched: `${i}` }));
        const left = feed.add(entry("decision", { searched: "new" }));
        JSON.stringify([left.map((e) => e.searched), feed.entries[0].searched, feed.entries.at(-1).searched])
        "#,
    );
    assert_eq!(left, r#"[["0"],"new","request"]"#);
}

#[test]
fn filters_select_decisions_and_requests_alike() {
    for (filter, shown) in [
        ("{}", 3),
        ("{ unmatched: true }", 4),
        (r#"{ verdict: "denied" }"#, 1),
        (r#"{ verdict: "denied", unmatched: true }"#, 1),
        (r#"{ verdict: "allowed", unmatched: true }"#, 3),
        (r#"{ policy: "q", unmatched: true }"#, 1),
        (r#"{ namespace: "team", unmatched: true }"#, 2),
        (r#"{ text: "needle" }"#, 1),
    ] {
        let counted = evaluated(&format!(
            r#"
            lists(1, () => entry("decision", {{ outcome: "denied" }}));
            lists(1, () => entry("decision", {{ policies: ["p", "q"], namespace: "team" }}));
            lists(1, () => entry("decision", {{ searched: "a needle" }}));
            lists(1, () => entry("request", {{ policies: [], namespace: "team" }}));
            JSON.stringify(feed.counts(wanted({filter})).shown)
            "#
        ));
        assert_eq!(counted, shown.to_string(), "{filter}");
    }
}
