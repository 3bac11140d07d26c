//! Jobs of several PEs on the emulated NPU: each test starts this program again, once a PE, with the scenario's name in its environment.
//!
//! What it is not: the suite of the device API (data.rs, atomics.rs, litmus.rs are). Here is what the host library promises: meeting, mapping,
//! enabling, errors that name the dead.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use npushmem::bootstrap::store::Server;
use npushmem::{Args, Error, World};
use npushmem_tests::kernels;

/// The variable that makes this program a PE.
const SCENARIO: &str = "NPUSIM_TEST_SCENARIO";
/// No job here takes longer.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `scenario` on `n` PEs; gives each PE's success and output. Children that are still there at the deadline are ended.
fn job(n: u32, scenario: &str, settings: &[(&str, &str)]) -> Vec<(bool, String)> {
    let said = settings.iter().find(|(name, _)| *name == "NPUSHMEM_NPES");
    let n_pes = said.map_or(n, |(_, value)| value.parse().expect("a number"));
    let server = Server::bind("127.0.0.1:0", n_pes, b"secret").expect("store");
    let children: Vec<Child> = (0..n)
        .map(|pe| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "a_pe", "--nocapture", "--test-threads=1"])
                .env(SCENARIO, scenario)
                .env("NPUSHMEM_RUNTIME", "sim")
                .env("NPUSHMEM_PE", pe.to_string())
                .env("NPUSHMEM_NPES", n.to_string())
                .env("NPUSHMEM_STORE", server.address().to_string())
                .env("NPUSHMEM_JOB", "secret")
                .env("NPUSHMEM_TIMEOUT", "10")
                .env("SHMEM_SYMMETRIC_SIZE", "4M")
                .envs(settings.iter().copied())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("start a PE")
        })
        .collect();
    collect(children)
}

/// Waits for children, reading what they say meanwhile; ends those that are still there at the deadline.
fn collect(children: Vec<Child>) -> Vec<(bool, String)> {
    fn read(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).expect("a PE's output");
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let mut children: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            let out = read(child.stdout.take().expect("stdout"));
            let err = read(child.stderr.take().expect("stderr"));
            (child, out, err)
        })
        .collect();
    let end = Instant::now() + DEADLINE;
    while children
        .iter_mut()
        .any(|(child, ..)| matches!(child.try_wait(), Ok(None)))
        && Instant::now() < end
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    children
        .into_iter()
        .map(|(mut child, out, err)| {
            let _ = child.kill();
            let status = child.wait().expect("wait");
            let text = [out, err]
                .map(|reader| reader.join().expect("reader"))
                .concat();
            (status.success(), text)
        })
        .collect()
}

fn all_succeed(n: u32, scenario: &str, settings: &[(&str, &str)]) {
    let ends = job(n, scenario, settings);
    if ends.iter().any(|(ok, _)| !ok) {
        let all: Vec<String> = ends
            .iter()
            .enumerate()
            .map(|(pe, (ok, text))| format!("PE {pe}: {ok}\n{text}"))
            .collect();
        panic!("{scenario} on {n} PEs\n{}", all.join("\n"));
    }
}

/// As [`job`], started as torchrun starts its workers: PE 0 serves the store.
fn torchrun(n: u32, scenario: &str) {
    /// What the library adds to torchrun's own port.
    const OFFSET: u16 = 17;
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a free port")
        .port();
    let master = port - OFFSET;
    let start = |rank: u32| {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_pe", "--nocapture", "--test-threads=1"])
            .env(SCENARIO, scenario)
            .env("NPUSHMEM_RUNTIME", "sim")
            .env("NPUSHMEM_TIMEOUT", "10")
            .env("SHMEM_SYMMETRIC_SIZE", "4M")
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", n.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", master.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start a PE")
    };
    // The server comes last: the others try again until it is there.
    let children: Vec<Child> = (0..n).rev().map(start).collect();
    let ends = collect(children);
    assert!(ends.iter().all(|(ok, _)| *ok), "{scenario}: {ends:#?}");
}

