//! Users' eBPF programs in a program: images behind its slots, and maps in its memory.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use kymo_bytecode::object::NativeFunctions;
use kymo_lane::ObjectPlace;
use kymo_lane::judgement::JudgedTest;
use kymo_schema::definition::EventClass;

use super::Served;
use crate::filters::{FilterCompiler, Placer};
use crate::rule::{RuleOptions, RuleTest};
use crate::session::RecordingSession;
use crate::user_programs::{ObjectContents, SessionInstance, UserObject};

/// A session, a rule of it, and the ID of an event.
pub(super) type ObjectTestPlace = (SessionInstance, String, u16);

/// The test of a rule that is a user's program; else why the program cannot run it.
pub(super) type ObjectTest = Result<JudgedTest, String>;

impl Served {
    /// Puts users' programs into the program, for events that are not switched yet.
    pub(super) fn object_tests(
        &mut self,
        sessions: &[&RecordingSession],
        compiler: &FilterCompiler,
    ) -> HashMap<ObjectTestPlace, ObjectTest> {
        let mut all = HashMap::new();
        for session in sessions.iter().filter(|session| !session.objects.is_empty()) {
            for rule in session.rules.all() {
                let RuleTest::Program { object, .. } = &rule.asks.test else { continue };
                let Some(user) = session.objects.iter().find(|known| known.name == *object) else { continue };
                for (id, class) in self.classes_of(rule) {
                    let place = (session.instance(), rule.name.clone(), id);
                    let test = match self.object_images.get(&place) {
                        Some(test) => test.clone(),
                        None => self.object_test((&session.instance(), user), rule, &class, compiler),
                    };
                    self.object_images.insert(place.clone(), test.clone());
                    all.insert(place, test);
                }
            }
        }
        all
    }

    /// Events of a rule that are not switched yet.
    fn classes_of(&self, rule: &RuleOptions) -> Vec<(u16, Arc<EventClass>)> {
        let class = |id: &u16| Some((*id, Arc::clone(self.program.known().events.get(usize::from(*id))?.as_ref()?)));
        let classes = self.unsettled.iter().filter_map(class);
        classes.filter(|(_, class)| rule.takes_name(&class.full_name())).collect()
    }

    fn object_test(
        &mut self,
        (session, user): (&SessionInstance, &UserObject),
        rule: &RuleOptions,
        class: &EventClass,
        compiler: &FilterCompiler,
    ) -> ObjectTest {
        let RuleTest::Program { program, is_filter, .. } = &rule.asks.test else {
            return Err("it is no user's program".to_owned());
        };
        let place = self.object_place(session, user)?;
        let functions = self.program.lane().object_functions().map_err(|problem: io::Error| problem.to_string())?;
        let functions = NativeFunctions::of_words(functions);
        let mut placer = match self.placer.take() {
            Some(placer) => placer,
            None => Placer::new(&self.program, self.found.user).map_err(|problem| problem.to_string())?,
        };
        let image = user.image((program, *is_filter), class, place, |code| {
            placer.put_code(self.program.lane(), &code.compile(compiler.machine()?, functions)?)
        });
        let said = image.map(|image| placer.put_image(self.program.lane(), &image));
        self.placer = Some(placer);
        match said?.map_err(|problem: io::Error| problem.to_string())? {
            Some((offset, bytes)) => Ok(JudgedTest::Object { offset, bytes }),
            None => Err("a program has no more room for code".to_owned()),
        }
    }

    /// The place of an object's maps.
    fn object_place(&self, session: &SessionInstance, user: &UserObject) -> Result<ObjectPlace, String> {
        let lane = self.program.lane();
        let gone = |problem: io::Error| problem.to_string();
        if !lane.has_objects() {
            let why = "a program has no room for maps: its tracer is older than those, or the files that it writes must be small (ulimit -f)";
            return Err(why.to_owned());
        }
        let place = user.place(session, lane).map_err(gone)?;
        place.ok_or_else(|| {
            format!(
                "a program has no more room for the maps of {}: sessions before have left theirs there, and it has had 63 objects at most",
                user.name
            )
        })
    }

    /// Sessions learn what the maps of their objects have in this program, which is gone or which they leave.
    pub(super) fn leave_objects(&self, sessions: &mut [RecordingSession]) {
        for session in sessions.iter_mut().filter(|session| !session.objects.is_empty()) {
            let mut left = session.told_left;
            let found = self.object_contents(session, &mut left);
            session.told_left = left;
            session.has_contents(found);
        }
    }

    /// Contents of the maps of a session's objects in this program: `left` bounds their bytes, and becomes less by those that are told.
    pub(crate) fn object_contents(&self, session: &RecordingSession, left: &mut usize) -> Vec<ObjectContents> {
        let lane = self.program.lane();
        let instance = session.instance();
        let its = |user: &&UserObject| {
            let is_of = |rule: &RuleOptions| matches!(&rule.asks.test, RuleTest::Program { object, .. } if *object == user.name);
            session.rules.all().iter().filter(|rule| is_of(rule)).any(|rule| {
                let mut tests = self.object_images.iter();
                tests.any(|((of, name, _), test)| *of == instance && *name == rule.name && test.is_ok())
            })
        };
        let mut found = Vec::new();
        for user in session.objects.iter().filter(its) {
            // If the memory is gone, so are the maps: the session says that the program is.
            let Ok(Some(place)) = user.place(&session.instance(), lane) else { continue };
            let Ok((maps, stopped)) = user.contents(place, lane, left) else { continue };
            let (process, pid) = (self.who.identity.name.clone(), self.who.pid.unwrap_or(self.who.identity.pid));
            found.push(ObjectContents { object: user.name.clone(), process, pid, maps, stopped });
        }
        found
    }
}
