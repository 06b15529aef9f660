//! Who executes a run: claims in the folder of finished runs, so that several processes, on one computer or on many
//! that share the folder, do nothing twice.
//!
//! A claim is a folder `KEY.claim` with one empty file, named after its owner. It is made under another name and
//! renamed: a folder cannot be renamed to one that has something in it, so only one process succeeds. The claim of a
//! process that has died is taken over by renaming the file in it, which again only one can do. There are no locks of
//! the operating system, which some network file systems forget. Claims lie beside the results because that changes
//! the folder: a client of such a file system then looks again whether a result is there.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::digest::Digest;
use super::run::Key;

/// How often a process says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A process elsewhere that has not said so for as long is dead. It is many heartbeats: a file server may be slow.
const LOST: Duration = Duration::from_secs(90);

/// One who claims, unlike any other in the world: `HOST-PLACE-PID-START-NUMBER`. The number tells apart those of one
/// process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner(String);

impl Owner {
    /// Another one in this process.
    pub(super) fn new() -> Owner {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        static PROCESS: LazyLock<String> = LazyLock::new(|| {
            let pid = std::process::id();
            format!("{}-{}-{pid}-{}", host(), place(), started(pid).unwrap_or(0))
        });
        Owner(format!("{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether the process has ended, if this computer can know: the place is the same, and the number is no
    /// process's, or that of one that started at another time.
    fn has_ended_here(&self) -> Option<bool> {
        let mut parts = self.0.rsplitn(5, '-').skip(1);
        let (start, pid, place_of) = (parts.next()?, parts.next()?, parts.next()?);
        let (start, pid) = (start.parse::<u64>().ok()?, pid.parse::<u32>().ok()?);
        if start == 0 || place_of != place() {
            return None;
        }
        Some(started(pid) != Some(start))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| c.is_ascii_alphanumeric()).take(32).collect();
    if name.is_empty() { "host".to_string() } else { name }
}

/// The computer since it was switched on, and the container in it: within it, a process number means one process.
fn place() -> &'static str {
    static PLACE: LazyLock<String> = LazyLock::new(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let pids = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Digest::new().add(boot).add(pids.to_string_lossy().as_bytes()).hex().split_off(20)
    });
    &PLACE
}

/// When a process started, in the system's ticks; `None` if there is none, or if it is a zombie.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may have anything in it.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    match fields.first() {
        Some(&"Z" | &"X") | None => None,
        Some(_) => fields.get(19)?.parse().ok(),
    }
}

/// What became of an attempt to claim a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It is ours, until [`Claims::release`].
    Claimed,
    /// Another process has it.
    Held,
}

/// The claims in a folder.
#[derive(Debug)]
pub(super) struct Claims {
    folder: PathBuf,
    owner: Owner,
    /// Numbers the folders that become claims.
    next: AtomicU64,
    /// The last heartbeat of each process elsewhere, and when this process saw it change.
    seen: Mutex<HashMap<Owner, (String, Instant)>>,
    lost: Duration,
}

impl Claims {
    pub(super) fn new(folder: &Path) -> Claims {
        Claims {
            folder: folder.to_path_buf(),
            owner: Owner::new(),
            next: AtomicU64::new(0),
            seen: Mutex::default(),
            lost: LOST,
        }
    }

