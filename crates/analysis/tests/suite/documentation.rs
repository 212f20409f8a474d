//! What docs/roles.md says is so.

use std::fs;
use std::path::Path;

use kymo_analysis::mapping::RoleMapping;
use kymo_analysis::roles::{ROLES, RoleFacts};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/roles.md");
    fs::read_to_string(path).expect("the document is part of the repository")
}

/// The line of a role; fields that another role had before are not told again, unless they are few.
fn line(facts: &RoleFacts) -> String {
    let before = ROLES.iter().find(|other| other.fields == facts.fields).expect("itself at least");
    let fields = if before.role != facts.role && facts.fields.len() > 2 {
        format!("as `{}`", before.name)
    } else {
        let field = |field: &kymo_analysis::roles::FieldFacts| {
            format!("`{}`{}", field.name, if field.is_required { "*" } else { "" })
        };
        facts.fields.iter().map(field).collect::<Vec<_>>().join(" ")
    };
    format!("| `{}` | {} | {fields} |\n", facts.name, facts.meaning)
}

#[test]
fn the_table_has_all_roles() {
    let table: String = ROLES.iter().map(line).collect();
    assert!(document().contains(&table), "docs/roles.md should have this table:\n{table}");
}

#[test]
fn the_mapping_can_be_used() {
    let document = document();
    let (_, behind) = document.split_once("```toml\n").expect("there is a mapping");
    let (text, _) = behind.split_once("```").expect("it ends");
    let mapping = RoleMapping::parse(text).unwrap_or_else(|errors| panic!("{}", errors.render("docs/roles.md")));
    assert_eq!(mapping.sections.len(), 2);
}
