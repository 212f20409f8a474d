//! Answers that no analysis gives: every face shows them all the same.

use super::*;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn integer(&mut self) -> i64 {
        match self.below(6) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => -1,
            3 => BEGIN,
            _ => BEGIN + self.below(1 << 30) as i64,
        }
    }

    fn whole(&mut self) -> Bounded<u64> {
        let numbers = [0, 1, 999, 1 << 20, u64::MAX - 1, u64::MAX];
        let mut number = || numbers[self.below(6) as usize] >> self.below(40);
        let mut all = [number(), number(), number()];
        all.sort_unstable();
        if all[0].is_multiple_of(2) { Bounded::exact(all[1]) } else { between(all[0], all[1], all[2]) }
    }

    fn float(&mut self) -> f64 {
        match self.below(8) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => 1e300,
            4 => -1e-300,
            _ => self.below(1000) as f64 / 1000.0,
        }
    }

    fn real(&mut self) -> Bounded<f64> {
        Bounded { value: self.float(), low: self.float(), high: self.float() }
    }

    fn time(&mut self) -> Option<i64> {
        (self.below(4) > 0).then(|| self.integer())
    }

    fn text(&mut self) -> String {
        let pieces =
            ["", "a", "\n", "❤\u{fe0f}", ",", "\x1b[2J", "音楽", "e\u{301}", "\u{202e}", "longer than most names are"];
        (0..self.below(6)).map(|_| pieces[self.below(10) as usize]).collect()
    }

    fn cell(&mut self) -> Cell {
        match self.below(21) {
            0 => Cell::Empty,
            1 => Cell::Unknown,
            2 => Cell::Flag(true),
            3 => Cell::Count(self.whole()),
            4 => Cell::Integer(self.integer()),
            5 => Cell::Number(self.float()),
            6 => Cell::Text(self.text()),
            7 => Cell::Ratio(self.real()),
            8 => Cell::Timestamp(self.integer()),
            9 => Cell::Duration(self.whole()),
            10 => Cell::Size(self.whole()),
            11 => Cell::Bitrate(self.real()),
            12 | 13 => Cell::TimeRange(self.time(), self.time()),
            14 => Cell::Syscall(self.text()),
            15 => Cell::Process { name: Some(self.text()), pid: self.time(), tid: self.time() },
            16 => Cell::Path(self.text()),
            17 => Cell::Fd(self.integer()),
            18 => Cell::Irq { is_hard: self.below(2) == 0, number: self.integer(), name: None },
            19 => Cell::Cpu(self.below(1 << 32) as u32),
            _ => Cell::NetworkInterface(self.text()),
        }
    }

    fn table(&mut self) -> Table {
        let classes = [
            CellClass::Mixed,
            CellClass::Process,
            CellClass::TimeRange,
            CellClass::Irq,
            CellClass::Duration,
            CellClass::Text,
        ];
        let width = self.below(6) as usize;
        let columns = (0..width).map(|_| Column::new("column", self.text(), classes[self.below(6) as usize]));
        let mut table = Table::new("table", "", columns.collect());
        table.title = self.text();
        table.span_ns = self.time().zip(self.time());
        table.rows = (0..self.below(30)).map(|_| (0..width).map(|_| self.cell()).collect()).collect();
        table.omitted = self.below(2);
        // Columns may lack, too.
        let mut column = || self.below(7) as usize;
        let (one, two, three) = (column(), column(), column());
        table.plot = match self.below(6) {
            0 => None,
            5 => Some(Plot::Sums { values: [one, two] }),
            1 => Some(Plot::Bars { value: one }),
            2 => Some(Plot::Histogram { low: one, high: two, count: three }),
            _ => Some(Plot::Course { time: one, series: (two > 3).then_some(two), value: three }),
        };
        table
    }
}

#[test]
fn every_face_shows_anything() {
    let mut dice = Dice(1);
    let report = Report::default();
    for case in 0..2000 {
        let answer = Answer { tables: (0..dice.below(3)).map(|_| dice.table()).collect() };
        let tables: Vec<&Table> = answer.tables.iter().collect();
        let width = (dice.below(4) > 0).then(|| 20 + dice.below(200) as usize);
        let screen = Screen { width, colours: dice.below(2) == 0, unicode: dice.below(2) == 0 };
        let shown = text(&answer.tables, screen);
        let is_harmless = |character: char| character == '\n' || character == '\x1b' || !character.is_control();
        assert!(
            shown.chars().all(is_harmless) && (screen.colours || !shown.contains('\x1b')),
            "case {case}: {shown:?}"
        );
        let json = written(|out| json::write_answer(&tables, &report, out));
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "case {case}: {json}");
        let lami = written(|out| lami::write(&tables, &Answer::default(), &report, out));
        let lami = serde_json::from_str(&lami).expect("it is JSON");
        assert_eq!(schema::problems(&lami, "results"), Vec::<String>::new(), "case {case}");
        written(|out| csv::write(&tables, out));
    }
}
