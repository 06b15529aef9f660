//! Sweep files and the runs they name.

use super::*;

fn parsed(text: &str) -> Result<Sweep, SweepError> {
    Sweep::parse(text, "test", Path::new(""))
}

fn runs(text: &str) -> Vec<String> {
    let planned = parsed(text).and_then(|sweep| sweep.runs()).unwrap_or_else(|error| panic!("{error}"));
    planned.iter().map(|planned| planned.run.to_string()).collect()
}

/// The message and its help.
fn refused(text: &str) -> String {
    let error = parsed(text).and_then(|sweep| sweep.runs().map(|_| ())).unwrap_err();
    error.help.iter().fold(error.message.clone(), |message, help| format!("{message}; {help}"))
}

#[test]
fn lists_and_ranges_are_multiplied() {
    let text = "work = 'hashtable'\nsched = ['lrr', 'gto']\nseeds = 2\n[params]\nkeys = 500\n\
                buckets = { from = 16, to = 64, times = 2 }\n";
    let sweep = parsed(text).unwrap();
    assert_eq!(
        (sweep.combinations(), sweep.shape().as_str()),
        (12, "hashtable × 2 sched × 3 buckets × 2 seed")
    );
    assert_eq!(sweep.columns(), ["work", "sched", "buckets", "keys", "seed"]);
    let runs = runs(text);
    assert_eq!(runs.len(), 12);
    assert_eq!(runs[0], "work hashtable buckets=16 keys=500 seed=1 on gtx480, lrr");
    assert_eq!(runs[1], "work hashtable buckets=16 keys=500 seed=2 on gtx480, lrr");
    assert_eq!(runs[11], "work hashtable buckets=64 keys=500 seed=2 on gtx480, gto");
}

