//! Schemas, as people use them: the command, and programs in C, C++ and Rust that are built with CMake, Meson and Cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;

use crate::recorded::Place;
use crate::{c_programs, rust_example};

const SHOP: &str = "\
schema shop 1;
subsystem cache {
    event fetch_begin { u64 id, text page },
    event fetch_end { u64 id, u32 size unit \"bytes\" },
    pair fetch { begin fetch_begin, end fetch_end, key id },
};
";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/schema").join(name).canonicalize().expect("it is there")
}

fn write(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path(name), text).expect("there is room");
}

#[test]
fn files_are_made_and_stay_if_nothing_changed() {
    let place = Place::new();
    write(&place, "shop.kymo", SHOP);
    let made = "gen/shop_events.h\ngen/shop_events.rs\ngen/shop_schema.json\ngen/shop.tsdl\ngen/shop.ctf2.json\ngen/shop_roles.toml\ngen/shop.md\n";
    assert_eq!(place.says(&["schema", "build", "shop.kymo", "--output", "gen"], 0), made);
    let again = place.says(&["schema", "build", "shop.kymo", "--output", "gen"], 0);
    assert_eq!(again, made.replace('\n', " (unchanged)\n"));
    let header = place.says(&["schema", "build", "shop.kymo", "--only", "c", "--output", "-"], 0);
    assert_eq!(header, std::fs::read_to_string(place.path("gen/shop_events.h")).expect("it is made"));
    place.says(&["schema", "build", "shop.kymo", "--output", "-"], 2);
    // Readers of mappings and of metadata take what is made.
    let metadata = std::fs::read_to_string(place.path("gen/shop.tsdl")).expect("it is made");
    std::fs::create_dir(place.path("empty")).expect("there is room");
    write(&place, "empty/metadata", &metadata);
    assert!(place.says(&["info", "empty"], 0).contains("2 event classes"));
    assert!(place.says(&["roles", "--roles", "gen/shop_roles.toml", "empty"], 0).contains("cache:fetch_begin"));
    write(&place, "wrong.kymo", "schema a 1;\nsubsystem s { event e { u33 x } };");
    place.says(&["schema", "build", "wrong.kymo", "--output", "other"], 1);
    assert!(!place.path("other").exists(), "nothing is made of a schema with mistakes");
}

