//! Any bytes are a program with places for probes, or are refused; each place is in the file, and each argument has a place that
//! the kernel can be told.

use kymo_sites::{DebugData, ElfFile, ValuePlace};

/// Functions of which signatures are read.
const SIGNATURES_MAX: usize = 50;

/// The promise; how many arguments of functions and of USDT probes there were.
///
/// # Panics
///
/// If it is broken.
pub fn hold(data: &[u8]) -> u64 {
    let elf = match ElfFile::parse(data) {
        Ok(elf) => elf,
        Err(problem) => {
            assert!(!problem.to_string().is_empty());
            return 0;
        }
    };
    let size = data.len() as u64;
    let functions = elf.functions(None);
    for function in &functions {
        assert!(!function.name.is_empty() && !function.symbol.is_empty());
        assert_eq!(elf.code_offset_of(function.address), Some(function.offset));
        assert!(function.plain_name().len() <= function.name.len());
    }
    let mut arguments = 0;
    let (sites, problems) = elf.usdt();
    assert!(problems.len() <= 11, "{problems:?}");
    for site in &sites {
        assert!(!site.provider.is_empty() && !site.name.is_empty());
        for (_, place) in site.operands.iter().filter_map(|operand| operand.value.as_ref()) {
            check(place);
            arguments += 1;
        }
    }
    let addresses = functions.iter().take(SIGNATURES_MAX);
    let addresses: Vec<(u64, bool)> = addresses.map(|function| (function.address, function.is_local)).collect();
    let signatures = DebugData::of(&elf).map(|data| data.signatures(&addresses)).unwrap_or_default();
    for (address, signature) in signatures {
        assert!(addresses.iter().any(|(known, _)| *known == address));
        assert!(signature.arguments.len() <= 128 && signature.absent.len() as u64 <= size);
        for argument in &signature.arguments {
            assert!(!argument.name.is_empty());
            check(&argument.place);
            arguments += 1;
        }
    }
    arguments
}

fn check(place: &ValuePlace) {
    match place {
        ValuePlace::Register(name) | ValuePlace::Memory { base: name, .. } => {
            assert!((2..=3).contains(&name.len()), "{name}");
        }
        ValuePlace::Mapped(_) | ValuePlace::Constant(_) => {}
    }
}

/// A program with functions of many types and a USDT probe; `None`: there is no C compiler.
#[must_use]
pub fn seed() -> Option<Vec<u8>> {
    const SOURCE: &str = "struct pair { double x; long n; }; struct big { long a[4]; struct pair p[2]; };\n\
        enum color { RED = -1, GREEN }; typedef const char *text;\n\
        int all(int a, text b, double c, struct pair d, struct big e, enum color f, unsigned char g, _Bool h, short i[3]) {\n\
        return a + *b + (int)c + (int)d.n + (int)e.a[0] + f + g + h + i[0]; }\n\
        long double other(__int128 a, float b, struct big *c, int (*d)(int)) { return a + b + c->a[0] + d(1); }\n\
        int main(void) { __asm__ volatile(\"990: nop\\n.pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n\"\n\
        \".4byte 992f-991f,994f-993f,3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n993: .8byte 990b,0,0\\n\"\n\
        \".asciz \\\"shop\\\"\\n.asciz \\\"sale\\\"\\n.asciz \\\"-4@%edi 8@$5\\\"\\n994: .balign 4\\n.popsection\"); return 0; }\n";
    let folder = tempfile::tempdir().ok()?;
    let (source, built) = (folder.path().join("seed.c"), folder.path().join("seed"));
    std::fs::write(&source, SOURCE).ok()?;
    let status = std::process::Command::new("cc").args(["-g", "-O1", "-o"]).arg(&built).arg(&source).status().ok()?;
    status.success().then(|| std::fs::read(&built).ok())?
}
