//! Sharing memory between processes: this test program starts itself again as the peer, which talks over its standard input and output.

mod common;

use std::ffi::{c_char, c_void, CStr};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::*;
use npushmem_ffi::acl;

const HUGE: usize = 2 << 20;
const INVALID: i32 = acl::ACL_ERROR_RT_PARAM_INVALID;
/// Set in the peer.
const ROLE: &str = "NPUSIM_TEST_PEER";
/// Begins the peer's answers, between whatever the test harness prints.
const MARK: &str = "peer: ";

/// A second process that imports what it is told to.
struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "the_peer", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: one system call, as allowed between fork and exec: the peer ends with this thread's process.
        unsafe {
            command.pre_exec(|| {
                libc_prctl();
                Ok(())
            });
        }
        let mut child = command.spawn().expect("the peer starts");
        let (to, from) = (
            child.stdin.take().expect("piped"),
            child.stdout.take().expect("piped"),
        );
        Self {
            child,
            to,
            from: BufReader::new(from),
        }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Asks for something and returns the answer: a code, and a text or a value.
    fn ask(&mut self, question: &str) -> (i32, String) {
        writeln!(self.to, "{question}").expect("the peer listens");
        loop {
            let mut line = String::new();
            assert!(
                self.from.read_line(&mut line).expect("the peer answers") > 0,
                "the peer has ended"
            );
            // The harness prints the test's name without a line end.
            if let Some((_, answer)) = line.split_once(MARK) {
                let (code, rest) = answer
                    .trim_end_matches('\n')
                    .split_once(' ')
                    .expect("a code and more");
                return (code.parse().expect("a code"), rest.to_owned());
            }
        }
    }

    #[track_caller]
    fn ask_ok(&mut self, question: &str) -> String {
        let (code, text) = self.ask(question);
        assert_eq!(code, 0, "{question}: {text}");
        text
    }

    #[track_caller]
    fn ask_refused(&mut self, question: &str, code: i32, words: &[&str]) {
        let (got, text) = self.ask(question);
        assert_eq!(got, code, "{question}: {text}");
        for word in words {
            assert!(text.contains(word), "\"{word}\" is not in: {text}");
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn libc_prctl() {
    // SAFETY: a plain system call: ask for SIGKILL when the parent ends.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
        .collect()
}

/// What the peer does with one line; `Err` is a refused call.
fn answer(line: &str, imported: &mut Vec<acl::aclrtDrvMemHandle>) -> Result<String, i32> {
    let acl = runtime();
    let words: Vec<&str> = line.split(' ').collect();
    let check = |code: i32| if code == 0 { Ok(()) } else { Err(code) };
    let mut handle = std::ptr::null_mut();
    let mut place = std::ptr::null_mut::<c_void>();
    // SAFETY: handles and addresses are those that the calls returned, or are meant to be refused.
    unsafe {
        match words[0] {
            "fabric" => {
                let mut bytes = unhex(words[1]);
                let kind = acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
                check((acl.aclrtMemImportFromShareableHandleV2)(
                    bytes.as_mut_ptr().cast(),
                    kind,
                    words[2].parse().expect("flags"),
                    &mut handle,
                ))?;
                imported.push(handle);
                Ok(format!("{}", imported.len() - 1))
            }
            "u64" => {
                let value = words[1].parse().expect("a handle");
                check((acl.aclrtMemImportFromShareableHandle)(
                    value,
                    1,
                    &mut handle,
                ))?;
                imported.push(handle);
                Ok(format!("{}", imported.len() - 1))
            }
            "enable" => check((acl.aclrtDeviceEnablePeerAccess)(
                words[1].parse().expect("a device"),
                0,
            ))
            .map(|()| String::new()),
            "map" => {
                let handle = imported[words[1].parse::<usize>().expect("a number")];
                check((acl.aclrtReserveMemAddress)(
                    &mut place,
                    HUGE,
                    0,
                    std::ptr::null_mut(),
                    0,
                ))?;
                check((acl.aclrtMapMem)(place, HUGE, 0, handle, 0))?;
                Ok(format!("{}", place as u64))
            }
            "mix" => {
                // An imported and an own handle in one reservation.
                let theirs = imported[words[1].parse::<usize>().expect("a number")];
                let prop = acl::aclrtPhysicalMemProp {
                    memAttr: acl::ACL_HBM_MEM_HUGE,
                    location: acl::aclrtMemLocation {
                        id: 0,
                        type_: acl::ACL_MEM_LOCATION_TYPE_DEVICE,
                    },
                    ..Default::default()
                };
                check((acl.aclrtReserveMemAddress)(
                    &mut place,
                    2 * HUGE,
                    0,
                    std::ptr::null_mut(),
                    0,
                ))?;
                check((acl.aclrtMallocPhysical)(&mut handle, HUGE, &prop, 0))?;
                check((acl.aclrtMapMem)(place, HUGE, 0, handle, 0))?;
                check((acl.aclrtMapMem)(place.byte_add(HUGE), HUGE, 0, theirs, 0))
                    .map(|()| String::new())
            }
            "export" => {
                let mut out = 0u64;
                let handle = imported[words[1].parse::<usize>().expect("a number")];
                check((acl.aclrtMemExportToShareableHandle)(
                    handle, 0, 1, &mut out,
                ))
                .map(|()| String::new())
            }
            "key" => {
                let key = std::ffi::CString::new(words[1]).expect("no NUL");
                check((acl.aclrtIpcMemImportByKey)(
                    &mut place,
                    key.as_ptr(),
                    words[2].parse().expect("flags"),
                ))?;
                Ok(format!("{}", place as u64))
            }
            "close" => {
                let key = std::ffi::CString::new(words[1]).expect("no NUL");
                check((acl.aclrtIpcMemClose)(key.as_ptr())).map(|()| String::new())
            }
            "read" => Ok(format!(
                "{}",
                (words[1].parse::<u64>().expect("an address") as *const u64).read_volatile()
            )),
            "write" => {
                let at = words[1].parse::<u64>().expect("an address") as *mut u64;
                at.write_volatile(words[2].parse().expect("a value"));
                Ok(String::new())
            }
            other => panic!("unknown question {other}"),
        }
    }
}

/// Not a test by itself: what the second process runs.
#[test]
fn the_peer() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    device(0);
    let mut imported = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.expect("the parent asks");
        let (code, text) = match answer(&line, &mut imported) {
            Ok(text) => (0, text),
            Err(code) => (code, recent()),
        };
        println!("{MARK}{code} {text}");
    }
}

