use super::*;

fn fault(text: &str, grammar: Grammar) -> Option<String> {
    Schedule::parse(text, grammar).err()
}

#[test]
fn schedules_of_cleanup_policies_are_crons() {
    for good in ["*/5 * * * *", "0 0 1,15 * MON-fri", "TZ=UTC 1-59/2 0 ? jan *", "@daily", "@every 1h30m"] {
        assert_eq!(fault(good, Grammar::Minutes), None, "{good}");
    }
    for (bad, want) in [
        ("* * * *", "expected 5 fields, found 4"),
        ("* * * * * *", "expected 5 fields, found 6"),
        ("60 * * * *", "`60` is no minute: expected 0 to 59"),
        ("* * * * 7", "`7` is no day of the week: expected 0 to 6"),
        ("* * L * *", "`L` is no day of the month: expected 1 to 31"),
        ("* * * january *", "`january` is no month: expected 1 to 12"),
        ("5-1 * * * *", "`5-1` ends before it begins"),
        ("*/0 * * * *", "the step of `*/0` is not a positive number"),
        ("@every day", "`day` is no duration"),
        ("@every -1h", "`-1h` is no duration"),
        ("TZ=Nowhere * * * * *", "`Nowhere` is no time zone"),
        ("@dayly", "`@dayly` is not one of @yearly, @annually, @monthly, @weekly, @daily, @hourly, @midnight"),
        ("", "expected 5 fields, found 0"),
    ] {
        assert_eq!(fault(bad, Grammar::Minutes).as_deref(), Some(want), "{bad}");
    }
}

#[test]
fn schedules_of_deleting_policies_have_seconds_and_years() {
    for good in [
        "*/1 * * * *",
        "0 0 L * 7",
        "0 0 LW * *",
        "0 0 15w january Sunday,5L,mon#2",
        "0 0 1 1 * 2030-2040/2",
        "*/10 0 0 1 1 ? 2099",
        "@hourly",
    ] {
        assert_eq!(fault(good, Grammar::Seconds), None, "{good}");
    }
    for (bad, want) in [
        ("* * * *", "expected 5 to 7 fields, found 4"),
        ("* * * * * * * *", "expected 5 to 7 fields, found 8"),
        ("0 0 1 1 * 1969", "`1969` is no year: expected 1970 to 2099"),
        ("60 0 0 1 1 * *", "`60` is no second: expected 0 to 59"),
        ("0 24 * * *", "`24` is no hour: expected 0 to 23"),
        ("0 0 32W * *", "`32W` is no day of the month: expected 1 to 31"),
        ("0 0 * * 5#6", "`5#6` is no day of the week: expected 0 to 7"),
        ("@every 5m", "`@every 5m` is not one of @yearly, @annually, @monthly, @weekly, @daily, @hourly"),
        ("TZ=UTC * * * *", "`TZ=UTC` is no minute: expected 0 to 59"),
    ] {
        assert_eq!(fault(bad, Grammar::Seconds).as_deref(), Some(want), "{bad}");
    }
}

/// The next times of a schedule after a moment, as text.
fn times(text: &str, grammar: Grammar, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(text, grammar).unwrap();
    let mut at: Timestamp = after.parse().unwrap();
    let mut found = Vec::new();
    while let Some(next) = schedule.next(at).filter(|_| found.len() < count) {
        assert!(next > at);
        found.push(next.to_string());
        at = next;
    }
    found
}

