//! Mappings: text in, text out.

use expect_test::{Expect, expect};

use super::*;

fn check(text: &str, expected: &Expect) {
    let shown = match RoleMapping::parse(text) {
        Ok(mapping) => mapping.to_string(),
        Err(errors) => errors.render("my.toml"),
    };
    expected.assert_eq(&shown);
}

/// A mapping has the rules of its text, with the meaning of roles.
#[test]
fn a_mapping_is_written_as_it_is_read() {
    let text = r#"
        name = "my-rtos"
        when = 'env.tracer_name == "my-rtos"'
        [context]
        cpu = "packet.cpu_id"
        tid = ["$ctx.tid", "$ctx.vtid"]
        [[thread_switch]]
        event = "task_*_resumed"
        when = "from != to"
        prev_tid = "from"
        next_tid = ["to", { value = -1 }]
        next_comm = { capture = 1 }
        comm = { value = "it's \"me\"" }
        [[begin]]
        event = ["a", "b"]
        [[thread_switch]]
        event = "other"
        prev_tid = "`odd name`[0]"
        next_tid = { value = 0x10 }
    "#;
    check(
        text,
        &expect![[r#"
            name = "my-rtos"
            # Of which traces.
            when = 'env.tracer_name == "my-rtos"'

            # Who was there when an event happened.
            [context]
            cpu = "packet.cpu_id"
            tid = ["$ctx.tid", "$ctx.vtid"]

            # A CPU stops running one thread and runs another.
            [[thread_switch]]
            event = "task_*_resumed"
            when = "from != to"
            prev_tid = "from"
            next_tid = ["to", { value = -1 }]
            next_comm = { capture = 1 }
            comm = { value = """it's "me"""" }

            # Something begins; its end has the same key.
            [[begin]]
            event = ["a", "b"]

            # A CPU stops running one thread and runs another.
            [[thread_switch]]
            event = "other"
            prev_tid = "`odd name`[0]"
            next_tid = { value = 16 }
        "#]],
    );
    let once = RoleMapping::parse(text).unwrap().to_string();
    assert_eq!(RoleMapping::parse(&once).unwrap().to_string(), once);
}

/// All mistakes are reported at once, with suggestions.
#[test]
fn mistakes_are_told_with_their_place() {
    check(
        r#"
when = "1 +"
names = "x"
[context]
cpus = "packet.cpu_id"
[[thread_swich]]
event = "x"
[[thread_switch]]
events = "x"
prev_tid = "from to"
next_tid = { value = 1.5 }
next_prio = 3
prev_prio = { constant = 3 }
[[irq_entry]]
event = ["irq_*", 3]
irq_name = { capture = 2 }
[begin]
event = "x"
key = { value = 9223372036854775808 }
"#,
        &expect![[r#"
            my.toml:1:1: the mapping has no `name`
            my.toml:2:12: found the end, expected a value: a field, a number, a text, or `(`
            my.toml:3:1: there is no role `names`; did you mean `name`?
            my.toml:5:1: context has no field `cpus`; did you mean `cpu`?
            my.toml:6:3: there is no role `thread_swich`; did you mean `thread_switch`?
            my.toml:8:1: thread_switch has no `event`: the name of its events, or a pattern of it
            my.toml:9:1: thread_switch has no field `events`; did you mean `event`?
            my.toml:10:18: found `to`, expected `.`, `[` or the end of the name
            my.toml:11:22: found a real number, expected an integer or a text
            my.toml:12:13: found an integer, expected a field as a text, `{ value = 3 }`, `{ capture = 1 }`, or a list of these, of which the first that exists counts
            my.toml:13:15: `constant` says nothing of a field; `value` and `capture` do
            my.toml:14:1: irq_entry needs `irq`: without it an event has not the role
            my.toml:15:9: there is no star number 2: patterns of this event have 1
            my.toml:15:19: found an integer, expected a text
            my.toml:19:17: 9223372036854775808 is above 9223372036854775807, the highest integer
        "#]],
    );
    check(
        "name = \n",
        &expect![[r#"
        my.toml:1:8: this is no TOML: string values must be quoted, expected literal string
    "#]],
    );
    check(
        "name = 'x'\nbegin = 3\nend = ['x']",
        &expect![[r#"
        my.toml:2:9: found an integer, expected a table: `[[role]]` with its keys
        my.toml:3:8: found a text, expected a table: `[[role]]` with its keys
    "#]],
    );
}

/// Mappings that are built in can be written and read again.
#[test]
fn built_in_mappings_are_read() {
    for mapping in RoleMapping::built_in() {
        let written = mapping.to_string();
        let again = RoleMapping::parse(&written).unwrap_or_else(|errors| panic!("{}", errors.render(&mapping.name)));
        assert_eq!(again.to_string(), written);
        assert_eq!(again.sections.len(), mapping.sections.len());
    }
}