fn physical(device: u32) -> acl::aclrtDrvMemHandle {
    let prop = acl::aclrtPhysicalMemProp {
        memAttr: acl::ACL_HBM_MEM_HUGE,
        location: acl::aclrtMemLocation {
            id: device,
            type_: acl::ACL_MEM_LOCATION_TYPE_DEVICE,
        },
        ..Default::default()
    };
    let mut handle = std::ptr::null_mut();
    // SAFETY: an out-parameter, and a structure that lives during the call.
    ok(unsafe { (runtime().aclrtMallocPhysical)(&mut handle, HUGE, &prop, 0) });
    handle
}

fn mapped(handle: acl::aclrtDrvMemHandle) -> *mut c_void {
    let mut at = std::ptr::null_mut();
    // SAFETY: an out-parameter, a handle of this test.
    unsafe {
        ok((runtime().aclrtReserveMemAddress)(
            &mut at,
            HUGE,
            0,
            std::ptr::null_mut(),
            0,
        ));
        ok((runtime().aclrtMapMem)(at, HUGE, 0, handle, 0));
    }
    at
}

fn export_fabric(handle: acl::aclrtDrvMemHandle, flags: u64) -> acl::aclrtMemFabricHandle {
    let mut out = acl::aclrtMemFabricHandle { data: [0; 128] };
    // SAFETY: a handle of this test, and room for a fabric handle.
    let code = unsafe {
        (runtime().aclrtMemExportToShareableHandleV2)(
            handle,
            flags,
            acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
            (&raw mut out).cast(),
        )
    };
    ok(code);
    out
}

#[test]
fn another_process_maps_exported_memory_and_both_see_each_others_stores() {
    device(1);
    let mut peer = Peer::start();
    let handle = physical(1);
    let fabric = export_fabric(handle, 1);
    let here = mapped(handle).cast::<u64>();

    let number = peer.ask_ok(&format!("fabric {} 0", hex(&fabric.data)));
    peer.ask_refused(
        &format!("map {number}"),
        INVALID,
        &["aclrtDeviceEnablePeerAccess(1, 0)"],
    );
    peer.ask_ok("enable 1");
    let there = peer.ask_ok(&format!("map {number}"));
    // SAFETY: mapped above.
    unsafe { here.write_volatile(41) };
    assert_eq!(peer.ask_ok(&format!("read {there}")), "41");
    peer.ask_ok(&format!("write {there} 42"));
    // SAFETY: mapped above.
    assert_eq!(unsafe { here.read_volatile() }, 42);

    peer.ask_refused(&format!("mix {number}"), INVALID, &["must not mix them"]);
    peer.ask_refused(
        &format!("export {number}"),
        INVALID,
        &["only its owner can export it"],
    );
    peer.ask_refused(
        &format!("fabric {} 1", hex(&fabric.data)),
        INVALID,
        &["flags 0x1"],
    );
}

