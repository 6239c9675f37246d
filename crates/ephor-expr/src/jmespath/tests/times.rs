//! Times, row by row as observed in the reference.

use super::check;
use crate::jmespath::{Expression, FixedRuntime};
use crate::value::Value;

#[test]
fn additions_keep_the_offset_and_drop_fractions() {
    check(&[
        ("time_add('2030-01-01T00:00:00Z','90m')", r#""2030-01-01T01:30:00Z""#),
        ("time_add('2030-01-01T00:00:00.5Z','500ms')", r#""2030-01-01T00:00:01Z""#),
        ("time_add('2030-01-01T00:00:00.5+02:00','500ms')", r#""2030-01-01T00:00:01+02:00""#),
        ("time_add('2030-01-01T00:00:00Z','90')", r#"error: time: missing unit in duration "90""#),
        ("time_add('2030-01-01T00:00:00Z','0')", r#""2030-01-01T00:00:00Z""#),
        ("time_add('2030-01-01T00:00:00Z','-1h')", r#""2029-12-31T23:00:00Z""#),
        ("time_add('x','1h')", r#"error: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
        (
            "time_add('2030-01-01','1h')",
            r#"error: parsing time "2030-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
        ),
        ("time_add('9999-12-31T23:59:59Z','1s')", r#""10000-01-01T00:00:00Z""#),
        ("time_add('0000-01-01T00:00:00Z','-1s')", r#""-0001-12-31T23:59:59Z""#),
        ("time_add('2030-02-30T00:00:00Z','1s')", r#"error: parsing time "2030-02-30T00:00:00Z": day out of range"#),
        ("time_add('2030-01-01T24:00:00Z','1s')", r#"error: parsing time "2030-01-01T24:00:00Z": hour out of range"#),
        ("time_add('2030-01-01T00:00:60Z','1s')", r#"error: parsing time "2030-01-01T00:00:60Z": second out of range"#),
        (
            "time_add('2030-01-01t00:00:00z','1s')",
            r#"error: parsing time "2030-01-01t00:00:00z" as "2006-01-02T15:04:05Z07:00": cannot parse "t00:00:00z" as "T""#,
        ),
        ("time_add('2030-01-01T00:00:00,5Z','1s')", r#""2030-01-01T00:00:01Z""#),
        (
            "time_add('2030-01-01T00:00:00+25:00','1s')",
            r#"error: parsing time "2030-01-01T00:00:00+25:00": time zone offset hour out of range"#,
        ),
        ("time_add('2030-01-01T00:00:00+00:00','1s')", r#""2030-01-01T00:00:01Z""#),
        ("time_add('2030-01-01T00:00:00-00:00','1s')", r#""2030-01-01T00:00:01Z""#),
        ("time_add('2030-01-01T0:00:00Z','1s')", r#""2030-01-01T00:00:01Z""#),
        ("time_utc('2030-01-01T01:00:00+01:00')", r#""2030-01-01T00:00:00Z""#),
        ("time_utc('2030-01-01T01:00:00.5+01:00')", r#""2030-01-01T00:00:00Z""#),
        ("time_utc('x')", r#"error: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
    ]);
}

#[test]
fn differences_are_durations() {
    check(&[
        ("time_diff('2030-01-01T00:00:00Z','2030-01-01T01:00:00Z')", r#""1h0m0s""#),
        (
            "time_diff('2030-01-01T00:00:00Z','x')",
            r#"error: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        ("time_diff('0001-01-01T00:00:00Z','9999-01-01T00:00:00Z')", r#""2562047h47m16.854775807s""#),
        ("time_diff('9999-01-01T00:00:00Z','0001-01-01T00:00:00Z')", r#""-2562047h47m16.854775808s""#),
        ("time_diff('2030-01-01T00:00:00Z','2030-01-01T00:00:00.123456789Z')", r#""123.456789ms""#),
        ("time_since('','2030-01-01T00:00:00Z','2030-01-02T00:00:00Z')", r#""24h0m0s""#),
        ("time_since('Mon Jan 02','Tue Jan 01','Wed Jan 02')", r#""24h0m0s""#),
        ("time_since('2006-01-02','2030-01-01','2030-01-03')", r#""48h0m0s""#),
        (
            "time_since('','x','')",
            r#"error: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            "time_since('2006-01-02','2030-01-01','x')",
            r#"error: parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#,
        ),
    ]);
}

#[test]
fn comparisons_are_strict() {
    check(&[
        ("time_before('2030-01-01T00:00:00Z','2030-01-01T00:00:01Z')", "true"),
        ("time_before('2030-01-01T00:00:00Z','2030-01-01T00:00:00Z')", "false"),
        ("time_after('2030-01-01T00:00:00Z','2030-01-01T00:00:00Z')", "false"),
        ("time_between('2030-01-01T00:00:00Z','2030-01-01T00:00:00Z','2030-01-02T00:00:00Z')", "false"),
        ("time_between('2030-01-01T00:00:01Z','2030-01-01T00:00:00Z','2030-01-02T00:00:00Z')", "true"),
        ("time_between('2030-01-01T00:00:01Z','2030-01-02T00:00:00Z','2030-01-01T00:00:00Z')", "false"),
    ]);
}

#[test]
fn layouts_are_those_of_go_and_whole_numbers_mean_seconds() {
    check(&[
        ("time_parse('1','0')", r#""1970-01-01T00:00:00Z""#),
        ("time_parse('2006','2030')", r#""1970-01-01T00:33:50Z""#),
        ("time_parse('1','x')", r#"error: strconv.ParseInt: parsing "x": invalid syntax"#),
        ("time_parse('1','1.5')", r#"error: strconv.ParseInt: parsing "1.5": invalid syntax"#),
        ("time_parse('-1','-1')", r#""1969-12-31T23:59:59Z""#),
        ("time_parse('+1','+1')", r#""1970-01-01T00:00:01Z""#),
        ("time_parse('01','01')", r#""1970-01-01T00:00:01Z""#),
        ("time_parse('1','99999999999')", r#""5138-11-16T09:46:39Z""#),
        ("time_parse('1','9223372036854775807')", r#""292277026596-12-04T15:30:07Z""#),
        (
            "time_parse('99999999999999999999','1')",
            r#"error: parsing time "1" as "99999999999999999999": cannot parse "1" as "99999999999999999999""#,
        ),
        ("time_parse('1_000','1_000')", r#""0000-01-01T00:00:00Z""#),
        ("time_parse('2006-01-02','2030-05-06')", r#""2030-05-06T00:00:00Z""#),
        ("time_parse('2006-01-02T15:04:05Z07:00','2030-05-06T07:08:09+02:00')", r#""2030-05-06T07:08:09+02:00""#),
        ("time_parse('Mon, 02 Jan 2006 15:04:05 MST','Fri, 22 Jun 2022 17:02:00 EST')", r#""2022-06-22T17:02:00Z""#),
        ("time_parse('','2030')", r#"error: parsing time "2030": extra text: "2030""#),
        ("time_parse('2006-01-02','x')", r#"error: parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#),
        ("time_parse('02 Jan','05 Feb')", r#""0000-02-05T00:00:00Z""#),
        ("time_parse('15:04','05:06')", r#""0000-01-01T05:06:00Z""#),
        (
            "time_parse('1','99999999999999999999')",
            r#"error: strconv.ParseInt: parsing "99999999999999999999": value out of range"#,
        ),
    ]);
}

#[test]
fn truncation_counts_from_the_year_one() {
    check(&[
        ("time_to_cron('2030-01-01T05:06:00Z')", r#""6 5 1 1 2""#),
        ("time_to_cron('2030-01-06T05:06:07.5+02:00')", r#""6 5 6 1 0""#),
        ("time_truncate('2030-01-01T05:06:07Z','1h')", r#""2030-01-01T05:00:00Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','-1h')", r#""2030-01-01T05:06:07Z""#),
        ("time_truncate('2030-01-01T05:06:07.5Z','0s')", r#""2030-01-01T05:06:07Z""#),
        ("time_truncate('2030-01-01T05:06:07.5Z','0')", r#""2030-01-01T05:06:07Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','24h')", r#""2030-01-01T00:00:00Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','168h')", r#""2029-12-31T00:00:00Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','7m')", r#""2030-01-01T05:03:00Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','1000000h')", r#""1940-05-09T08:00:00Z""#),
        ("time_truncate('0001-01-01T00:00:01Z','7m')", r#""0001-01-01T00:00:00Z""#),
        ("time_truncate('0000-01-01T00:00:01Z','7m')", r#""-0001-12-31T23:56:00Z""#),
        ("time_truncate('1969-12-31T23:59:59Z','7m')", r#""1969-12-31T23:59:00Z""#),
        ("time_truncate('2030-01-01T05:06:07.987Z','100ms')", r#""2030-01-01T05:06:07Z""#),
        ("time_truncate('2030-01-01T05:06:07Z','1d')", r#"error: time: unknown unit "d" in duration "1d""#),
        ("time_truncate('2030-01-01T05:06:07Z','x')", r#"error: time: invalid duration "x""#),
    ]);
}

#[test]
fn now_is_given_by_the_runtime() {
    let value = |at: &str, expression: &str| {
        let runtime = FixedRuntime::new(at.parse().unwrap(), 0);
        Expression::compile(expression).unwrap().evaluate(&Value::Null, &runtime).map(|v| v.to_json())
    };
    for (at, expression, want) in [
        ("2030-01-01T00:00:00.5Z", "time_now()", r#""2030-01-01T00:00:00Z""#),
        ("2030-01-01T00:00:00.5Z", "time_since('','2030-01-01T00:00:00Z','')", r#""500ms""#),
        ("1969-12-31T23:59:59.25Z", "time_now_utc()", r#""1969-12-31T23:59:59Z""#),
        ("1969-12-31T23:59:59.25Z", "time_since('','1970-01-01T00:00:00Z','')", r#""-750ms""#),
    ] {
        assert_eq!(value(at, expression).as_deref(), Ok(want), "{at} {expression}");
    }
}