    /// Tries to claim a run. Takes over the claim of a process that has died.
    pub(super) fn claim(&self, key: &Key) -> io::Result<Attempt> {
        let claim = self.claim_folder(key);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let new = self.folder.join(format!("{}-{number}.new", self.owner));
        fs::create_dir(&new)?;
        let renamed = fs::File::create(new.join(&self.owner.0)).and_then(|_| fs::rename(&new, &claim));
        let Err(error) = renamed else { return Ok(Attempt::Claimed) };
        let _ = fs::remove_dir_all(&new);
        if !claim.exists() && error.kind() != io::ErrorKind::DirectoryNotEmpty {
            return Err(error);
        }
        // Released meanwhile, or not yet visible: to be tried again.
        let Some(holder) = holder(&claim) else { return Ok(Attempt::Held) };
        // A server that executed a request twice reports the second as failed.
        if holder == self.owner {
            return Ok(Attempt::Claimed);
        }
        if !self.has_died(&holder) {
            return Ok(Attempt::Held);
        }
        match fs::rename(claim.join(&holder.0), claim.join(&self.owner.0)) {
            Ok(()) => Ok(Attempt::Claimed),
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Attempt::Held),
            Err(error) => Err(error),
        }
    }

    /// Gives a run back. What cannot be removed is found by others when this process has ended.
    pub(super) fn release(&self, key: &Key) {
        let claim = self.claim_folder(key);
        let _ = fs::remove_file(claim.join(&self.owner.0));
        let _ = fs::remove_dir(claim);
    }

    /// Says that this process lives, until the function that is given returns.
    pub(super) fn while_alive<T>(&self, work: impl FnOnce() -> T) -> T {
        let file = self.heartbeat(&self.owner);
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let result = std::thread::scope(|scope| {
            let file = &file;
            scope.spawn(move || {
                for beat in 0u64.. {
                    // On a full disk others see a dead process after a while; then a run may be executed twice.
                    let _ = fs::write(file, beat.to_string());
                    match stopped.recv_timeout(HEARTBEAT) {
                        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                        _ => break,
                    }
                }
            });
            let result = work();
            drop(stop);
            result
        });
        let _ = fs::remove_file(&file);
        result
    }

    /// Removes what processes that have died left behind. Claims of runs that are to be executed are taken over one by
    /// one instead.
    pub(super) fn tidy(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(key) = name.strip_suffix(".claim") {
                if self.folder.join(format!("{key}.json")).exists() {
                    remove_claim_of_the_dead(&entry.path());
                }
                continue;
            }
            let owner = match name.rsplit_once('.') {
                Some((owner, "alive")) => owner,
                Some((numbered, "new")) => numbered.rsplit_once('-').map_or(numbered, |(owner, _)| owner),
                Some((_, part)) => part.strip_prefix("part-").unwrap_or_default(),
                None => continue,
            };
            if Owner(owner.to_string()).has_ended_here() == Some(true) {
                let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
            }
        }
    }

    fn has_died(&self, holder: &Owner) -> bool {
        if let Some(ended) = holder.has_ended_here() {
            return ended;
        }
        // Clocks of two computers differ: what counts is how long we have seen no change.
        let beat = fs::read_to_string(self.heartbeat(holder)).unwrap_or_default();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, since) = seen.entry(holder.clone()).or_insert_with(|| (beat.clone(), Instant::now()));
        if *last != beat {
            (*last, *since) = (beat, Instant::now());
        }
        since.elapsed() >= self.lost
    }

    fn claim_folder(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}.claim"))
    }

    fn heartbeat(&self, owner: &Owner) -> PathBuf {
        self.folder.join(format!("{owner}.alive"))
    }
}

/// Removes a claim that nobody will take over: its run has ended, and then its process, before it gave it back.
fn remove_claim_of_the_dead(claim: &Path) {
    if let Some(owner) = holder(claim).filter(|owner| owner.has_ended_here() == Some(true)) {
        let _ = fs::remove_file(claim.join(&owner.0));
    }
    // Unless somebody else has it.
    let _ = fs::remove_dir(claim);
}

fn holder(claim: &Path) -> Option<Owner> {
    let entry = fs::read_dir(claim).ok()?.next()?.ok()?;
    Some(Owner(entry.file_name().to_string_lossy().into_owned()))
}

