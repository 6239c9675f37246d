//! The dialect against Go's own answers, and safety on any text.

use proptest::prelude::*;
use regex::{Captures, Regex};

use super::*;

fn error(pattern: &str) -> String {
    compile(pattern).map_or_else(|e| e.to_string(), |_| "fine".to_owned())
}

/// `text` with every match replaced by the expanded template.
fn replace_all(regex: &Regex, text: &str, template: &str) -> String {
    let replacement = |captures: &Captures<'_>| {
        let mut out = String::new();
        expand_replacement(captures, template, &mut out);
        out
    };
    regex.replace_all(text, replacement).into_owned()
}

#[test]
fn what_only_go_takes_is_taken() {
    for (pattern, text, matched) in [
        (r"^\Qa.b\E$", "a.b", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"\Qa*\E+b", "a***b", true),
        ("^[[a]$", "[", true),
        ("^[]a]$", "]", true),
        ("^[^]a]$", "]", false),
        ("^{$", "{", true),
        ("^a{$", "a{", true),
        ("^a{2$", "a{2", true),
        ("^x{,3}$", "x{,3}", true),
        ("^x{,3}$", "xx", false),
        ("^a{01}$", "a{01}", true),
        (r"^[\w-.]+$", "a-.", true),
        (r"^\<$", "<", true),
        ("^[a&&b]+$", "&&ab", true),
        ("^[a~~b]+$", "~", true),
        (r"^[+--]$", ",", true),
        (r"^\w$", "é", false),
        (r"^\d$", "\u{0663}", false),
        (r"^\s$", "\u{b}", false),
        (r"^\W$", "é", true),
        (r"^[^\D]$", "5", true),
        (r"^[[:word:][:^ascii:]]+$", "a_é", true),
        (r"é\b", "é", false),
        (r"(?i)^[k]$", "\u{212a}", true),
        (r"^a(?i)b$", "aB", true),
        (r"^a(?i)b$", "AB", false),
        (r"^(?i:a)b$", "Ab", true),
        (r"^(?i:a)b$", "AB", false),
        (r"^((?i)a|b)c$", "Bc", true),
        (r"^(a(?i))*$", "AA", false),
        (r"^a(?i)*$", "aa", true),
        (r"^\012\x41\x{e9}\a$", "\nAé\u{7}", true),
        (r"^\pL\p{Greek}\P{Lu}\p{^L}$", "aαb1", true),
        (r"^^*a$$", "a", true),
        ("a$", "a\n", false),
        ("(?m)a$", "a\n", true),
        ("^.$", "\n", false),
        ("(?s)^.$", "\n", true),
        ("(?-s)^[^a]$", "\n", true),
        (r"\x{D800}", "a", false),
        (r"[\x{D7FF}-\x{E000}]", "\u{e000}", true),
        ("^1e", "1000000", false),
        ("^v[0-9]+$", "v12", true),
        ("", "x", true),
    ] {
        let found = compile(pattern).map(|regex| regex.is_match(text));
        assert_eq!(found, Ok(matched), "{pattern} {text:?}");
    }
}

#[test]
fn what_go_refuses_is_refused_in_its_words() {
    for (pattern, message) in [
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*?+", "invalid nested repetition operator: `*?+`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{100}){100}", "invalid repeat count: `{100}`"),
        ("[a--b]", "invalid character class range: `a--`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        (r"\p{Foo}x", r"invalid character class range: `\p{Foo}`"),
        (r"\p{Lu", r"invalid character class range: `\p{Lu`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(+?)", "missing argument to repetition operator: `+?`"),
        ("x[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"[\q]", r"invalid escape sequence: `\q`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?", "invalid or unsupported Perl syntax: `(?`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        (r"\pL{1000}", r"expression too large: `\pL{1000}`"),
    ] {
        assert_eq!(error(pattern), format!("error parsing regexp: {message}"), "{pattern}");
    }
    assert_eq!(compile(&"(".repeat(2000)).map_err(|e| e.kind).map(|_| ()), Err(GoRegexErrorKind::NestingDepth));
    let deep = "(".repeat(900) + &")".repeat(900);
    assert_eq!(compile(&deep).map_err(|e| e.kind).map(|_| ()), Err(GoRegexErrorKind::NestingDepth));
}

#[test]
fn replacements_expand_as_in_go() {
    for (pattern, text, template, expected) in [
        ("(a)(b)", "ab", "${2}${1}", "ba"),
        ("(a)", "xay", "$1z", "xy"),
        ("(a)", "xay", "${1}z", "xazy"),
        ("a", "xay", "$$", "x$y"),
        ("a", "xay", "$0$0", "xaay"),
        ("(?P<n>a)", "xay", "<$n>", "x<a>y"),
        ("(?<n>a)|(?<n>b)", "a", "$n", "a"),
        ("(?P<1x>a)", "a", "[$1]", "[a]"),
        ("a", "xay", "$9$nope", "xy"),
        ("a", "xay", "$", "x$y"),
        ("a", "xay", "$ ${ ${} ${1", "x$ ${ ${} ${1y"),
        ("(a)", "a", "$01", ""),
        ("(a)|b", "ab", "[$1]", "[a][]"),
        ("a*", "baac", "x", "xbxcx"),
        ("", "é", "-", "-é-"),
    ] {
        let regex = compile(pattern).unwrap();
        assert_eq!(replace_all(&regex, text, template), expected, "{pattern} {template}");
    }
}

#[test]
fn greed_can_be_swapped() {
    for (pattern, expected) in [("a+", "aaa"), ("a+?", "a"), ("(?U)a+", "a"), ("(?U)a+?", "aaa"), ("(?U:a+)a+", "aaa")]
    {
        let regex = compile(pattern).unwrap();
        assert_eq!(regex.find("aaa").map(|m| m.as_str()), Some(expected), "{pattern}");
    }
}

proptest! {
    /// The translation checks everything, so `regex` may refuse only what is too large or too deep.
    #[test]
    fn any_text_compiles_or_is_refused_for_a_reason(
        pattern in r"([a-c]|\\.|[(){}\[\]|*+?.^$,:<>!=0-9imsUP&~é-]|\(\?|\[\[:|\\p\{|\\x\{){0,14}"
    ) {
        if let Err(e) = compile(&pattern) {
            prop_assert_ne!(e.kind, GoRegexErrorKind::NestingDepth, "{}", pattern);
        }
    }

    #[test]
    fn any_template_expands(template in r"([$]|[{}]|[0-9a-zé_ ]){0,12}", text in "[abé]{0,6}") {
        let _ = replace_all(&compile("(a)|(?P<x>b)").unwrap(), &text, &template);
    }
}

#[test]
fn an_evaluation_keeps_few_large_expressions() {
    let (cache, budget) = (RegexCache::default(), Budget::new(u64::MAX, 0));
    for number in 0..KEPT {
        cache.get(&format!("{number}(a{{900}})(b{{900}})"), &budget).unwrap();
    }
    let kept: usize = cache.0.borrow().iter().map(|(_, regex)| bytes(regex)).sum();
    assert!(kept <= KEPT_BYTES && !cache.0.borrow().is_empty(), "{kept}");
}
