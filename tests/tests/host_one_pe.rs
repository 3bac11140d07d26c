//! A job of one PE on the emulated NPU, from init to finalize, in the test's own process; hence a single test.

use npushmem::{Args, Config, Error, World};
use npushmem_tests::kernels;

fn config() -> Config {
    let mut config = Config::defaults();
    config.runtime = npushmem::config::Runtime::Sim;
    config.symmetric_size = (1u64 << 20).into();
    config
}

/// Rounds of init and finalize.
const ROUNDS: usize = 40;

/// Descriptors, threads and mappings of this process.
fn resources() -> [usize; 3] {
    let count = |path| std::fs::read_dir(path).expect(path).count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    [
        count("/proc/self/fd"),
        count("/proc/self/task"),
        maps.lines().count(),
    ]
}

#[test]
fn a_job_of_one_pe_runs_from_init_to_finalize() {
    let mut settled = [0; 3];
    for round in 0..ROUNDS {
        let world = World::init_with(config()).expect("init");
        assert_eq!((world.my_pe(), world.n_pes()), (0, 1));
        assert!(world.is_sim());

        // The heap.
        let empty = world.alloc::<u64>(0).expect("alloc(0)");
        assert_eq!((empty.addr(), empty.len()), (0, 0));
        let data = world.alloc_zeroed::<u64>(100).expect("alloc");
        assert_eq!(world.to_vec(&data).expect("read"), vec![0; 100]);
        world.write(&data, 10, &[1, 2, 3]).expect("write");
        let mut back = [0; 5];
        world.read(&data, 9, &mut back).expect("read");
        assert_eq!(back, [0, 1, 2, 3, 0]);
        let text = world
            .write(&data, 99, &[0, 0])
            .expect_err("past the end")
            .to_string();
        assert!(text.contains("99..101"), "{text}");
        let text = world
            .alloc::<u8>(2 << 20)
            .expect_err("too large")
            .to_string();
        assert!(
            text.contains("SHMEM_SYMMETRIC_SIZE") && text.contains("2 MiB"),
            "{text}"
        );
        let text = world
            .alloc::<u64>(usize::MAX / 2)
            .expect_err("overflow")
            .to_string();
        assert!(text.contains("more than any heap holds"), "{text}");
        let text = world
            .put(&data, 0, &[1], 1)
            .expect_err("no such PE")
            .to_string();
        assert!(text.contains("PE 1 is outside a job of 1 PEs"), "{text}");

        // Before the device is enabled.
        let module = world.load(&kernels::SELFTEST).expect("load");
        let text = module
            .function("st_nothing")
            .err()
            .expect("no such kernel")
            .to_string();
        assert!(text.contains("st_nothing"), "{text}");
        let attach = module.function("st_attach").expect("st_attach");
        let args = Args::new()
            .ctx()
            .ptr(&data)
            .u64(0)
            .u64(data.addr())
            .u64(0)
            .u64(0)
            .u64(0)
            .u64(0)
            .u64(0);
        assert!(matches!(
            world.launch(&attach, 1, &args),
            Err(Error::NotEnabled(_))
        ));
        assert!(matches!(world.recover(), Err(Error::NotEnabled(_))));
        let text = world.enable_device(0).expect_err("no cores").to_string();
        assert!(text.contains("1 to"), "{text}");
        let text = world
            .enable_device(10_000)
            .expect_err("too many cores")
            .to_string();
        assert!(text.contains("10000"), "{text}");

        // The device.
        world.enable_device(2).expect("enable_device");
        assert!(matches!(
            world.enable_device(2),
            Err(Error::AlreadyEnabled { cores: 2 })
        ));
        assert_eq!(world.atomics(), Some(true));
        world.write(&data, 0, &[99; 100]).expect("write");
        let start = world.event().expect("event");
        world.launch(&attach, 2, &args).expect("launch");
        let end = world.event().expect("event");
        world.synchronize().expect("synchronize");
        // The event was made and recorded while the kernel was in the stream.
        assert_eq!(world.acl_calls_during_kernel(), 2);
        assert!(end.since(&start).expect("elapsed") >= 0.0);
        assert_eq!(world.sim_counters().expect("emulated").blocks, 2);
        let out = world.to_vec(&data).expect("read");
        // my_pe, n_pes, core, cores, error, ptr(a, pe): 8 words a core.
        assert_eq!(out[..6], [0, 1, 0, 2, 0, data.addr()], "round {round}");
        assert_eq!(out[8..14], [0, 1, 1, 2, 0, data.addr()]);

        // Atomics on oneself go through the NIC.
        let atomics = module.function("st_atomics").expect("st_atomics");
        let word = world.alloc_zeroed::<u64>(1).expect("alloc");
        world.write(&data, 0, &[0; 100]).expect("write");
        let before = world.stats().expect("stats");
        let args = Args::new()
            .ctx()
            .ptr(&word)
            .u64(0)
            .u64(data.addr())
            .u64(2)
            .u64(0)
            .u64(0)
            .u64(0)
            .u64(0);
        world.launch(&atomics, 1, &args).expect("launch");
        world.synchronize().expect("synchronize");
        assert_eq!(world.acl_calls_during_kernel(), 0);
        let out = world.to_vec(&data).expect("read");
        assert_eq!(
            out[..14],
            [
                0,
                5,
                5,
                0,
                13,
                0,
                14,
                15,
                100,
                200,
                200,
                200,
                0xffff_ffff_ffff_ffff,
                0
            ][..14],
            "fetched values"
        );
        assert!(world.stats().expect("stats").data_requests > before.data_requests);
        world.reset_stats().expect("reset");
        assert_eq!(world.stats().expect("stats"), npushmem::Stats::default());

        // An error names PE, operation and cause; the next kernel runs.
        let mv = module.function("st_move").expect("st_move");
        let args = Args::new()
            .ctx()
            .ptr(&word)
            .ptr(&data)
            .u64(data.addr())
            .u64(2)
            .u64(0)
            .u64(64 << 20)
            .u64(1)
            .u64(0);
        world.launch(&mv, 1, &args).expect("launch");
        let error = world.synchronize().expect_err("past the heap");
        let text = error.to_string();
        assert!(
            matches!(&error, Error::Device(_))
                && text.starts_with("PE 0: put toward PE 0")
                && text.contains("leave the symmetric heap"),
            "{text}"
        );
        world
            .launch(
                &attach,
                1,
                &Args::new()
                    .ctx()
                    .ptr(&data)
                    .u64(0)
                    .u64(data.addr())
                    .u64(0)
                    .u64(0)
                    .u64(0)
                    .u64(0)
                    .u64(0),
            )
            .expect("launch");
        world.synchronize().expect("synchronize");

        world.recover().expect("recover");
        assert!(world.acl_calls() > 0);
        world.barrier_all().expect("barrier");
        drop((attach, atomics, mv, module, data, word, empty));
        world.finalize().expect("finalize");
        // What the first rounds made for good (allocator arenas, the runtime's own threads) is no leak, nor is a map or a thread more or
        // less at the moment of looking; growth is.
        let now = resources();
        if round < ROUNDS / 4 {
            settled = [
                settled[0].max(now[0]),
                settled[1].max(now[1]),
                settled[2].max(now[2]),
            ];
        } else {
            let slack = [0, 2, ROUNDS / 4];
            let grown = (0..3).any(|i| now[i] > settled[i] + slack[i]);
            assert!(!grown, "round {round}: {settled:?} became {now:?}");
        }
    }
}