/// Runs that a living process, or one elsewhere of which nothing is known, executes now.
pub(super) fn in_flight(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let claims =
        entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "claim"));
    let held = claims.filter_map(|claim| holder(&claim.path()));
    held.filter(|owner| owner.has_ended_here() != Some(true)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Run;
    use crate::runs::testing::Scratch;

    /// As if by another process.
    fn by(folder: &Path, owner: &str) -> Claims {
        Claims { owner: Owner(owner.to_string()), ..Claims::new(folder) }
    }

    #[test]
    fn one_claims_and_the_other_waits() {
        let scratch = Scratch::new("claim");
        let (ours, key) = (Claims::new(scratch.path()), Run::work("nw").key());
        // Somewhere else: it lives until its heart has not beaten for long.
        let theirs = by(scratch.path(), "elsewhere-00-1-1-0");
        assert_eq!(theirs.claim(&key).unwrap(), Attempt::Claimed);
        assert_eq!(ours.claim(&key).unwrap(), Attempt::Held);
        assert_eq!(in_flight(scratch.path()), 1);
        theirs.release(&key);
        assert_eq!(ours.claim(&key).unwrap(), Attempt::Claimed);
        assert_eq!(theirs.claim(&key).unwrap(), Attempt::Held);
        ours.release(&key);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn claims_of_runs_that_have_ended_are_removed() {
        let scratch = Scratch::new("ended");
        let (ours, done, held) = (Claims::new(scratch.path()), Run::work("nw").key(), Run::work("atm").key());
        // It was killed after it had written the result.
        let theirs = by(scratch.path(), &format!("{}-{}-{}-1-0", host(), place(), std::process::id()));
        assert_eq!(theirs.claim(&done).unwrap(), Attempt::Claimed);
        assert_eq!(ours.claim(&held).unwrap(), Attempt::Claimed);
        for key in [&done, &held] {
            fs::write(scratch.path().join(format!("{key}.json")), "{}").unwrap();
        }
        ours.tidy();
        assert!(!ours.claim_folder(&done).exists() && ours.claim_folder(&held).exists());
    }

    #[test]
    fn a_dead_process_loses_its_claims() {
        let scratch = Scratch::new("dead");
        let (ours, key) = (Claims::new(scratch.path()), Run::work("nw").key());
        // This process, had it started at another time: its number is taken, but it is not it.
        let dead = format!("{}-{}-{}-1-0", host(), place(), std::process::id());
        let theirs = by(scratch.path(), &dead);
        assert_eq!(theirs.claim(&key).unwrap(), Attempt::Claimed);
        fs::write(scratch.path().join(format!("{dead}.alive")), "3").unwrap();
        fs::create_dir(scratch.path().join(format!("{dead}-7.new"))).unwrap();
        fs::write(scratch.path().join(format!("{key}.part-{dead}")), "half of").unwrap();
        ours.tidy();
        assert_eq!(in_flight(scratch.path()), 0);
        assert_eq!(ours.claim(&key).unwrap(), Attempt::Claimed);
        ours.release(&key);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_process_elsewhere_is_dead_when_its_heart_stands_still() {
        let scratch = Scratch::new("lost");
        let key = Run::work("nw").key();
        let ours = Claims { lost: Duration::from_millis(250), ..Claims::new(scratch.path()) };
        let theirs = by(scratch.path(), "elsewhere-00-1-1-0");
        assert_eq!(theirs.claim(&key).unwrap(), Attempt::Claimed);
        let start = Instant::now();
        for beat in 0.. {
            fs::write(scratch.path().join("elsewhere-00-1-1-0.alive"), beat.to_string()).unwrap();
            assert_eq!(ours.claim(&key).unwrap(), Attempt::Held);
            std::thread::sleep(Duration::from_millis(5));
            if start.elapsed() > Duration::from_millis(400) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(ours.claim(&key).unwrap(), Attempt::Claimed);
    }

    #[test]
    fn many_threads_claim_each_run_once() {
        let scratch = Scratch::new("race");
        let keys: Vec<Key> = (1..=50).map(|size| Run::work("nw").with("size", size).key()).collect();
        let claimed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (keys, claimed, folder) = (&keys, &claimed, scratch.path());
                scope.spawn(move || {
                    let claims = by(folder, &format!("elsewhere-00-{thread}-1-0"));
                    for key in keys {
                        if claims.claim(key).unwrap() == Attempt::Claimed {
                            claimed.lock().unwrap().push(key.clone());
                        }
                    }
                });
            }
        });
        let mut claimed = claimed.into_inner().unwrap();
        claimed.sort();
        let mut keys = keys;
        keys.sort();
        assert_eq!(claimed, keys);
    }
}
