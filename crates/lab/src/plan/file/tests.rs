use super::*;

const BFS: &str = "\
file = 'bfs.ptx'

[params]
n = 4

[buffers]
row = 'u32:5=list:0,1,2,3,3'
level = 'u32:{n}=value:7'
start = 'u32:{n}=copy:level'
changed = 'u32:1=zero'

[[launch]]
until_zero = 'changed'
at_most = 9
[[launch.launch]]
fill = { changed = 'zero' }
grid = 1
block = '{n}'
args = ['row', 'level', 'depth=u32:{iteration}', 'changed']
swap = [['level', 'start']]

[check]
level = 'value:3'
";

fn plan(text: &str) -> Result<Plan, PlanProblem> {
    PlanFile::parse(text)?.plan(&[], Path::new("sub"))
}

#[test]
fn a_loop_with_everything() {
    let plan = plan(BFS).unwrap();
    assert_eq!(plan.to_string(), "bfs.ptx <1,1,1>(row, level, depth=u32:{iteration}, changed)");
    let [Step::Loop(planned)] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert_eq!((planned.until_zero.to_string().as_str(), planned.at_most), ("changed[0]", 9));
    let [Step::Launch(launch)] = &planned.steps[..] else { panic!("{:?}", planned.steps) };
    assert_eq!((launch.block, launch.fill["changed"].as_str()), (Some([4, 1, 1]), "zero"));
    assert_eq!(plan.buffers["start"], "u32:4=copy:level");
    assert_eq!(plan.checks["level"], Expected { content: "value:3".to_string(), within: 0.0 });
    assert_eq!(plan.kernel_file().0, Path::new("sub/bfs.ptx"));
    let described = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(described).unwrap(), plan);
}

#[test]
fn given_parameters_win() {
    let given = [("n".to_string(), "8".to_string())];
    let plan = PlanFile::parse(BFS).unwrap().plan(&given, Path::new("")).unwrap();
    assert_eq!(plan.buffers["level"], "u32:8=value:7");
}

#[test]
fn mistakes_are_told_with_their_line_and_a_mend() {
    let changed = |from: &str, to: &str| {
        assert!(BFS.contains(from), "{from}");
        plan(&BFS.replacen(from, to, 1)).unwrap_err()
    };
    for (from, to, line, message, help) in [
        (
            "until_zero = 'changed'",
            "until_zero = 'done'",
            12,
            "there is no buffer `done`",
            "`changed`, `level`",
        ),
        ("until_zero = 'changed'", "until_zero = 'changed[3]'", 12, "no changed[3]", "count from 0"),
        ("until_zero = 'changed'", "until_zero = 'changed]'", 12, "no buffer `changed]`", "there are"),
        ("until_zero = 'changed'\n", "", 12, "a loop needs `until_zero`", "until_zero ="),
        ("at_most = 9", "at_most = 9\ngrid = 1", 12, "a loop has no `grid`", "[[launch.launch]]"),
        ("copy:level", "copy:lost", 9, "there is no buffer `lost`", "there are"),
        (
            "value:7",
            "copy:start",
            8,
            "buffers copy each other: level copies start copies level",
            "give one of them",
        ),
        ("'u32:{n}=copy", "'u32:9=copy", 9, "it has 36 bytes, and `level`, which it copies, 16", "the type"),
        ("'u32:5=list", "'u33:5=list", 7, "no type `u33`", ""),
        (
            "fill = { changed = 'zero' }",
            "fill = { chang = 'zero' }",
            16,
            "there is no buffer `chang`",
            "there are",
        ),
        ("fill = { changed = 'zero' }", "fill = { changed = 'one' }", 16, "`one` is no content", ""),
        ("'row', 'level'", "'rows', 'level'", 19, "argument 0: there is no buffer `rows`", "`row`"),
        ("'row', 'level'", "'row:5', 'level'", 19, "argument 0, `row:5`, is no buffer", ""),
        ("[['level', 'start']]", "[['level', 'row']]", 15, "u32:4 and u32:5 cannot be swapped", "same type"),
        ("grid = 1", "grid = 'x'", 15, "grid of a launch is `x`", ""),
        ("grid = 1\n", "", 15, "a launch needs its `grid`", "grid = 64"),
        ("level = 'value:3'", "level = 'value:x'", 23, "`x` is no u32", ""),
        ("level = 'value:3'", "level = 3", 23, "a check cannot be 3", "value:7"),
        ("level = 'value:3'", "levels = 'value:3'", 23, "there is no buffer `levels`", "there are"),
        ("'u32:{n}=value", "'u32:{m}=value", 8, "names the parameter `m`", "parameters are"),
    ] {
        let error = changed(from, to);
        assert_eq!(error.line, Some(line), "{to}: {error}");
        assert!(error.message.contains(message), "{to}: {error}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{to}: {error:?}");
    }
    let outside = "file = 'k.ptx'\n\n[[launch]]\ngrid = 1\nargs = ['u32:{iteration}']\n";
    let error = plan(outside).unwrap_err();
    assert_eq!((error.line, error.message.contains("is in none")), (Some(3), true), "{error}");
    assert!(plan("file = 'k.ptx'\nlaunch = []\n").unwrap_err().message.contains("launches nothing"));
    assert!(changed("n = 4", "n = 4\nm = 1").message.contains("`m` is used nowhere"));
    assert!(changed("n = 4", "n = '{n}'").message.contains("parameter `n` is `{n}`: it names another"));
    assert!(changed("n = 4", "n = [4]").message.contains("is [4]: it is a number or a text"));
    // What is wrong with TOML itself shows its line.
    let unknown = changed("at_most = 9", "atmost = 9");
    assert!(
        unknown.message.contains("unknown field `atmost`") && unknown.message.contains("14"),
        "{unknown}"
    );
}
