//! Counts beside a recording, in words: as `kymo record --watch` takes them.
//!
//! ```text
//! slow: syscalls when ret < 0 --by name,comm --hist took
//! name  question              columns
//! ```

use kymo_filter::nearest;

use super::WatchQuestion;
use crate::rule::words::name;
use crate::watch_options::{WatchColumns, WatchOptions};
use crate::words::{OptionWords, PlacedWord, WordsProblem, WordsProblemKind, free_name};

const OPTIONS: [&str; 4] = ["by", "sum", "hist", "rows"];
const EXPECTED: &str = "`--by FIELD[,FIELD]`, `--sum FIELD`, `--hist FIELD`, `--rows N` or the end";

impl WatchOptions {
    /// Questions in words: `[NAME:] QUESTION [--by FIELD[,FIELD]] [--sum FIELD] [--hist FIELD] [--rows N]`. Those without a name get
    /// one that no other has: that of their events.
    ///
    /// # Errors
    ///
    /// The problem, with its place underlined.
    ///
    /// ```
    /// use kymo_recorder::watch::WatchOptions;
    /// let all = WatchOptions::parse_all(&["syscalls --by name --hist took".to_owned()]).unwrap();
    /// assert_eq!((&all[0].name[..], &all[0].question[..]), ("syscalls", "syscalls"));
    /// assert_eq!(all[0].columns.by, ["name"]);
    /// ```
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, String> {
        let mut all: Vec<Self> = Vec::new();
        for text in texts {
            let rendered = |problem: WordsProblem| problem.render(text).trim_end().to_owned();
            let mut words = OptionWords::of(text);
            let named = name(&mut words).map_err(rendered)?;
            let begin = words.at;
            let end = question_end(text, begin);
            let question = text[begin..end].trim().to_owned();
            let parsed = WatchQuestion::parse(&question).map_err(|problem| problem.trim_end().to_owned())?;
            words.at = end;
            let columns = columns(&mut words).map_err(rendered)?;
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            let (wanted, place) = match named {
                Some(PlacedWord { text, span }) => (text.to_owned(), Some(span)),
                None => (parsed.name(), None),
            };
            let name = free_name(&wanted, place, &known).map_err(rendered)?;
            all.push(Self { name, words: text[begin..].trim().to_owned(), question, columns });
        }
        Ok(all)
    }
}

impl WatchOptions {
    /// A question alone, with the name of its events.
    #[must_use]
    pub fn of(text: &str, question: &WatchQuestion, columns: &WatchColumns) -> Self {
        let WatchColumns { by, sum, histogram, rows } = columns;
        let by = (!by.is_empty()).then(|| by.join(","));
        let rows = rows.map(|rows| rows.to_string());
        let options = [("by", &by), ("sum", sum), ("hist", histogram), ("rows", &rows)];
        let written = options.iter().filter_map(|(name, value)| Some(format!(" --{name} {}", value.as_ref()?)));
        let words = written.fold(text.to_owned(), |words, option| words + &option);
        Self { name: question.name(), words, question: text.to_owned(), columns: columns.clone() }
    }
}

/// Where options begin behind a question: at a word that begins with `--`, outside of texts in quotes.
fn question_end(text: &str, begin: usize) -> usize {
    let (mut is_quoted, mut is_escaped, mut before) = (false, false, ' ');
    for (at, letter) in text.char_indices().filter(|(at, _)| *at >= begin) {
        let rest = text[at..].strip_prefix("--");
        let begins = rest.is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_alphabetic()));
        if begins && !is_quoted && before.is_whitespace() {
            return at;
        }
        if letter == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = letter == '\\' && !is_escaped;
        before = letter;
    }
    text.len()
}

