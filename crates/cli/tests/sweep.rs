//! `warploom sweep` as users run it: resumed after a kill, shared by two, changed files, failures as results, refusals.

#[path = "support/schema.rs"]
mod schema;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A fresh directory for one test's files, with a sweep file in it.
fn scratch(name: &str, sweep: &str) -> PathBuf {
    let dir = support::scratch(name);
    std::fs::write(dir.join("s.toml"), sweep).unwrap();
    dir
}

fn command(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.current_dir(dir).arg("sweep").args(line.split_whitespace());
    command
}

fn sweep(dir: &Path, line: &str) -> Output {
    let output = command(dir, line).output().unwrap();
    let arguments: Vec<&str> = ["sweep"].into_iter().chain(line.split_whitespace()).collect();
    schema::conforms(&arguments, &output.stdout);
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn good(dir: &Path, line: &str) -> String {
    let output = sweep(dir, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn json(dir: &Path, line: &str) -> Value {
    let text = good(dir, &format!("{line} --json"));
    assert_eq!(text.matches('\n').count(), 1, "one object on one line: {text}");
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn refused(dir: &Path, line: &str) -> String {
    let output = sweep(dir, line);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{line}");
    text(&output.stderr)
}

fn files(dir: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(dir.join("s.sweep/runs")).into_iter().flatten();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

fn results(dir: &Path) -> Vec<PathBuf> {
    let json = files(dir).into_iter().filter(|name| name.ends_with(".json"));
    json.map(|name| dir.join("s.sweep/runs").join(name)).collect()
}

/// Twelve runs of some milliseconds.
const SMALL: &str = "work = 'hashtable'\nsched = ['lrr', 'gto']\nbows = ['off', 1000]\nseeds = 3\n\
                     [params]\nkeys = 60\nctas = 2\nthreads = 32\nbuckets = 8\n";

/// The same with so many seeds and keys that it takes some seconds.
fn longer() -> String {
    SMALL.replace("seeds = 3", "seeds = 15").replace("keys = 60", "keys = 400")
}

fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_sweep_is_run_and_read() {
    let dir = scratch("sweep-small", SMALL);
    let output = sweep(&dir, "run s.toml --jobs 2");
    let (told, shown) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.starts_with("s: 12 runs: hashtable × 2 sched × 2 bows × 3 seed; 0 kept from before\n"),
        "{told}"
    );
    assert!(told.contains("left: about") && told.contains(" and up to "), "{told}");
    assert!(shown.starts_with("s: all 12 runs have ended (12 ok), "), "{shown}");
    assert_eq!((files(&dir).len(), results(&dir).len()), (12, 12), "nothing but results");

    let again = json(&dir, "run s.toml");
    assert_eq!(
        (&again["runs"], &again["kept_runs"], &again["status"]["ok"]),
        (&12.into(), &12.into(), &12.into())
    );
    let status = json(&dir, "status s.toml");
    assert_eq!(
        (&status["ended"], &status["missing"], &status["in_flight"]),
        (&12.into(), &0.into(), &0.into())
    );
    assert!(good(&dir, "status s.sweep").starts_with("s: 12 of 12 runs have ended: 12 ok\n"));

    good(&dir, "results s.toml --csv t.csv");
    let csv = std::fs::read_to_string(dir.join("t.csv")).unwrap();
    assert!(csv.starts_with("run,status,message,work,sched,bows,buckets,ctas,keys,threads,seed,"), "{csv}");
    assert_eq!(csv.lines().count(), 13);
    assert_eq!(good(&dir, "results s.sweep --csv -"), csv);
    assert!(std::fs::read_to_string(dir.join("t-launches.csv")).unwrap().starts_with("run,launch,"));
    good(&dir, "results s.toml --parquet t.parquet");
    for name in ["t.parquet", "t-launches.parquet", "t-sms.parquet"] {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
    assert!(refused(&dir, "results s.toml --parquet -").contains("--parquet needs the name of a file"));
    let tables = json(&dir, "results s.toml --where sched=gto");
    assert_eq!(tables["tables"]["runs"].as_array().unwrap().len(), 6);
    assert!(tables["tables"]["runs"][0]["cycles"].as_u64().unwrap() > 0);
    let run = &tables["tables"]["runs"][0]["run"];
    assert!(tables["tables"]["launches"].as_array().unwrap().iter().any(|launch| launch["run"] == *run));

    good(&dir, "results s.toml --plot x=seed y=cycles color=sched facet=bows");
    assert!(std::fs::read_to_string(dir.join("plot.svg")).unwrap().starts_with("<svg "));
    good(&dir, "results s.toml --plot x=sched y=cycles color=bows --to plot.html");
    assert!(std::fs::read_to_string(dir.join("plot.html")).unwrap().contains("<th>sched</th>"));
    let message = refused(&dir, "results s.toml --plot x=sched y=cycles");
    assert!(message.contains("differ in `bows`") && message.contains("facet=bows"), "{message}");
    assert!(
        refused(&dir, "results s.toml --plot x=sched y=cycles color=bows --to p.png")
            .contains(".svg or a .html")
    );
    assert!(refused(&dir, "results s.toml --where shed=gto").contains("no column `shed`"));
}

/// Kills at any moment lose nothing that has ended, repeat nothing, and change no number.
#[cfg(unix)]
#[test]
fn killed_and_resumed_it_gives_the_same_results() {
    let whole = scratch("sweep-undisturbed", &longer());
    good(&whole, "run s.toml --jobs 2");
    let dir = scratch("sweep-killed", &longer());
    let mut kept: Vec<(PathBuf, std::time::SystemTime)> = Vec::new();
    for wait_ms in [40, 150, 90, 400, 250, 60] {
        let mut child =
            command(&dir, "run s.toml --jobs 2").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        // What had ended before is still there, and was not written again.
        for (path, time) in &kept {
            assert_eq!(std::fs::metadata(path).unwrap().modified().unwrap(), *time);
        }
        kept = results(&dir)
            .into_iter()
            .map(|p| (p.clone(), std::fs::metadata(&p).unwrap().modified().unwrap()))
            .collect();
    }
    let end = json(&dir, "run s.toml --jobs 2");
    assert_eq!((&end["runs"], &end["status"]["ok"]), (&60.into(), &60.into()));
    for (path, time) in &kept {
        assert_eq!(std::fs::metadata(path).unwrap().modified().unwrap(), *time);
    }
    assert_eq!(files(&dir).len(), 60, "no claims, no heartbeats, no halves: {:?}", files(&dir));
    let csv = |dir: &Path| good(dir, "results s.toml --csv -");
    assert_eq!(csv(&dir), csv(&whole));
}

#[test]
fn two_in_one_folder_share_the_work() {
    let dir = scratch("sweep-shared", &longer());
    let start = || -> Child {
        command(&dir, "run s.toml --jobs 1 --json")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let executed = both.map(|output| {
        assert_eq!(output.status.code(), Some(0));
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["status"]["ok"], 60);
        60 - object["kept_runs"].as_u64().unwrap()
    });
    // The estimate's runs come first and count as kept afterwards.
    assert!(executed.iter().sum::<u64>() <= 60, "{executed:?}");
    assert_eq!(files(&dir).len(), 60);
}

#[test]
fn a_changed_digit_is_found() {
    let dir = scratch("sweep-changed", SMALL);
    good(&dir, "run s.toml");
    let before = good(&dir, "results s.toml --csv -");
    let file = &results(&dir)[0];
    let record = std::fs::read_to_string(file).unwrap();
    let (head, tail) = record.split_once("\"cycles\":").unwrap();
    let digit = if tail.starts_with('1') { '2' } else { '1' };
    std::fs::write(file, format!("{head}\"cycles\":{digit}{}", &tail[1..])).unwrap();
    assert_eq!(json(&dir, "status s.toml")["missing"], 1);
    assert_eq!(json(&dir, "run s.toml")["kept_runs"], 11);
    assert_eq!(good(&dir, "results s.toml --csv -"), before);
}

#[test]
fn hangs_faults_and_limits_are_results() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels").canonicalize().unwrap();
    let text = format!(
        "chip = 'gtx480'\nmax_cycles = 100_000\n\
         [kernel]\nfile = '{}/spinlock.ptx'\n[kernel.buffers]\nlock = 'u32:1=zero'\n\
         count = 'u32:1=zero'\n[params]\nentry = ['naivelock', 'crosscta']\nblock = [1, 32]\nfirst = ['lock', 'null']\n\
         [[kernel.launch]]\nentry = '{{entry}}'\ngrid = 1\nblock = '{{block}}'\nargs = ['{{first}}', 'count']\n",
        kernels.display()
    );
    let dir = scratch("sweep-failures", &text);
    let end = json(&dir, "run s.toml");
    let (runs, status) = (&end["runs"], &end["status"]);
    assert_eq!(runs, 8);
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    assert!(count("hang") >= 1 && count("fault") >= 2 && count("ok") >= 1, "{status}");
    let rows = json(&dir, "results s.toml")["tables"]["runs"].clone();
    for row in rows.as_array().unwrap() {
        let failed = row["status"] != "ok";
        assert_eq!((row["message"].is_string(), row["cycles"].is_null()), (failed, failed), "{row}");
    }
    let naive = |row: &&Value| row["status"] == "hang" && row["entry"] == "naivelock";
    let hang = rows.as_array().unwrap().iter().find(naive).unwrap();
    assert!(hang["message"].as_str().unwrap().contains("kernel `naivelock` hangs"), "{hang}");
    assert_eq!(json(&dir, "run s.toml")["kept_runs"], 8, "they are not executed again");
    assert!(good(&dir, "status s.toml").contains("the first of status hang: "));
    // A limit of cycles is not a hang.
    std::fs::write(dir.join("s.toml"), "work = 'vecadd'\nmax_cycles = 5\n[params]\nsize = 64\n").unwrap();
    assert_eq!(json(&dir, "run s.toml")["status"]["cycle_limit"], 1);
}

#[cfg(unix)]
#[test]
fn limits_of_time_and_memory_are_results_and_can_be_tried_again() {
    let long = "work = 'hashtable'\n[params]\nkeys = 400_000\nbuckets = 4\n";
    let dir = scratch("sweep-limits", &format!("{long}[limits]\ntime_s = 0.3\n"));
    let row = |dir: &Path| json(dir, "results s.toml")["tables"]["runs"][0].clone();
    good(&dir, "run s.toml");
    assert_eq!(row(&dir)["status"], "time_limit");
    assert!(row(&dir)["message"].as_str().unwrap().contains("limits.time_s"));
    assert_eq!(json(&dir, "run s.toml")["kept_runs"], 1);
    std::fs::write(dir.join("s.toml"), format!("{long}[limits]\nmemory_mb = 1\n")).unwrap();
    assert_eq!(json(&dir, "run s.toml --retry")["status"]["memory"], 1);
    assert!(row(&dir)["message"].as_str().unwrap().contains("limits.memory_mb"));
}

/// A run whose process is killed twice is told so, and the others go on.
#[cfg(unix)]
#[test]
fn a_killed_run_stops_no_other() {
    let text =
        "work = 'hashtable'\n[params]\nbuckets = 4\nkeys = [50, 400_000, 60]\n[limits]\ntime_s = 100\n";
    let dir = scratch("sweep-one-killed", text);
    let child =
        command(&dir, "run s.toml --jobs 1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let children = || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
        lists.filter_map(Result::ok).collect::<String>()
    };
    // The short runs come first, for the estimate. Then the long one is claimed, and a process executes it.
    wait_for("the long run starts", || {
        let names = files(&dir);
        let ended = |claim: &str| names.contains(&format!("{claim}.json"));
        results(&dir).len() == 2
            && names.iter().filter_map(|name| name.strip_suffix(".claim")).any(|claim| !ended(claim))
    });
    let mut before = String::new();
    for _ in 0..2 {
        // Read once: it may be gone a moment later.
        let mut found = String::new();
        wait_for("a process executes it", || {
            found = children();
            !found.trim().is_empty() && found != before
        });
        before = found;
        let victim = before.split_whitespace().next().unwrap();
        assert!(Command::new("kill").args(["-9", victim]).status().unwrap().success());
    }
    let mut child = child;
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let status = json(&dir, "status s.toml")["status"].clone();
    assert_eq!((&status["ok"], &status["crash"]), (&2.into(), &1.into()), "{status}");
    assert!(good(&dir, "status s.toml").contains("signal 9"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_has_ended() {
    let dir = scratch("sweep-interrupt", &longer());
    let child =
        command(&dir, "run s.toml --jobs 1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a run ends", || !results(&dir).is_empty());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(130), String::new()));
    let message = text(&output.stderr);
    assert!(
        message.contains("of 60 runs have ended and are kept\nhelp: the same command goes on"),
        "{message}"
    );
    assert_eq!(files(&dir).len(), results(&dir).len(), "no claims are left");
}

/// A disk on which no file can be larger than a kilobyte: what had ended stays, and the missing are counted.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told() {
    let dir = scratch("sweep-full", &SMALL.replace("seeds = 3", "seeds = 2"));
    good(&dir, "run s.toml");
    let before = files(&dir);
    std::fs::write(dir.join("s.toml"), SMALL).unwrap();
    let script =
        format!("trap '' XFSZ; ulimit -f 2; exec {} sweep run s.toml", env!("CARGO_BIN_EXE_warploom"));
    let output = Command::new("bash").current_dir(&dir).args(["-c", &script]).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains(
            "error: cannot keep results in `s.sweep`: file too large; 8 of 12 runs are kept, 4 are missing"
        ),
        "{message}"
    );
    assert!(message.contains("help: make room there"), "{message}");
    assert_eq!(files(&dir), before, "what was kept stays, and nothing is half-written");
    let end = json(&dir, "run s.toml");
    assert_eq!((&end["kept_runs"], &end["status"]["ok"]), (&8.into(), &12.into()));
}

#[test]
fn refusals_say_what_to_do() {
    let dir = scratch("sweep-refused", SMALL);
    assert!(refused(&dir, "run t.toml").contains("cannot read `t.toml`"));
    assert!(refused(&dir, "status s.toml").contains("`s.sweep` is no folder of a sweep"));
    good(&dir, "run s.toml");
    std::fs::write(dir.join("s.toml"), format!("name = 'other'\n{SMALL}")).unwrap();
    let message = refused(&dir, "run s.toml");
    assert!(message.contains("`s.sweep` has the results of another sweep, `s`"), "{message}");
    assert!(message.contains("help: choose another folder with --out"), "{message}");
    std::fs::write(dir.join("s.toml"), SMALL.replace("sched", "schedd")).unwrap();
    assert!(refused(&dir, "run s.toml").contains("unknown field `schedd`"));
    std::fs::write(dir.join("s.toml"), SMALL.replace("buckets = 8", "buckets = { from = 8, to = 4 }"))
        .unwrap();
    let message = refused(&dir, "run s.toml");
    assert!(message.contains("`buckets`: there is nothing from 8 to 4\nhelp: a range is {"), "{message}");
    std::fs::write(dir.join("s.toml"), SMALL.replace("seeds = 3", "seeds = 300_000")).unwrap();
    let message = refused(&dir, "run s.toml");
    assert!(
        message.contains("1,200,000 combinations") && message.contains("help: --yes executes them"),
        "{message}"
    );
    assert!(good(&dir, "run s.toml --dry-run").starts_with("s: 1,200,000 combinations"));
    std::fs::write(dir.join("s.toml"), SMALL).unwrap();
    assert!(refused(&dir, "run s.toml --chunk 3").contains("--chunk needs --on slurm"));
    // A path without any program.
    let output = command(&dir, "run s.toml --on slurm").env("PATH", "").output().unwrap();
    let message = text(&output.stderr);
    assert!(message.contains("no Slurm here") && message.contains("help: go to a login node"), "{message}");
    // More seeds are the same sweep: what was kept counts.
    std::fs::write(dir.join("s.toml"), SMALL.replace("seeds = 3", "seeds = 4")).unwrap();
    assert_eq!(json(&dir, "run s.toml")["kept_runs"], 12);
}
