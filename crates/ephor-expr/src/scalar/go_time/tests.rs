//! Times against Go's own answers, and safety on any text.

use proptest::prelude::*;

use super::super::duration::Duration;
use super::*;

fn t(text: &str) -> Time {
    parse_rfc3339(text).unwrap()
}

fn read(layout: &str, text: &str) -> String {
    parse_layout(layout, text).map_or_else(|e| e.to_string(), |time| format_rfc3339(&time))
}

#[test]
fn layouts_read_what_go_reads() {
    for (layout, text, expected) in [
        ("2006-01", "2030-05", "2030-05-01T00:00:00Z"),
        ("2006-01-02", "2024-02-29", "2024-02-29T00:00:00Z"),
        ("15:04", "7:08", "0000-01-01T07:08:00Z"),
        ("Mon Jan _2 15:04:05 2006", "tue MAY  6 01:02:03 2031", "2031-05-06T01:02:03Z"),
        ("Monday, 02-Jan-06 15:04:05 MST", "Sunday, 06-May-69 01:02:03 CEST", "1969-05-06T01:02:03Z"),
        ("02 Jan 06 15:04 -0700", "06 May 31 01:02 -0730", "2031-05-06T01:02:00-07:30"),
        ("Jan 2, 2006 at 3:04pm (MST)", "Feb 3, 2013 at 7:54pm (UTC)", "2013-02-03T19:54:00Z"),
        ("Jan 2, 2006 at 3:04pm (MST)", "Feb 3, 2013 at 12:54am (GMT+3)", "2013-02-03T03:54:00+03:00"),
        ("January 2 2006 03:04 PM", "February 3 2013 12:05 PM", "2013-02-03T12:05:00Z"),
        ("2006-002", "2024-366", "2024-12-31T00:00:00Z"),
        ("2006 __2", "2023  60", "2023-03-01T00:00:00Z"),
        ("20060102150405", "20300506070809", "2030-05-06T07:08:09Z"),
        ("2006-01-02 15:04:05.000", "2030-05-06 07:08:09,250", "2030-05-06T07:08:09Z"),
        ("2006-01-02T15:04:05Z07:00:00", "2030-05-06T07:08:09+01:00:30", "2030-05-06T07:08:09+01:00"),
        ("_2006", "_2030", "2030-01-01T00:00:00Z"),
        ("Januar 2", "Januar 7", "0000-01-07T00:00:00Z"),
        ("2006  x", "2030 x", "2030-01-01T00:00:00Z"),
        ("", "", "0000-01-01T00:00:00Z"),
        ("2006-01-02", "2030-5-06", "parsing time \"2030-5-06\" as \"2006-01-02\": cannot parse \"5-06\" as \"01\""),
        ("2006-01-02", "2030-13-06", "parsing time \"2030-13-06\": month out of range"),
        ("2006-01-02", "2030-02-29", "parsing time \"2030-02-29\": day out of range"),
        ("2006-01-02", "2030-01-02T", "parsing time \"2030-01-02T\": extra text: \"T\""),
        ("2006-01-02", "é", "parsing time \"\\xc3\\xa9\" as \"2006-01-02\": cannot parse \"\\xc3\\xa9\" as \"2006\""),
        ("2006-002", "2023-366", "parsing time \"2023-366\": day-of-year out of range"),
        ("01 2006-002", "02 2023-001", "parsing time \"02 2023-001\": day-of-year does not match month"),
        ("-0700", "+2500", "parsing time \"+2500\": time zone offset hour out of range"),
    ] {
        assert_eq!(read(layout, text), expected, "{layout} {text}");
    }
}

#[test]
fn rfc3339_is_as_lenient_as_go() {
    for (text, expected) in [
        ("2030-01-01T00:00:00Z", Some("2030-01-01T00:00:00Z")),
        ("2030-01-01T00:00:00.5Z", Some("2030-01-01T00:00:00Z")),
        ("2030-01-01T00:00:00,123456789123Z", Some("2030-01-01T00:00:00Z")),
        ("2030-01-01T1:00:00+01:00", Some("2030-01-01T01:00:00+01:00")),
        ("2030-01-01T00:00:00+24:60", Some("2030-01-01T00:00:00+25:00")),
        ("0000-02-29T00:00:00Z", Some("0000-02-29T00:00:00Z")),
        ("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z")),
        ("2030-01-01T24:00:00Z", None),
        ("2030-01-01T00:00:60Z", None),
        ("2030-01-01t00:00:00z", None),
        ("2030-01-01 00:00:00Z", None),
        ("2030-01-01T00:00:00", None),
        ("2030-01-01", None),
        ("", None),
    ] {
        let read = parse_rfc3339(text).ok().map(|time| format_rfc3339(&time));
        assert_eq!(read.as_deref(), expected, "{text}");
    }
}