/// What a PE does; a test only in name.
#[test]
fn a_pe() {
    match std::env::var(SCENARIO).unwrap_or_default().as_str() {
        "" => {}
        "exchange" => exchange(),
        "ring" => ring(),
        "uneven" => uneven(),
        "asymmetric" => asymmetric(),
        "death" => death(),
        "leave" => leave(),
        "recover" => recover(),
        "missing" => missing(),
        "left_open" => left_open(),
        other => panic!("no scenario {other}"),
    }
}

fn exchange() {
    let world = World::init().expect("init");
    let (me, n) = (world.my_pe(), world.n_pes());
    let all = world.exchange(&[me as u8; 3]).expect("exchange");
    assert_eq!(all, (0..n).map(|pe| vec![pe as u8; 3]).collect::<Vec<_>>());
    let data = world.alloc_zeroed::<u32>(64).expect("alloc");
    world.barrier_all().expect("barrier");
    if world.mapped_pes().len() == n as usize {
        // Everybody writes its word on everybody.
        for pe in 0..n {
            world.put(&data, me as usize, &[me + 1], pe).expect("put");
        }
        world.barrier_all().expect("barrier");
        let mine = world.to_vec(&data).expect("read");
        assert_eq!(mine[..n as usize], (1..=n).collect::<Vec<_>>());
        let mut theirs = vec![0; 64];
        world.get(&data, 0, &mut theirs, (me + 1) % n).expect("get");
        assert_eq!(theirs, mine);
    } else {
        let text = world
            .put(&data, 0, &[1], (me + 1) % n)
            .expect_err("not mapped")
            .to_string();
        assert!(text.contains("NPUSHMEM_MAPPED"), "{text}");
    }
    world.barrier_all().expect("barrier");
    drop(data);
    world.finalize().expect("finalize");
}

/// Each PE puts a block to the next one, by a kernel.
fn ring() {
    for _ in 0..2 {
        let world = World::init().expect("init");
        let (me, n) = (world.my_pe(), world.n_pes());
        let (to, from) = (
            world.alloc_zeroed::<u32>(1000).expect("alloc"),
            world.alloc::<u32>(1000).expect("alloc"),
        );
        let out = world.alloc_zeroed::<u64>(64).expect("alloc");
        world.write(&from, 0, &vec![me + 7; 1000]).expect("write");
        world.enable_device(2).expect("enable_device");
        let module = world.load(&kernels::SELFTEST).expect("load");
        let kernel = module.function("st_move").expect("st_move");
        world.barrier_all().expect("barrier");
        for engine in [1u64, 2] {
            if engine == 1 && world.mapped_pes().len() < n as usize {
                continue;
            }
            world.write(&to, 0, &vec![0; 1000]).expect("write");
            world.barrier_all().expect("barrier");
            let next = u64::from((me + 1) % n);
            let args = Args::new()
                .ctx()
                .ptr(&to)
                .ptr(&from)
                .ptr(&out)
                .u64(engine)
                .u64(next)
                .u64(4000)
                .u64(1)
                .u64(0);
            world.launch(&kernel, 1, &args).expect("launch");
            world.synchronize().expect("synchronize");
            world.barrier_all().expect("barrier");
            assert_eq!(
                world.to_vec(&to).expect("read"),
                vec![(me + n - 1) % n + 7; 1000],
                "engine {engine}"
            );
            world.barrier_all().expect("barrier");
        }
        assert!(world.stats().expect("stats").data_requests > 0);
        drop((kernel, module, to, from, out));
        world.finalize().expect("finalize");
    }
}

fn uneven() {
    let world = World::init().expect("init");
    let text = world
        .enable_device(1 + world.my_pe())
        .expect_err("different cores")
        .to_string();
    assert!(text.contains("number of comm cores"), "{text}");
}

fn asymmetric() {
    let world = World::init().expect("init");
    let _data = world
        .alloc::<u8>(if world.my_pe() == 1 { 100 } else { 200 })
        .expect("alloc");
    let error = world.barrier_all().expect_err("asymmetric");
    assert!(error.to_string().contains("not symmetric"), "{error}");
}

