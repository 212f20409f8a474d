//! Findings: reported problems of traces.

use super::*;

/// Unreadable places are reported with the findings of opening, also if the pyramid comes from the
/// cache.
#[test]
fn what_is_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    std::fs::create_dir(&trace).unwrap();
    for entry in std::fs::read_dir(demo()).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), trace.join(entry.file_name())).unwrap();
    }
    assert_eq!(built(&trace, None, None).findings(), []);
    // The last packet of a stream ends early.
    let stream = trace.join("jobs_1");
    let bytes = std::fs::read(&stream).unwrap();
    std::fs::write(&stream, &bytes[..bytes.len() - 3000]).unwrap();
    for _ in 0..2 {
        let timeline = built(&trace, None, Some(&cache));
        let findings = timeline.findings();
        let rules: Vec<&str> = findings.iter().map(|found| found.rule).collect();
        assert!(rules.contains(&"cut-packet"), "{findings:?}");
        assert_eq!(timeline.told_findings()["losses_omitted"], 0);
    }
}