#[test]
fn instants_are_compared_and_counted() {
    let (a, b) = (t("2030-01-01T01:00:00+01:00"), t("2030-01-01T00:00:00Z"));
    assert_eq!(a, b);
    assert_eq!(format_rfc3339(&a.to_utc()), "2030-01-01T00:00:00Z");
    assert_eq!(t("2030-01-01T00:00:00.5Z").since(&t("2030-01-01T00:00:01Z")).to_string(), "-500ms");
    assert_eq!(t("9999-01-01T00:00:00Z").since(&t("0001-01-01T00:00:00Z")), Duration(i64::MAX));
    let later = |text, d: &str| t(text).add(Duration::parse(d).unwrap()).map(|time| format_rfc3339(&time));
    assert_eq!(later("2030-01-01T00:00:00Z", "90m").as_deref(), Some("2030-01-01T01:30:00Z"));
    assert_eq!(later("2030-01-01T00:00:00.5Z", "1ms").as_deref(), Some("2030-01-01T00:00:00Z"));
    assert_eq!(later("2024-02-28T12:00:00+02:00", "24h").as_deref(), Some("2024-02-29T12:00:00+02:00"));
    assert_eq!(Time::from_unix(2030, 0).civil().minute, 33);
    assert_eq!(Time::from_unix(i64::MAX, 0).add(Duration(i64::MAX)), None);
}

#[test]
fn truncation_counts_from_the_year_one() {
    for (text, duration, expected) in [
        ("2030-01-01T05:06:07Z", "1h", "2030-01-01T05:00:00Z"),
        ("2030-01-01T05:06:07+02:30", "1h", "2030-01-01T04:30:00+02:30"),
        // A Monday: the first day of the year 1 was one.
        ("2030-01-03T05:06:07Z", "168h", "2029-12-31T00:00:00Z"),
        ("2030-01-01T05:06:07Z", "0s", "2030-01-01T05:06:07Z"),
        ("2030-01-01T05:06:07Z", "-1h", "2030-01-01T05:06:07Z"),
        ("0000-06-01T05:06:07Z", "1h", "0000-06-01T05:00:00Z"),
    ] {
        assert_eq!(format_rfc3339(&t(text).truncate(Duration::parse(duration).unwrap())), expected, "{text}");
    }
}

#[test]
fn the_calendar_is_read_at_the_offset() {
    let civil = t("2030-01-06T05:06:00+02:00").civil();
    let parts = (civil.minute, civil.hour, civil.day, civil.month, civil.weekday);
    assert_eq!(parts, (6, 5, 6, 1, 0));
    assert_eq!(t("2030-01-01T00:00:00Z").civil().weekday, 2);
    assert_eq!(t("1969-12-31T23:59:59Z").civil().weekday, 3);
}

proptest! {
    #[test]
    fn printing_and_reading_agree(seconds in -62_167_219_200i64..253_402_300_800, minutes in -1439i32..1440) {
        let time = Time::from_unix(seconds, 0).at_offset(minutes * 60);
        prop_assume!((0..10_000).contains(&time.civil().year));
        let read = parse_rfc3339(&format_rfc3339(&time)).unwrap();
        prop_assert_eq!(read, time);
        prop_assert_eq!(read.offset_seconds(), time.offset_seconds());
        prop_assert_eq!(Time::from_civil(&time.civil(), 0, minutes * 60), Some(time));
    }

    #[test]
    fn any_instant_is_safe(seconds: i64, offset: i32, duration: i64, other: i64) {
        let time = Time::from_unix(seconds, 999_999_999).at_offset(offset);
        let _ = (format_rfc3339(&time), time.add(Duration(duration)), time.truncate(Duration(duration)));
        let _ = time.since(&Time::from_unix(other, 0));
    }

    #[test]
    fn any_text_is_safe(
        layout in r"(2006|06|0?1|Jan(uary)?|Mon(day)?|[_0]?2|__2|002|15|0?3|0?4|0?5|[.,][09]{1,10}|PM|pm|MST|[-Z]07(:?00){0,2}|[ /é]){0,8}",
        text in r"([0-9]{1,4}|Jan|may|[-+Z:., /é]|PM|UTC|GMT){0,10}",
    ) {
        let _ = parse_layout(&layout, &text);
    }
}