#[test]
fn mistakes_and_changes_are_told() {
    let place = Place::new();
    write(&place, "shop.kymo", SHOP);
    write(&place, "new.kymo", &SHOP.replace("u32 size unit \"bytes\"", "u64 size").replace("shop 1", "shop 2"));
    write(&place, "wrong.kymo", "schema a 1;\nsubsystem s { event e { u33 x } };");
    expect![[r#"
        shop.kymo: schema shop, version 1: 2 events of 1 subsystem, 0 enumerations; no mistakes
        wrong.kymo:2:25: error: there is no type `u33`
          help: types are u8 to u64, i8 to i64, x8 to x64 (hexadecimal), pointer, f32, f64, bool, text, and enumerations that stand before
        wrong.kymo: has mistakes
    "#]].assert_eq(&place.says(&["schema", "check", "shop.kymo", "wrong.kymo"], 1));
    expect![[r#"
        breaking: cache:fetch_end.size: its unit is none instead of bytes
        doubtful: cache:fetch_end.size: its type is u64 instead of u32: programs in Rust do not compile until they are changed
        shop.kymo to new.kymo: something breaks: see above
    "#]]
    .assert_eq(&place.says(&["schema", "diff", "shop.kymo", "new.kymo"], 1));
    expect![[r#"
        shop.kymo to shop.kymo: nothing changes
    "#]]
    .assert_eq(&place.says(&["schema", "diff", "shop.kymo", "shop.kymo"], 0));
    place.says(&["schema", "diff", "shop.kymo", "wrong.kymo"], 2);
    let json = place.json(&["schema", "diff", "--json", "shop.kymo", "shop.kymo"]);
    assert_eq!(json, serde_json::json!({"breaks": false, "changes": []}));
    let json = place.json(&["schema", "check", "--json", "shop.kymo"]);
    assert_eq!(json["is_good"], true);
    write(&place, "messy.kymo", &SHOP.replace("    event", "event"));
    assert_eq!(place.says(&["schema", "format", "--check", "messy.kymo", "shop.kymo"], 1), "messy.kymo: not tidy\n");
    assert_eq!(place.says(&["schema", "format", "messy.kymo", "shop.kymo"], 0), "messy.kymo\n");
    assert_eq!(std::fs::read_to_string(place.path("messy.kymo")).expect("it is there"), SHOP);
    assert_eq!(place.says(&["schema", "format", "--check", &example("kitchen.kymo").display().to_string()], 0), "");
}

/// Runs a command with kymo in its path and libkymo where pkg-config looks for it.
fn does(place: &Place, installed: &Path, words: &[&str]) {
    let kymo = Path::new(env!("CARGO_BIN_EXE_kymo")).parent().expect("it is in a folder");
    let path = std::env::join_paths(
        [kymo.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(place.path("")).env("PATH", path.expect("paths have no colons"));
    let output = command.env("PKG_CONFIG_PATH", installed.join("lib/pkgconfig")).output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&text));
}

fn is_there(command: &str) -> bool {
    let is_there = Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("NOT TESTED: {command} is not installed");
    }
    is_there
}

/// Records a kitchen: with nothing configured, `pairs` knows how long cooking takes, `flows` how orders go, and the counter and
/// the states are those of the schema.
fn records(place: &Place, program: &Path, group: &str) {
    let (trace, program) = (format!("trace-{group}"), program.display().to_string());
    place.says(&["record", "--output", &trace, "--", &program], 0);
    let roles = place.json(&["roles", "--json", &trace]);
    let bound = roles["bound"].as_array().expect("they are listed");
    let of_schema: Vec<&str> =
        bound.iter().filter(|one| one["mapping"] == "schema").filter_map(|one| one["role"].as_str()).collect();
    for role in ["begin", "end", "send", "receive", "state"] {
        assert!(of_schema.contains(&role), "{program}: {role} of {of_schema:?}");
    }
    let total = |words: &[&str]| {
        let answer = place.json(words);
        let table = answer["tables"].as_array().expect("they are there")[0].clone();
        (table["rows"][0][0].as_u64(), table["class"].as_str().map(str::to_owned))
    };
    // 100 dishes, and the stove is cleaned after each tenth.
    assert_eq!(total(&["pairs", "--json", &trace]), (Some(110), Some("total".to_owned())), "{program}");
    assert_eq!(total(&["flows", "--json", &trace]), (Some(100), Some("total".to_owned())), "{program}");
    let metadata = std::fs::read_to_string(place.path(&trace).join("metadata")).expect("it is there");
    assert!(metadata.contains("schema=kitchen/1/0/1") && metadata.contains("&as=begin%20"), "{metadata}");
    place.says(&["check", &trace], 0);
}

#[test]
fn examples_are_built_and_recorded() {
    let place = Place::new();
    let cargo = rust_example::built("example-kitchen");
    records(&place, &cargo, "rust");
    let Some(built) = c_programs::library() else { return };
    let installed = c_programs::install(&built, &place.path("installed"));
    let source = example("").display().to_string();
    if is_there("cmake") {
        does(&place, &installed, &["cmake", "-S", &source, "-B", "cmake"]);
        does(&place, &installed, &["cmake", "--build", "cmake"]);
        for language in ["c", "cpp"] {
            records(&place, &place.path("cmake").join(format!("kitchen-{language}")), &format!("cmake-{language}"));
        }
    }
    if is_there("meson") {
        does(&place, &installed, &["meson", "setup", "meson", &source]);
        does(&place, &installed, &["meson", "compile", "-C", "meson"]);
        records(&place, &place.path("meson/kitchen-c"), "meson-c");
    }
    headers_compile(&place, &installed);
}

/// All dialects that headers are made for, without a warning; also where everything is in them that the language has.
fn headers_compile(place: &Place, installed: &Path) {
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schema/shop.kymo").display().to_string();
    does(place, installed, &["kymo", "schema", "build", &shop, "--only", "c,rust", "--output", "gen"]);
    let kitchen = example("kitchen.kymo").display().to_string();
    does(place, installed, &["kymo", "schema", "build", &kitchen, "--only", "c", "--output", "gen"]);
    let user = "\
#include <errno.h>
#include <signal.h>
#include \"shop_events.h\"
int main(void)
{
    static const uint8_t parts[4] = {1, 2, 3, 4};
    static const double weights[2] = {0.5, 1.5};
    KYMO_CACHE_RENDER_SCOPE(\"/\", parts, weights, 2);
    for (int i = 0; i < 3; ++i) {
        KYMO_CACHE_WAIT_SCOPE();
        KYMO_CACHE_WAIT_SCOPE();
        if (i)
            break;
    }
    return SHOP_OUTCOME_MISSING;
}
";
    write(place, "shop.c", user);
    write(place, "shop.cpp", user);
    let module = std::fs::read_to_string(place.path("gen/shop_events.rs")).expect("it is made");
    c_programs::library_of_rust(&place.path("rust"), "of-shop", &module);
    let include = format!("-I{}", installed.join("include").display());
    let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Igen", &include, "-o", "a.o", "-c"];
    for (compiler, ending, standards) in
        [("cc", "c", ["c11", "c17", "c2x"]), ("c++", "cpp", ["c++17", "c++20", "c++2b"])]
    {
        if !is_there(compiler) {
            continue;
        }
        for standard in standards {
            let standard = format!("-std={standard}");
            for path in [example(&format!("kitchen.{ending}")), place.path(&format!("shop.{ending}"))] {
                let path = path.display().to_string();
                does(place, installed, &[&[compiler, &standard], &strict[..], &[&path]].concat());
            }
        }
    }
}
