use super::*;
use crate::kit::ids::Ticket;
use crate::time::cache::MAX_LINE_BYTES;

const LINE: LineAddress = LineAddress(0x1000_0000);

fn nodes() -> NodePorts {
    NodePorts::new(8)
}

fn request(sm: u16, asks: Asks) -> Request {
    let kind = if asks == Asks::GiveBack { RequestKind::Write } else { RequestKind::Read };
    let (from, ticket) = (Node::Sm(sm), Ticket(sm as u32));
    Request { line: LINE, port: 0, sectors: 3, whole: 3, kind, from, ticket, asks, missed: false, far: false }
}

fn atomic(sm: u16) -> Request {
    let kind = RequestKind::Atomic {
        passes: 1,
        same_word: 1,
        words: 1,
        lanes: 1,
        adds: false,
        operand_bytes: 4,
        result_bytes: 4,
    };
    Request { kind, ..request(sm, Asks::Nothing) }
}

fn given(dirty: bool) -> Option<Box<Given>> {
    Some(Box::new(Given { bytes: [7; MAX_LINE_BYTES], written: LineWritten::MAX, dirty }))
}

/// The actions since the last call, without bytes.
fn told(directory: &mut Directory) -> Vec<String> {
    let port = |node: Node| nodes().port(node);
    let tell = |action: Action| match action {
        Action::Forward { at, request } => format!("{at} forward {}", port(request.from)),
        Action::Probe { at, node, probe } => {
            format!("{at} {} {}", if probe.takes { "take" } else { "share" }, port(node))
        }
        Action::Write { .. } => "write".to_string(),
        Action::Keep { request } => format!("keep {}", port(request.from)),
        Action::Answer { at, request, grant, source, .. } => {
            let grant = grant.map_or("nothing".to_string(), |grant| format!("{grant:?}"));
            format!("{at} {} gets {grant} from {source:?}", port(request.from))
        }
    };
    std::mem::take(&mut directory.actions).into_iter().map(tell).collect()
}

/// SM 0 has the line exclusively.
fn owned() -> Directory {
    let mut directory = Directory::new(16, nodes());
    directory.accept(Cycle(100), request(0, Asks::Share));
    assert_eq!(told(&mut directory), ["100 forward 0"]);
    directory.served(Cycle(120), &Request { missed: true, ..request(0, Asks::Share) });
    assert_eq!(told(&mut directory), ["120 0 gets Exclusive from Slice"]);
    directory
}

#[test]
fn the_first_reader_may_write_and_the_second_shares() {
    let mut directory = owned();
    directory.accept(Cycle(200), request(1, Asks::Share));
    assert_eq!(told(&mut directory), ["216 share 0"]);
    directory.respond(Cycle(230), LINE, given(false));
    assert_eq!(told(&mut directory), ["230 1 gets Shared from Cache"]);
    directory.accept(Cycle(300), request(2, Asks::Share));
    assert_eq!(told(&mut directory), ["300 forward 2"], "clean: the slice has it");
}

#[test]
fn a_dirty_line_stays_with_its_owner() {
    let mut directory = owned();
    for (sm, at) in [(1, 200), (2, 300)] {
        directory.accept(Cycle(at), request(sm, Asks::Share));
        assert_eq!(told(&mut directory), [format!("{} share 0", at + 16)]);
        directory.respond(Cycle(at + 30), LINE, given(true));
        assert_eq!(told(&mut directory), [format!("{} {sm} gets Shared from Cache", at + 30)]);
    }
    assert_eq!(directory.stats.cache_to_cache, 2);
    directory.accept(Cycle(400), request(1, Asks::Own { has_copy: true }));
    assert_eq!(told(&mut directory), ["416 take 0", "416 take 2"]);
    directory.respond(Cycle(430), LINE, None);
    directory.respond(Cycle(435), LINE, given(true));
    assert_eq!(told(&mut directory), ["435 1 gets Modified from Asker"]);
}

#[test]
fn a_writer_waits_for_sharers_while_the_slice_reads() {
    let mut directory = owned();
    directory.accept(Cycle(200), request(1, Asks::Share));
    directory.respond(Cycle(230), LINE, given(false));
    told(&mut directory);
    directory.accept(Cycle(300), request(3, Asks::Own { has_copy: false }));
    assert_eq!(told(&mut directory), ["316 take 0", "316 take 1", "300 forward 3"]);
    directory.served(Cycle(318), &request(3, Asks::Own { has_copy: false }));
    directory.respond(Cycle(330), LINE, None);
    assert!(told(&mut directory).is_empty());
    directory.respond(Cycle(331), LINE, None);
    assert_eq!(told(&mut directory), ["331 3 gets Modified from Slice"]);
}

#[test]
fn an_atomic_takes_the_line_to_memory_first() {
    let mut directory = owned();
    directory.accept(Cycle(200), atomic(0));
    directory.accept(Cycle(201), request(1, Asks::Share));
    assert_eq!(told(&mut directory), ["216 take 0"], "even from the asker, and the next one waits");
    directory.respond(Cycle(230), LINE, given(true));
    assert_eq!(told(&mut directory), ["write", "230 forward 0"]);
    directory.served(Cycle(250), &atomic(0));
    assert_eq!(told(&mut directory), ["250 0 gets nothing from Cache", "250 forward 1"]);
}

#[test]
fn a_line_given_back_too_late_does_not_count() {
    let mut directory = owned();
    directory.accept(Cycle(200), request(1, Asks::Own { has_copy: false }));
    directory.accept(Cycle(205), request(0, Asks::GiveBack));
    directory.respond(Cycle(230), LINE, given(true));
    let expected = ["216 take 0", "230 1 gets Modified from Cache", "246 0 gets nothing from Slice"];
    assert_eq!(told(&mut directory), expected);
    directory.accept(Cycle(300), request(1, Asks::GiveBack));
    directory.served(Cycle(320), &request(1, Asks::GiveBack));
    assert_eq!(told(&mut directory), ["300 forward 1", "keep 1", "320 1 gets nothing from Slice"]);
    assert!(directory.is_idle());
}

#[test]
fn a_line_that_was_dropped_is_not_probed_for() {
    let mut directory = owned();
    directory.accept(Cycle(200), request(1, Asks::Share));
    directory.respond(Cycle(230), LINE, given(false));
    told(&mut directory);
    directory.dropped(LINE, Node::Sm(0));
    directory.accept(Cycle(400), request(1, Asks::Own { has_copy: true }));
    assert_eq!(told(&mut directory), ["416 1 gets Modified from Asker"], "nobody else has it");
    assert_eq!((directory.stats.dropped, directory.stats.invalidations), (1, 0));
}

#[test]
fn the_last_copy_that_is_dropped_leaves_nothing() {
    let mut directory = owned();
    directory.dropped(LINE, Node::Sm(0));
    assert!(directory.lines.is_empty());
    directory.accept(Cycle(300), request(1, Asks::Share));
    assert_eq!(told(&mut directory), ["300 forward 1"]);
}

/// The probe of another reader and the message that the owner has dropped the line cross each other.
#[test]
fn an_owner_may_have_dropped_a_clean_line() {
    let mut directory = owned();
    directory.accept(Cycle(200), request(1, Asks::Share));
    directory.dropped(LINE, Node::Sm(0));
    directory.respond(Cycle(230), LINE, None);
    assert_eq!(told(&mut directory), ["216 share 0", "230 forward 1"]);
    directory.served(Cycle(250), &request(1, Asks::Share));
    assert_eq!(told(&mut directory), ["250 1 gets Shared from Slice"], "with the L2, which had it");
}
