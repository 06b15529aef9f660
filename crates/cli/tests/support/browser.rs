//! A real browser, for tests of pages: Chromium without a window, driven through its debugging pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::scratch;

/// Names under which distributions install it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
    /// Errors that pages have thrown.
    pub(crate) errors: Vec<String>,
}

impl Browser {
    /// Starts a browser with files of its own in a directory of this name. Without one, the test says that it tests
    /// nothing.
    pub(crate) fn start(name: &str) -> Option<Browser> {
        let is_there = |name: &&&str| {
            let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(program) = NAMES.iter().find(is_there) else {
            // Not by eprintln!, whose text is shown only if a test fails.
            let warning =
                b"\n*** NOT TESTED: no Chromium here to open pages with (apt-get install chromium). ***\n\n";
            let _ = std::io::stderr().write_all(warning);
            return None;
        };
        let folder = scratch(name);
        // The browser reads commands from file 3 and answers on file 4.
        let line = format!(
            "exec {program} --headless --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir='{}' \
             about:blank 3<&0 4>&1",
            folder.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Browser { child, to, from, calls: 0, session: None, errors: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = json!({ "targetId": target, "flatten": true });
        let session =
            browser.call("Target.attachToTarget", attached)["sessionId"].as_str().unwrap().to_string();
        browser.session = Some(session);
        browser.call("Runtime.enable", json!({}));
        browser.call("Page.enable", json!({}));
        // Not by the clock: other programs may have the processor.
        Some(browser)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser ended in {method}");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["method"] == "Runtime.exceptionThrown" {
                self.errors.push(answer["params"]["exceptionDetails"].to_string());
            }
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Opens a page of this width, and waits until it says that it is ready.
    #[track_caller]
    pub(crate) fn open(&mut self, file: &Path, width: u32, dark: bool) {
        let size = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [scheme] }));
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        let began = Instant::now();
        while self.value("document.body?.dataset.ready ?? null").is_null() {
            assert!(began.elapsed() < Duration::from_secs(120), "the page does not become ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(self.value("document.body.dataset.ready"), "true", "{:?}", self.errors);
    }

    /// Presses and releases the mouse, in CSS pixels of the window.
    pub(crate) fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Counts how often each block of a page's scripts is executed. The page is opened after this.
    pub(crate) fn count_blocks(&mut self) {
        self.call("Profiler.enable", json!({}));
        self.call("Profiler.startPreciseCoverage", json!({ "callCount": true, "detailed": true }));
    }

    /// Blocks of the page's scripts executed since the last call: work in a measure that no busy machine changes.
    pub(crate) fn blocks(&mut self) -> u64 {
        let coverage = self.call("Profiler.takePreciseCoverage", json!({}));
        let scripts = coverage["result"].as_array().unwrap().iter();
        let of_page = scripts.filter(|script| script["url"].as_str().unwrap().starts_with("file://"));
        let functions = of_page.flat_map(|script| script["functions"].as_array().unwrap());
        let ranges = functions.flat_map(|function| function["ranges"].as_array().unwrap());
        ranges.map(|range| range["count"].as_u64().unwrap()).sum()
    }

    /// The colours of the window's pixels that differ: a blank page has few.
    pub(crate) fn screenshot_bytes(&mut self) -> usize {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        picture["data"].as_str().unwrap().len()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