#[test]
fn a_handle_has_one_shareable_handle_and_its_own_process_cannot_import_it() {
    let acl = device(1);
    let handle = physical(1);
    let mut fabric = export_fabric(handle, 1);
    let mut second = 0u64;
    let mut imported = std::ptr::null_mut();
    // SAFETY: handles and buffers of this test.
    unsafe {
        let code = (acl.aclrtMemExportToShareableHandle)(
            handle,
            acl::ACL_MEM_HANDLE_TYPE_NONE,
            1,
            &mut second,
        );
        refused(code, INVALID, &["exported already"]);
        let code = (acl.aclrtMemImportFromShareableHandleV2)(
            (&raw mut fabric).cast(),
            acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
            0,
            &mut imported,
        );
        refused(code, INVALID, &["only in another process"]);
        ok((acl.aclrtFreePhysical)(handle));
    }
}

#[test]
fn the_white_list_decides_who_imports() {
    let acl = device(1);
    let mut peer = Peer::start();
    let handle = physical(1);
    let (mut shareable, mut own) = (0u64, 0);
    // SAFETY: out-parameters, a handle of this test.
    unsafe {
        ok((acl.aclrtMemExportToShareableHandle)(
            handle,
            acl::ACL_MEM_HANDLE_TYPE_NONE,
            0,
            &mut shareable,
        ));
        ok((acl.aclrtDeviceGetBareTgid)(&mut own));
    }
    assert_eq!(own, std::process::id() as i32);
    let refusal = ["white list", "aclrtDeviceGetBareTgid"];
    peer.ask_refused(
        &format!("u64 {shareable}"),
        acl::ACL_ERROR_RT_NO_PERMISSION,
        &refusal,
    );
    let mut pids = [peer.pid()];
    // SAFETY: an array that lives during the call.
    ok(unsafe { (acl.aclrtMemSetPidToShareableHandle)(shareable, pids.as_mut_ptr(), 1) });
    peer.ask_ok(&format!("u64 {shareable}"));

    // Freed memory stays with who has it, and goes out of the export.
    // SAFETY: a handle of this test.
    ok(unsafe { (acl.aclrtFreePhysical)(handle) });
    peer.ask_refused(
        &format!("u64 {shareable}"),
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        &["exports nothing under this handle"],
    );
    peer.ask_ok("enable 1");
    peer.ask_ok("map 0");
}

#[test]
fn handles_that_nobody_exported_are_refused() {
    let mut peer = Peer::start();
    peer.ask_refused(
        &format!("fabric {} 0", "00".repeat(128)),
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        &["no fabric handle"],
    );
    // Process 1's descriptors are not ours to open, or it has no such table.
    let (code, text) = peer.ask(&format!("u64 {}", 1u64 << 42));
    assert_ne!(code, 0, "{text}");
    // The highest process number there can be: nobody has it here.
    let nobody = ((1u64 << 22) - 1) << 42;
    peer.ask_refused(
        &format!("u64 {nobody}"),
        acl::ACL_ERROR_RT_IPC_ERROR,
        &["no such process", "PID namespace"],
    );
    let key = format!("npusim1-{:056}", 1);
    peer.ask_refused(
        &format!("key {key} 1"),
        acl::ACL_ERROR_RT_IPC_ERROR,
        &["no such process"],
    );
    peer.ask_refused(
        "key nonsense 1",
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        &["no IPC key"],
    );
}

#[test]
fn memory_of_a_dead_process_stays_with_its_importers_but_cannot_be_imported_any_more() {
    device(1);
    let mut peer = Peer::start();
    // The exporter is a third process: this program again, which exports and dies.
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "the_exporter", "--nocapture", "--test-threads=1"])
        .env(ROLE, "1");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut from = BufReader::new(child.stdout.take().expect("piped"));
    let fabric = loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).expect("it answers") > 0);
        if let Some((_, answer)) = line.split_once(MARK) {
            break answer.trim_end().to_owned();
        }
    };
    let number = peer.ask_ok(&format!("fabric {fabric} 0"));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    peer.ask_ok("enable 1");
    let there = peer.ask_ok(&format!("map {number}"));
    peer.ask_ok(&format!("write {there} 7"));
    assert_eq!(peer.ask_ok(&format!("read {there}")), "7");
    peer.ask_refused(
        &format!("fabric {fabric} 0"),
        acl::ACL_ERROR_RT_IPC_ERROR,
        &["it has ended"],
    );
}