#[test]
fn the_next_time_is_the_first_at_which_all_fields_fit() {
    for (text, after, want) in [
        ("*/1 * * * *", "2026-11-22T16:19:04.5Z", &["2026-11-22T16:20:00Z", "2026-11-22T16:21:00Z"][..]),
        ("* * * * *", "2026-11-22T16:20:00Z", &["2026-11-22T16:21:00Z"]),
        ("5/20 3 * * *", "2026-01-01T00:00:00Z", &["2026-01-01T03:05:00Z", "2026-01-01T03:25:00Z"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        // Either the 13th or a Friday, since both are restricted.
        ("0 0 13 * 5", "2026-03-01T00:00:00Z", &["2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"]),
        // A step does restrict.
        ("0 0 */20 * 1", "2026-03-01T00:00:00Z", &["2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"]),
        ("@weekly", "2026-11-22T16:00:00Z", &["2026-11-29T00:00:00Z"]),
        ("@yearly", "2026-11-22T16:00:00Z", &["2027-01-01T00:00:00Z"]),
        ("@every 90m", "2026-11-22T16:00:00.7Z", &["2026-11-22T17:30:00Z", "2026-11-22T19:00:00Z"]),
        ("@every 1ms", "2026-11-22T16:00:00Z", &["2026-11-22T16:00:01Z"]),
    ] {
        assert_eq!(times(text, Grammar::Minutes, after, want.len()), want, "{text}");
    }
}

#[test]
fn days_may_depend_on_the_month() {
    for (text, after, want) in [
        ("0 0 L * *", "2026-02-01T00:00:00Z", &["2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"][..]),
        // 31 January 2026 is a Saturday, 28 February too.
        ("0 0 LW * *", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
        // 1 February 2026 is a Sunday, 1 August a Saturday.
        ("0 0 1W 2,8 *", "2026-01-01T00:00:00Z", &["2026-02-02T00:00:00Z", "2026-08-03T00:00:00Z"]),
        ("0 0 ? * 5L", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
        ("0 0 ? * mon#2", "2026-01-01T00:00:00Z", &["2026-01-12T00:00:00Z", "2026-02-09T00:00:00Z"]),
        ("0 0 ? * 6-7", "2026-01-01T00:00:00Z", &["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"]),
        ("30/20 0 0 1 1 ? 2030", "2026-01-01T00:00:00Z", &["2030-01-01T00:00:30Z", "2030-01-01T00:00:50Z"]),
    ] {
        assert_eq!(times(text, Grammar::Seconds, after, want.len()), want, "{text}");
    }
}

#[test]
fn what_never_comes_is_known_soon() {
    for (text, grammar) in [
        ("0 0 31 2 *", Grammar::Minutes),
        ("0 0 30,31 feb *", Grammar::Minutes),
        ("0 0 1 1 * 1999", Grammar::Seconds),
        ("0 0 31W 2,4,6,9,11 *", Grammar::Seconds),
    ] {
        assert_eq!(times(text, grammar, "2026-01-01T00:00:00Z", 1), [""; 0], "{text}");
    }
    assert_eq!(times("* * * * *", Grammar::Minutes, "2099-12-31T23:59:00Z", 1), [""; 0]);
}

/// Clocks in Berlin go from 2:00 to 3:00 on 29 March 2026, and from 3:00 back to 2:00 on 25 October.
#[test]
fn summer_time_leaves_out_what_does_not_exist_and_repeats_what_does() {
    for (text, after, want) in [
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T00:00:00Z", &["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"][..]),
        ("TZ=Europe/Berlin 0 3 * * *", "2026-03-29T00:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]),
        ("CRON_TZ=Europe/Berlin 0 * * * *", "2026-10-25T00:00:00Z", &["2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]),
        // Lord Howe moves by half an hour; Beirut has no midnight on 29 March.
        ("TZ=Australia/Lord_Howe 15 2 4 10 *", "2026-01-01T00:00:00Z", &["2027-10-03T15:15:00Z"]),
        ("TZ=Asia/Beirut 0 0 29 3 *", "2026-01-01T00:00:00Z", &["2027-03-28T21:00:00Z"]),
    ] {
        assert_eq!(times(text, Grammar::Minutes, after, want.len()), want, "{text}");
    }
}

#[test]
fn what_was_missed_is_due_once_and_the_future_stops_nothing() {
    let schedule = Schedule::parse("0 * * * *", Grammar::Minutes).unwrap();
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let (created, now) = (at("2026-01-01T00:30:00Z"), at("2026-01-01T09:15:00Z"));
    for (last, want) in [
        (None, "2026-01-01T01:00:00Z"),
        (Some("2026-01-01T04:00:00Z"), "2026-01-01T05:00:00Z"),
        (Some("2026-01-01T09:00:00Z"), "2026-01-01T10:00:00Z"),
        (Some("2036-01-01T09:00:00Z"), "2026-01-01T10:00:00Z"),
    ] {
        assert_eq!(schedule.next(base(last.map(at), created, now)), Some(at(want)), "{last:?}");
    }
}