#[test]
fn ranges() {
    let values = |text: &str| {
        let table: Table = toml::from_str(&format!("x = {text}")).unwrap();
        let values = axis("x", &table["x"]).map_err(|error| error.message);
        values.map(|axis| axis.rows.iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join(" "))
    };
    let ok = |text: &str| Ok(text.to_string());
    assert_eq!(values("{ from = 1, to = 4 }"), ok("1 2 3 4"));
    assert_eq!(values("{ from = 1, to = 6, step = 2 }"), ok("1 3 5"));
    assert_eq!(values("{ from = 16, to = 1024, times = 4 }"), ok("16 64 256 1024"));
    assert_eq!(values("{ from = 0.1, to = 0.3, step = 0.1 }"), ok("0.1 0.2 0.30000000000000004"));
    assert_eq!(values("7"), ok("7"));
    let empty = "`x`: there is nothing from 9 to 1".to_string();
    assert_eq!(values("{ from = 9, to = 1 }"), Err(empty));
    for (text, part) in [
        ("{ from = 1 }", "`to` is missing"),
        ("{ from = 1, to = 2, by = 3 }", "a range has no `by`"),
        ("{ from = 1, to = 2, step = 0 }", "never end"),
        ("{ from = 0, to = 2, times = 2 }", "never end"),
        ("{ from = 1, to = 9, times = 2, step = 2 }", "both `step` and `times`"),
        ("{ from = 'a', to = 9 }", "`from` is no number"),
        ("{ from = 0, to = 1_000_000_000 }", "more than ten million"),
        ("[]", "has no values"),
        ("[1, 2, 1]", "has 1 twice"),
        ("[[1]]", "is no number and no text"),
    ] {
        let error = values(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn policies_chips_and_changes() {
    let text = "work = 'nw'\nchip = ['gtx480', 'gtx570']\nbows = ['off', 'adaptive', 500]\nmodel = 'timing'\n\
                max_cycles = 1000\n[set]\nsm.count = [1, 2]\n'l2.latency_cycles' = 100\n";
    let text = text.replace("'l2.latency_cycles' = 100\n", "");
    let runs = runs(&text);
    assert_eq!(runs.len(), 12);
    assert_eq!(runs[0], "work nw on gtx480 (issue.bows.enabled=false, sm.count=1), at most 1000 cycles");
    let fixed = "issue.bows.enabled=true, issue.bows.adaptive=false, issue.bows.limit_cycles=500, sm.count=2";
    assert_eq!(runs[11], format!("work nw on gtx570 ({fixed}), at most 1000 cycles"));
}

#[test]
fn workloads_have_their_own_parameters_and_chips() {
    let text = "[work.nw]\nsize = [30, 62]\n[work.vecadd]\nsize = 64\n[work.fibonacci]\n";
    let sweep = parsed(text).unwrap();
    assert_eq!(sweep.shape(), "(fibonacci + nw × 2 size + vecadd)");
    let runs = runs(text);
    assert_eq!(
        runs,
        [
            "work fibonacci on apu",
            "work nw size=30 on gtx480",
            "work nw size=62 on gtx480",
            "work vecadd size=64 on gtx480"
        ]
    );
}

#[test]
fn zipped_columns_vary_together() {
    let text = "work = 'hashtable'\n[[zip]]\nctas = [1, 2]\nkeys = [100, 200]\nset.sm.count = [3, 4]\n";
    let planned = parsed(text).unwrap().runs().unwrap();
    let settings: Vec<String> = planned
        .iter()
        .map(|run| {
            run.settings.iter().map(|(name, cell)| format!("{name}={cell}")).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        settings,
        ["work=hashtable ctas=1 keys=100 set.sm.count=3", "work=hashtable ctas=2 keys=200 set.sm.count=4"]
    );
    let uneven = "work = 'hashtable'\n[[zip]]\nctas = [1, 2]\nkeys = [100]\n";
    assert!(refused(uneven).starts_with("[[zip]]: ctas has 2, keys has 1"), "{}", refused(uneven));
}

#[test]
fn filters() {
    let sweep =
        "work = 'hashtable'\nsched = ['lrr', 'gto']\n[params]\nkeys = [50, 100]\nbuckets = [16, 64, 256]\n";
    let count = |skip: &str| runs(&format!("{sweep}[[skip]]\n{skip}\n")).len();
    assert_eq!(count("sched = 'lrr'"), 6);
    assert_eq!(count("sched = 'lrr'\nbuckets = [16, 64]"), 8);
    assert_eq!(count("buckets = { min = 64 }"), 4);
    assert_eq!(count("buckets = { max = 64 }"), 4);
    // More buckets than keys.
    assert_eq!(count("buckets = { min = 'keys' }"), 6);
    assert_eq!(count("sched = 'lrr'\n[[skip]]\nkeys = 50"), 3);
    let refused = |skip: &str| refused(&format!("{sweep}[[skip]]\n{skip}\n"));
    assert!(
        refused("shed = 'lrr'")
            .starts_with("[[skip]] names `shed`, which is no column; the columns are work, ")
    );
    assert!(refused("buckets = { min = 'key' }").contains("`key`, which is no column"));
    assert!(refused("buckets = { min = 1, least = 2 }").contains("`buckets` has no `least`"));
    assert!(refused("keys = { min = 0 }").starts_with("the filters leave no run"));
}

#[test]
fn kernels_with_several_launches() {
    let text = "seeds = 2\n[params]\nn = [64, 128]\n[kernel]\nfile = 'k.ptx'\n[kernel.buffers]\n\
                data = 'u32:{n}=random:{seed}'\n[[kernel.launch]]\nentry = 'init'\ngrid = '{n}'\nblock = [32, 2]\n\
                args = ['data', 'u32:{n}']\n[[kernel.launch]]\nentry = 'step'\ngrid = 4\ntimes = 3\nargs = ['data']\n";
    let planned = parsed(text).unwrap().runs().unwrap();
    assert_eq!(planned.len(), 4);
    assert_eq!(planned[3].run.to_string(), "k.ptx init<128,1,1>(data, u32:128) step<4,1,1>(data) on gtx480");
    assert_eq!(planned[0].setting("seed"), Some(&Cell::Number(1)));
    let keys: BTreeSet<_> = planned.iter().map(|planned| planned.key.to_string()).collect();
    assert_eq!(keys.len(), 4);
    let missing = parsed(text).unwrap().check_files(&planned).unwrap_err();
    assert_eq!(missing.message, "there is no file `k.ptx`");
    for (from, to, part) in [
        ("'u32:{n}'", "'u32:{m}'", "names the parameter `m`, which there is not"),
        ("'u32:{n}'", "'u32:{n'", "has a `{` without its `}`"),
        ("args = ['data']", "args = ['date']", "argument 0: there is no buffer `date`"),
        ("'u32:{n}=random:{seed}'", "'u33:{n}=random:{seed}'", "buffer `data`: no type `u33`"),
        ("grid = 4", "grid = 'four'", "grid of a launch is `four`"),
        ("grid = 4", "gird = 4", "unknown field `gird`"),
        ("random:{seed}", "zero", "parameter `seed` is used nowhere"),
        ("n = [64", "cycles = 1\nn = [64", "parameter `cycles` has the name of a figure"),
        ("[kernel]\n", "[kernel]\nwork = 1\n", "unknown field `work`"),
    ] {
        assert!(text.contains(from), "{from}");
        let message = refused(&text.replace(from, to));
        assert!(message.contains(part), "{to}: {message}");
    }
}

#[test]
fn mistakes_are_told_with_the_mend() {
    for (text, parts) in [
        ("", ["none of `work`, `kernel` and `plan`", "work --list"]),
        ("work = 'hastable'\n", ["no workload `hastable`", "hashtable"]),
        ("work = 'nw'\nschedd = 'lrr'\n", ["unknown field `schedd`", "line 2"]),
        ("work = 'nw'\nsched = 'rr'\n", ["sched = rr", "one of \"lrr\""]),
        ("work = 'nw'\nbows = 'maybe'\n", ["bows = maybe", "or a number of cycles"]),
        ("work = 'nw'\nmodel = 'slow'\n", ["model = slow", "\"functional\""]),
        ("work = 'nw'\nchip = 'gtx999'\n", ["gtx999", "warploom chips"]),
        ("work = 'nw'\nchip = 480\n", ["chip = 480", "name of a chip"]),
        ("work = 'nw'\n[set]\nsm.cout = 1\n", ["sm.cout", "every key"]),
        ("work = 'nw'\n[params]\nsise = 1\n", ["no parameter `sise`", "size"]),
        ("work = 'nw'\n[params]\nsize = 0\n", ["size=0", "a number from"]),
        ("work = 'nw'\n[params]\nsize = []\n", ["`size` has no values", "one at least"]),
        ("work = 'nw'\nseeds = 2\n[params]\nseed = 1\n", ["`seed` is given twice", "one place"]),
        ("work = 'nw'\nseeds = 0\n", ["seeds = 0", "from 1 on"]),
        ("work = 'nw'\nseeds = -3\n", ["seeds = -3", "from 1 on"]),
        ("work = 'nw'\nseeds = 9223372036854775807\n", ["more than ten million", "fewer"]),
        ("work = 'nw'\n[limits]\ntime_s = -1\n", ["limits.time_s allows no run", "no limit"]),
        ("work = 'nw'\n[limits]\nmemory_mb = 0\n", ["limits.memory_mb allows no run", "no limit"]),
        ("work = 'nw'\n[limits]\nmemory = 1\n", ["unknown field `memory`", "memory_mb"]),
        ("work = ['nw'\n", ["TOML parse error", "line 1"]),
    ] {
        let message = refused(text);
        for part in parts {
            assert!(message.contains(part), "{text}: {message}");
        }
    }
    let both = "work = 'nw'\n[kernel]\nfile = 'k.ptx'\nlaunch = []\n";
    assert!(refused(both).contains("more than one of `work`, `kernel` and `plan`"));
}

#[test]
fn large_products_are_counted_without_being_made() {
    let text = "work = 'hashtable'\n[params]\nkeys = { from = 1, to = 100_000 }\n\
                buckets = { from = 1, to = 100_000 }\n";
    assert_eq!(parsed(text).unwrap().combinations(), 10_000_000_000);
}

#[test]
fn all_runs_of_a_sweep_are_profiled() {
    let text = "work = 'nw'\nprofile = true\nsched = ['lrr', 'gto']\n";
    assert_eq!(runs(text), ["work nw on gtx480, lrr, profiled", "work nw on gtx480, gto, profiled"]);
    let message = refused("work = 'nw'\nprofile = true\nmodel = ['timing', 'functional']\n");
    assert!(message.starts_with("profile = true: the functional model has no time to profile"), "{message}");
}
