//! Blocks of conditions as deny conditions and as preconditions, and the messages they give.

use crate::support::run_rule;

/// Conditions by their names: `t` is true, `f` is false, `x` has a variable that is missing.
fn expanded(block: &str) -> String {
    let mut out = String::new();
    let mut rest = block;
    while let Some(at) = rest.find(|c: char| "tfx".contains(c)) {
        let (before, from) = rest.split_at(at);
        let end = from.find([',', ']', ' ']).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        let value = if name.starts_with('t') { "a" } else { "b" };
        let key = if name.starts_with('x') { "'{{ request.object.zz }}'" } else { "a" };
        let message = if name.starts_with('x') { "" } else { name };
        let condition = format!("{{key: {key}, operator: Equals, value: {value}, message: '{message}'}}");
        out.push_str(before);
        out.push_str(&condition);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn shown(lines: &[String]) -> String {
    let [line] = lines else { panic!("{lines:?}") };
    let line = line.strip_prefix("r ").unwrap();
    match line.split_once(' ') {
        Some(("pass" | "error", _)) => line.split(' ').next().unwrap().to_owned(),
        Some(("skip", text)) => {
            let reasons = text.strip_prefix("preconditions not met").unwrap();
            format!("skip{}", reasons.replacen("; ", " ", 1))
        }
        _ => line.to_owned(),
    }
}

#[test]
fn blocks_hold_and_explain_themselves() {
    for (block, as_deny, as_preconditions) in [
        ("{any: []}", "pass", "skip"),
        ("{all: []}", "fail M", "fail M"),
        ("[]", "fail M", "fail M"),
        ("{}", "fail M", "fail M"),
        ("{any: [], all: [t1]}", "pass", "skip"),
        ("{any: [f1, t1, t2], all: [t3, t4]}", "fail M; t1; t3; t4", "fail M"),
        ("[t1, t2]", "fail M; t1;t2", "fail M"),
        ("{any: [f1, f2], all: [f3, f4]}", "pass", "skip f1; f2; f3"),
        ("{any: [t1], all: [f1]}", "pass", "skip f1"),
        ("{any: [t1, x]}", "fail M; t1", "fail M"),
        ("{any: [x, t1]}", "error", "error"),
        ("{all: [f1, x]}", "pass", "skip f1"),
        ("{any: [f1], all: [x]}", "error", "error"),
    ] {
        let conditions = expanded(block);
        let deny = run_rule(&format!("validate: {{message: M, deny: {{conditions: {conditions}}}}}"), "{}");
        assert_eq!(shown(&deny), as_deny, "{block} as deny");
        let rule = format!("preconditions: {conditions}\nvalidate: {{message: M, deny: {{}}}}");
        assert_eq!(shown(&run_rule(&rule, "{}")), as_preconditions, "{block} as preconditions");
    }
}
