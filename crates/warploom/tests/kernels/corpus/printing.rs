//! Formatted output and assertions.

use warploom::{Error, FaultKind, Launch, args};

use crate::support::{Outcome, Run, same};

pub(super) fn hello(run: &mut Run) -> Outcome {
    for (n, threads, ctas) in [(1u32, 1u32, 1u32), (77, 32, 3), (30, 4, 12)] {
        let report = run.launch(Launch::grid(ctas).block(threads), args![n])?;
        let mut expected = String::from("hello, 100% plain\n");
        for i in 0..n {
            let (hex, half) = (i.wrapping_mul(0x9e37_79b9), f64::from(i) * 0.5);
            let (parity, letter) =
                (if i % 2 == 1 { "odd" } else { "even" }, char::from(b'a' + (i % 26) as u8));
            expected +=
                &format!("thread {i} of {n}: hex {hex:x}, half {half:.6}, {parity}, letter {letter}\n");
            let (big, quarter) = (u64::from(i) * 10_000_000_000, f64::from(i) * 0.25);
            expected += &format!("big {big}, quarter {quarter:5.2}, [{i:<6}] [{i:06}] {}\n", -i64::from(i));
        }
        if run.gpu.is_real() {
            // The driver prints to the process's output instead.
            continue;
        }
        let (got, expected): (Vec<_>, Vec<_>) = (report.output.lines().collect(), expected.lines().collect());
        same("line", &got, &expected)?;
    }
    Ok(())
}

pub(super) fn checked(run: &mut Run) -> Outcome {
    let mut values = vec![3i32; 70];
    values[0] = 0;
    let input = run.gpu.buffer(&values)?;
    let launch = || Launch::grid(3).block(32);
    let report = run.launch(launch(), args![&input, 70u32])?;
    same("output", &[report.output.as_str()], &[""])?;
    if run.gpu.is_real() {
        // A failed assertion makes a real GPU unusable for the whole process.
        return Ok(());
    }
    values[37] = -1;
    input.write(&mut run.gpu, &values)?;
    let error = run.launch(launch(), args![&input, 70u32]).err().ok_or("the assertion holds for -1")?;
    let Error::Fault { fault: Some(fault), .. } = &error else { return Err(error.into()) };
    let FaultKind::Assert { message, file, line, function } = &fault.kind else { return Err(error.into()) };
    same("message", &[message.as_str()], &["in[i] >= 0"])?;
    same("file", &[file.as_str()], &["printf.cu"])?;
    same("line", &[*line], &[17])?;
    if function != "checked" && !function.starts_with("void checked(") {
        return Err(format!("the function is `{function}`").into());
    }
    same("CTA and thread", &[fault.cta, fault.thread], &[[1, 0, 0], [5, 0, 0]])?;
    // Elements beyond n must not be looked at.
    run.launch(launch(), args![&input, 37u32])?;
    Ok(())
}