/// Not a test by itself: the process that exports and is killed.
#[test]
fn the_exporter() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    libc_prctl();
    device(1);
    println!("{MARK}{}", hex(&export_fabric(physical(1), 1).data));
    // Until it is killed, or the parent has ended.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_buffer_is_shared_by_a_key_of_65_bytes_and_whole_pages() {
    let acl = device(1);
    let mut peer = Peer::start();
    let mut small = std::ptr::null_mut();
    let mut key = [0 as c_char; 65];
    // SAFETY: buffers of this test.
    let key_text = unsafe {
        ok((acl.aclrtMalloc)(
            &mut small,
            8192,
            acl::ACL_MEM_MALLOC_NORMAL_ONLY,
        ));
        refused(
            (acl.aclrtIpcMemGetExportKey)(small, 8192, key.as_mut_ptr(), 64, 1),
            INVALID,
            &["len 64", "exactly 65"],
        );
        refused(
            (acl.aclrtIpcMemGetExportKey)(small, 5000, key.as_mut_ptr(), 65, 1),
            INVALID,
            &["size 5000", "4096 bytes"],
        );
        refused(
            (acl.aclrtIpcMemGetExportKey)(small.byte_add(64), 4096, key.as_mut_ptr(), 65, 1),
            INVALID,
            &["multiples"],
        );
        refused(
            (acl.aclrtIpcMemGetExportKey)(small, 16384, key.as_mut_ptr(), 65, 1),
            INVALID,
            &["does not lie in a buffer"],
        );
        refused(
            (acl.aclrtIpcMemGetExportKey)(small, 8192, key.as_mut_ptr(), 65, 2),
            INVALID,
            &["flags 0x2"],
        );
        ok((acl.aclrtIpcMemGetExportKey)(
            small,
            8192,
            key.as_mut_ptr(),
            65,
            0,
        ));
        ok((acl.aclrtMemset)(small, 8192, 5, 8192));
        CStr::from_ptr(key.as_ptr())
            .to_str()
            .expect("letters")
            .to_owned()
    };
    assert_eq!(key_text.len(), 64);
    peer.ask_refused(
        &format!("key {key_text} 1"),
        acl::ACL_ERROR_RT_NO_PERMISSION,
        &["white list"],
    );
    let mut pids = [peer.pid()];
    // SAFETY: an array that lives during the call.
    ok(unsafe { (acl.aclrtIpcMemSetImportPid)(key.as_ptr(), pids.as_mut_ptr(), 1) });
    peer.ask_refused(
        &format!("key {key_text} 0"),
        INVALID,
        &["ENABLE_PEER_ACCESS"],
    );
    let there: u64 = peer
        .ask_ok(&format!("key {key_text} 1"))
        .parse()
        .expect("an address");
    assert_eq!(
        peer.ask_ok(&format!("read {}", there + 8184)),
        "361700864190383365"
    );
    peer.ask_ok(&format!("write {there} 77"));
    assert_eq!(words(small as u64, 1), [77]);
    peer.ask_refused(
        &format!("key {key_text} 1"),
        INVALID,
        &["imported the key already"],
    );
    peer.ask_ok(&format!("close {key_text}"));
    // SAFETY: a key of this test.
    unsafe {
        ok((acl.aclrtIpcMemClose)(key.as_ptr()));
        refused(
            (acl.aclrtIpcMemClose)(key.as_ptr()),
            INVALID,
            &["closed already"],
        );
        ok((acl.aclrtFree)(small));
    }
    peer.ask_refused(
        &format!("key {key_text} 1"),
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        &["exports nothing"],
    );
}

#[test]
fn a_process_that_is_not_dumpable_refuses_importers_and_the_message_says_so() {
    // Root may open the descriptors of a process that is not dumpable.
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } == 0 {
        return;
    }
    device(1);
    let mut peer = Peer::start();
    let fabric = export_fabric(physical(1), 1);
    // SAFETY: plain system calls on this process.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    peer.ask_refused(
        &format!("fabric {} 0", hex(&fabric.data)),
        acl::ACL_ERROR_RT_NO_PERMISSION,
        &["not dumpable"],
    );
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
    peer.ask_ok(&format!("fabric {} 0", hex(&fabric.data)));
}