/// PE 1 dies while the others' kernels wait for it.
fn death() {
    let world = World::init().expect("init");
    world.enable_device(1).expect("enable_device");
    let module = world.load(&kernels::SELFTEST).expect("load");
    let kernel = module.function("st_barrier").expect("st_barrier");
    let slots = world.alloc_zeroed::<u64>(64).expect("alloc");
    let out = world.alloc_zeroed::<u64>(64).expect("alloc");
    world.barrier_all().expect("barrier");
    if world.my_pe() == 1 {
        std::process::abort();
    }
    let begin = Instant::now();
    let args = Args::new()
        .ctx()
        .ptr(&slots)
        .u64(0)
        .ptr(&out)
        .u64(0)
        .u64(0)
        .u64(1_000_000)
        .u64(1)
        .u64(0);
    world.launch(&kernel, 1, &args).expect("launch");
    let text = world.synchronize().expect_err("PE 1 died").to_string();
    assert!(text.contains("PE 1") && text.contains("died"), "{text}");
    // Not by the wait's own time limit.
    assert!(
        begin.elapsed() < Duration::from_secs(9),
        "{:?}: {text}",
        begin.elapsed()
    );
    let text = world.barrier_all().expect_err("PE 1 died").to_string();
    assert!(text.contains("PE 1 died"), "{text}");
    println!("as it should be: {text}");
}

/// PE 0 gives up without finalize; the others hear why.
fn leave() {
    let world = World::init().expect("init");
    if world.my_pe() == 0 {
        return;
    }
    let text = world.barrier_all().expect_err("PE 0 left").to_string();
    assert!(
        text.contains("PE 0") && text.contains("without finalize"),
        "{text}"
    );
}

/// Kernels end without a quiet; the host's barrier completes their puts.
fn left_open() {
    const BYTES: usize = 100_000;
    let world = World::init().expect("init");
    let (me, n) = (world.my_pe() as u8, world.n_pes() as u8);
    world.enable_device(2).expect("enable_device");
    let (to, from) = (
        world.alloc_zeroed::<u8>(2 * BYTES).expect("alloc"),
        world.alloc::<u8>(2 * BYTES).expect("alloc"),
    );
    let kernel = world
        .load(&kernels::HOST)
        .expect("load")
        .function("ht_leave_open")
        .expect("kernel");
    for round in 0..20 {
        world
            .write(&from, 0, &vec![me + round * 8; 2 * BYTES])
            .expect("write");
        world.barrier_all().expect("barrier");
        world
            .launch(
                &kernel,
                2,
                &Args::new().ctx().ptr(&to).ptr(&from).u64(BYTES as u64),
            )
            .expect("launch");
        world.synchronize().expect("synchronize");
        world.barrier_all().expect("barrier");
        assert_eq!(
            world.to_vec(&to).expect("read"),
            vec![(me + n - 1) % n + round * 8; 2 * BYTES],
            "round {round}"
        );
    }
    drop((kernel, to, from));
    world.finalize().expect("finalize");
}

