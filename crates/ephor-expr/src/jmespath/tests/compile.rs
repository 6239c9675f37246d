//! What does not compile, and where the messages point.

use super::super::Expression;
use super::check;

fn refusal(expression: &str) -> (usize, String) {
    let error = Expression::compile(expression).unwrap_err();
    (error.offset, error.message)
}

#[test]
fn errors_point_at_the_first_token_that_cannot_be() {
    for (expression, offset, message) in [
        ("", 0, "expected an expression, found end of expression"),
        ("  ", 2, "expected an expression, found end of expression"),
        ("o.p.", 4, "expected an identifier, `*`, `[` or `{` after `.`, found end of expression"),
        ("o.'x'", 2, "expected an identifier, `*`, `[` or `{` after `.`, found a literal"),
        ("w.@", 2, "expected an identifier, `*`, `[` or `{` after `.`, found `@`"),
        ("o.p.[]", 4, "expected an identifier, `*`, `[` or `{` after `.`, found `[]`"),
        ("[", 1, "expected an expression, found end of expression"),
        ("{a", 2, "expected `:`, found end of expression"),
        ("{a: w b", 7, "expected `:`, found end of expression"),
        ("[w", 2, "expected `,`, found end of expression"),
        ("[w,]", 3, "expected an expression, found `]`"),
        ("w)", 1, "expected end of expression, found `)`"),
        ("w w", 2, "expected end of expression, found `w`"),
        ("w * w", 2, "expected an operator or the end of the expression, found `*`"),
        ("l[", 2, "expected a number, `:` or `*` after `[`, found end of expression"),
        ("l[a]", 2, "expected a number, `:` or `*` after `[`, found `a`"),
        ("l[0", 3, "expected `]`, found end of expression"),
        ("l[::0]", 4, "a slice's step cannot be 0"),
        ("l[99999999999999999999]", 2, "number `99999999999999999999` is out of range"),
        ("l[?]", 3, "expected an expression, found `]`"),
        ("w-b", 1, "unexpected `-`"),
        ("w = w", 2, "unexpected `=`"),
        ("w#", 1, "unexpected character '#'"),
        ("'abc", 0, "unclosed '"),
        (r"'\\'", 0, "unclosed '"),
        ("w || \"abc", 5, "unclosed \""),
        ("`abc", 0, "unclosed `"),
        ("w(", 2, "expected an expression, found end of expression"),
        ("not_null(w,,w)", 11, "expected an expression, found `,`"),
        ("()", 1, "expected an expression, found `)`"),
        ("@(w)", 1, "expected an operator or the end of the expression, found `(`"),
        ("\"length\"(w)", 0, "a function's name cannot be quoted"),
        ("w | nope(w)", 4, "unknown function: nope"),
        ("length()", 0, "incorrect number of args"),
        ("length(w, w)", 0, "incorrect number of args"),
        ("merge()", 0, "incorrect number of args"),
        ("sort_by(l, k)", 0, "argument 2 of `sort_by` must be an expression reference"),
        ("w || &w", 5, "an expression reference can only be an argument of a function"),
        ("length(&w)", 7, "an expression reference can only be an argument of a function"),
    ] {
        assert_eq!(refusal(expression), (offset, message.to_owned()), "{expression}");
    }
}

#[test]
fn double_braces_fail_in_the_words_of_the_reference() {
    let error = Expression::compile("{{request.object.spec.l}}").unwrap_err();
    assert_eq!(error.to_string(), "SyntaxError: Expected tQuotedIdentifier or tUnquotedIdentifier");
    assert_eq!(error.offset, 1);
    assert_eq!(error.help.as_deref(), Some("write the expression without `{{ }}`"));
}

#[test]
fn literals_fail_in_the_words_of_the_reference() {
    check(&[
        ("`'a'`", r"error: invalid character '\'' looking for beginning of value"),
        ("``", "error: unexpected end of JSON input"),
        ("`1 2`", "error: invalid character '2' after top-level value"),
    ]);
    assert_eq!(refusal("w || `{a: 1}`").0, 7);
    assert_eq!(refusal(r#"w || `{"\`": a}`"#).0, 5);
    assert_eq!(refusal(r#"o."a\q""#), (5, "invalid character 'q' in string escape code".to_owned()));
}

#[test]
fn wrong_arity_says_what_is_right() {
    let help = |expression| Expression::compile(expression).unwrap_err().help.unwrap_or_default();
    assert_eq!(help("length(w, w)"), "`length` takes 1 argument, not 2");
    assert_eq!(help("merge()"), "`merge` takes at least 1 argument, not 0");
}

#[test]
fn unknown_functions_name_the_nearest_one() {
    let error = Expression::compile("a | to_uper(b)").unwrap_err();
    assert_eq!((error.offset, error.help.as_deref()), (4, Some("did you mean `to_upper`?")));
    assert_eq!(Expression::compile("frobnicate(a)").unwrap_err().help, None);
}

#[test]
fn dumps_show_the_tree() {
    let expression = Expression::compile("a.b[?c == `1`].{k: length(@)} | [0]").unwrap();
    let want = "\
pipe
  filter projection
    of sub-expression
      field \"a\"
      field \"b\"
    if comparison ==
      field \"c\"
      literal 1
    each multi-select hash
      \"k\": function length
        current
  sub-expression
    current
    index 0
";
    assert_eq!(expression.dump(), want);
}
