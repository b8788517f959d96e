use super::*;
use crate::results::{Figures, Key, figures};
use crate::servers::LIMIT;

const POINT: &str = "2026-07-28, JSON, 100 B, c=16";

fn add(results: &mut Results, subject: &str, measured: anyhow::Result<Figures>) {
    let key = Key {
        part: server::PART.to_owned(),
        point: POINT.to_owned(),
        subject: subject.to_owned(),
    };
    results.add(key, measured);
}

fn report(ours: f64) -> Report {
    let mut results = Results::default();
    add(&mut results, LIMIT, Ok(figures([("req_s", 100_000.0)])));
    let measured = figures([
        ("req_s", ours),
        ("p50_us", 1.5),
        ("p99_us", 20.0),
        ("p999_us", 300.0),
        ("cpu_us", 12.0),
        ("machine_cpu_us", 25.0),
        ("switches", 0.5),
    ]);
    add(&mut results, "plexus", Ok(measured));
    let failure = anyhow::anyhow!("a wrong answer\nand more");
    add(&mut results, "other", Err(failure));
    let about = RunMetadata {
        builds: Build::read("plexus\t1.2\tcargo build --release\topt-level 3\n").unwrap(),
        ..RunMetadata::default()
    };
    Report { about, results }
}

fn criterion(verdict: &str, measured: &str, cause: &str) -> String {
    format!(
        "| server, {POINT}: req/s of the bare hyper server's | ≥ 0.6 | {measured} | {verdict} | {cause} |"
    )
}

#[test]
fn a_page_shows_figures_ratios_builds_and_what_failed() {
    let page = page(&report(75_000.0), &Notes::default(), &[]);
    for wanted in [
        format!("| {POINT} | 100,000 | 75,000 (0.75) | failed |"),
        format!("| {POINT} | – | 1.50 / 20.0 / 300 | failed |"),
        format!("| {POINT} | – | 12.0 / 25.0 | failed |"),
        format!("| {POINT} | – | 0.50 | failed |"),
        format!("- other, server: {POINT}: a wrong answer\n"),
        "| plexus | 1.2 | `cargo build --release` | opt-level 3 |".to_owned(),
        criterion("met", "0.75", ""),
    ] {
        assert!(page.contains(&wanted), "{wanted}: {page}");
    }
    assert!(!page.contains("Repeatability"), "{page}");
}

#[test]
fn a_missed_criterion_has_a_place_for_its_cause() {
    let mut notes = Notes::default();
    let unknown = page(&report(50_000.0), &notes, &[]);
    let missed = criterion("**missed**", "0.50", "not known yet");
    assert!(unknown.contains(&missed), "{unknown}");
    notes.causes.insert(
        "server-json-2026-07-28-c16-limit".to_owned(),
        "It sleeps.".to_owned(),
    );
    let known = page(&report(50_000.0), &notes, &[]);
    let missed = criterion("**missed**", "0.50", "It sleeps.");
    assert!(known.contains(&missed), "{known}");
}

#[test]
fn a_second_run_is_compared() {
    let notes = Notes {
        second: Some(report(60_000.0)),
        ..Notes::default()
    };
    let page = page(&report(75_000.0), &notes, &[]);
    let compared = "| 0.75 | 0.60 | -20.0 % | **differs** |";
    assert!(page.contains(compared), "{page}");
}