/// Only some PEs were started.
fn missing() {
    let begin = Instant::now();
    let text = World::init().expect_err("PEs are missing").to_string();
    assert!(
        text.contains("still missing PEs 2, 3") && text.contains("NPUSHMEM_JOIN_TIMEOUT"),
        "{text}"
    );
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

/// A kernel of PE 0 breaks its queue pairs; after recover() everything works again.
fn recover() {
    let world = World::init().expect("init");
    let (me, n) = (world.my_pe(), world.n_pes());
    world.enable_device(1).expect("enable_device");
    let module = world.load(&kernels::SELFTEST).expect("load");
    let barrier = module.function("st_barrier").expect("st_barrier");
    let slots = world.alloc_zeroed::<u64>(64).expect("alloc");
    let out = world.alloc_zeroed::<u64>(64).expect("alloc");
    let args = Args::new()
        .ctx()
        .ptr(&slots)
        .u64(0)
        .ptr(&out)
        .u64(2)
        .u64(0)
        .u64(20)
        .u64(1)
        .u64(0);
    for round in 0..3 {
        world.write(&slots, 0, &[0; 64]).expect("write");
        world.write(&out, 0, &[0; 64]).expect("write");
        world.barrier_all().expect("barrier");
        world.launch(&barrier, 1, &args).expect("launch");
        world
            .synchronize()
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(world.to_vec(&out).expect("read")[..2], [0, 0]);
        world.barrier_all().expect("barrier");
        // Only PE 0 enters the next barrier: its wait times out.
        if me == 0 && n > 1 {
            world.launch(&barrier, 1, &args).expect("launch");
            let text = world
                .synchronize()
                .expect_err("nobody else came")
                .to_string();
            assert!(
                text.contains("PE 0") && text.contains("timed out"),
                "{text}"
            );
            assert!(matches!(
                world.launch(&barrier, 1, &args),
                Err(Error::NeedsRecover(_))
            ));
        }
        world
            .recover()
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    drop((barrier, module, slots, out));
    world.finalize().expect("finalize");
}

#[test]
fn pes_exchange_bytes_and_reach_one_anothers_heaps() {
    all_succeed(4, "exchange", &[]);
}

#[test]
fn jobs_of_torchrun_find_one_another_without_our_launcher() {
    torchrun(3, "exchange");
    torchrun(2, "ring");
}

#[test]
fn init_lists_the_pes_that_did_not_come() {
    all_succeed(
        2,
        "missing",
        &[("NPUSHMEM_NPES", "4"), ("NPUSHMEM_JOIN_TIMEOUT", "1")],
    );
}

#[test]
fn barriers_complete_what_kernels_left_open() {
    all_succeed(2, "left_open", &[]);
    all_succeed(2, "left_open", &[("NPUSIM_NIC", "thread")]);
    all_succeed(
        2,
        "left_open",
        &[("NPUSIM_NIC", "chaos:7"), ("NPUSHMEM_QUIET_READS", "on")],
    );
}

#[test]
fn without_mappings_the_host_says_what_it_cannot_reach() {
    all_succeed(2, "exchange", &[("NPUSHMEM_MAPPED", "off")]);
}

#[test]
fn kernels_put_to_the_next_pe_on_both_engines() {
    all_succeed(3, "ring", &[]);
}

#[test]
fn kernels_put_by_the_nic_where_nothing_is_mapped() {
    all_succeed(2, "ring", &[("NPUSHMEM_MAPPED", "off")]);
}

#[test]
fn pes_on_one_device_share_it() {
    all_succeed(2, "ring", &[("NPUSHMEM_DEVICE", "0")]);
}

#[test]
fn pes_that_enable_different_cores_are_told() {
    all_succeed(2, "uneven", &[]);
}

#[test]
fn heap_calls_that_differ_are_found_at_a_barrier() {
    all_succeed(3, "asymmetric", &[]);
}

#[test]
fn a_pe_that_dies_in_the_middle_is_named_by_the_others() {
    let ends = job(3, "death", &[]);
    assert!(!ends[1].0);
    for pe in [0, 2] {
        assert!(ends[pe].0, "PE {pe}:\n{}", ends[pe].1);
    }
}

#[test]
fn a_pe_that_leaves_without_finalize_tells_the_others() {
    all_succeed(3, "leave", &[]);
}

#[test]
fn recovery_after_a_timeout_makes_everything_work_again() {
    all_succeed(3, "recover", &[("NPUSHMEM_TIMEOUT", "2")]);
}

#[test]
fn a_nic_that_refuses_atomics_leaves_the_rest_working() {
    all_succeed(2, "ring", &[("NPUSIM_NIC_ATOMICS", "off")]);
    all_succeed(2, "ring", &[("NPUSIM_NIC_ATOMIC_ACCESS", "off")]);
    all_succeed(2, "ring", &[("NPUSIM_NIC_INLINE", "off")]);
}

#[test]
fn the_950_series_works_alike() {
    all_succeed(2, "ring", &[("NPUSIM_SOC", "Ascend950PR_9599")]);
}