fn columns(words: &mut OptionWords<'_>) -> Result<WatchColumns, WordsProblem> {
    let mut columns = WatchColumns::default();
    while let Some(word) = words.take() {
        let Some(option) = word.text.strip_prefix("--") else {
            return Err(words.expected(EXPECTED, Some(&word), None));
        };
        let (option, value) = match option.split_once('=') {
            Some((option, value)) => (option, PlacedWord { text: value, span: word.span.clone() }),
            None if OPTIONS.contains(&option) => {
                let missing = || words.expected("a field, or a number of rows", None, None);
                (option, words.peek().ok_or_else(missing)?)
            }
            None => (option, word.clone()),
        };
        if value.span != word.span {
            words.take();
        }
        let field = || Some(value.text.to_owned()).filter(|text| !text.is_empty());
        let is_again = match option {
            "by" => {
                let fields = value.text.split(',').filter(|field| !field.is_empty()).map(str::to_owned);
                columns.by.extend(fields);
                false
            }
            "sum" => std::mem::replace(&mut columns.sum, field()).is_some(),
            "hist" => std::mem::replace(&mut columns.histogram, field()).is_some(),
            "rows" => {
                let rows = value.text.parse().ok().filter(|rows| *rows > 0);
                let rows = rows.ok_or_else(|| words.expected("a number of rows", Some(&value), None))?;
                columns.rows.replace(rows).is_some()
            }
            other => {
                let help = nearest(other, OPTIONS).first().map(|near| format!("did you mean `--{near}`?"));
                return Err(words.expected(EXPECTED, Some(&word), help));
            }
        };
        if is_again {
            return Err(word.problem(WordsProblemKind::Twice(word.text.to_owned())));
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[&str]) -> String {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        let shown = |one: &WatchOptions| {
            let WatchColumns { by, sum, histogram, rows } = &one.columns;
            format!("{} | {} | {by:?} {sum:?} {histogram:?} {rows:?}\n", one.name, one.question)
        };
        match WatchOptions::parse_all(&texts) {
            Ok(all) => all.iter().map(shown).collect(),
            Err(problem) => problem.lines().map(|line| format!("{}\n", line.trim_end())).collect(),
        }
    }

    #[test]
    fn questions_have_options_behind_them() {
        let all: [&[&str]; 10] = [
            &[
                "syscalls --by name --hist took",
                "syscalls",
                "calls: sched:sched_switch when a - 1 > -b --sum=x --rows 9",
            ],
            &["sched_switch when comm == \"a --by b\" --by comm,tid --by cpu_id"],
            &["a: x", "a: y"],
            &["x --bye y"],
            &["x --by"],
            &["x --rows many"],
            &["x --sum a --sum b"],
            &["x --by a b"],
            &["a b: x"],
            &["x whn y"],
        ];
        let text: String = all.iter().map(|texts| format!("--- {}\n{}", texts.join(" / "), shown(texts))).collect();
        expect_test::expect![[r#"
            --- syscalls --by name --hist took / syscalls / calls: sched:sched_switch when a - 1 > -b --sum=x --rows 9
            syscalls | syscalls | ["name"] None Some("took") None
            syscalls-2 | syscalls | [] None None None
            calls | sched:sched_switch when a - 1 > -b | [] Some("x") None Some(9)
            --- sched_switch when comm == "a --by b" --by comm,tid --by cpu_id
            sched_switch | sched_switch when comm == "a --by b" | ["comm", "tid", "cpu_id"] None None None
            --- a: x / a: y
            another one is called `a`
                a: y
                ^
            help: names differ
            --- x --bye y
            expected `--by FIELD[,FIELD]`, `--sum FIELD`, `--hist FIELD`, `--rows N` or the end, found `--bye`
                x --bye y
                  ^^^^^
            help: did you mean `--by`?
            --- x --by
            expected a field, or a number of rows, found the end
                x --by
                      ^
            --- x --rows many
            expected a number of rows, found `many`
                x --rows many
                         ^^^^
            --- x --sum a --sum b
            `--sum` stands here for the second time
                x --sum a --sum b
                          ^^^^^
            help: leave one out
            --- x --by a b
            expected `--by FIELD[,FIELD]`, `--sum FIELD`, `--hist FIELD`, `--rows N` or the end, found `b`
                x --by a b
                         ^
            --- a b: x
            expected `over TIME`, `since EVENT`, `by FIELD`, `when EXPRESSION` or the end, found `b:`
                a b: x
                  ^^
            help: did you mean `by`?
            --- x whn y
            expected `over TIME`, `since EVENT`, `by FIELD`, `when EXPRESSION` or the end, found `whn`
                x whn y
                  ^^^
            help: did you mean `when`?
        "#]]
        .assert_eq(&text);
    }
}
