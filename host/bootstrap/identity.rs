//! Who this process is: its PE number, the job's size and where the job's store is, from whichever launcher started it.
//!
//! Reads our own launcher's variables (through [`Config`]), then torchrun's, Slurm's, Open MPI's and PMI's. What it is not: it opens
//! nothing; [`super::Bootstrap::join`] does, with what is found here.
//!
//! Sources of the variable names: torchrun's documentation ("Environment Variables"), sbatch(1)/srun(1) "OUTPUT ENVIRONMENT VARIABLES",
//! Open MPI's FAQ on `OMPI_COMM_WORLD_*`, and MPICH's Hydra (`PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID`).

use crate::config::{split_address, Config, StoreServer};

/// Who this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of this PE.
    pub pe: u32,
    /// PEs of the job.
    pub n_pes: u32,
    /// Number among the PEs of this machine; chooses the device.
    pub local_rank: u32,
    /// PEs of the job on this machine; all of them where the launcher does not say.
    pub local_size: u32,
    /// Whose variables said so.
    pub launcher: &'static str,
    /// Host and port of the store; `None` in a job of one PE.
    pub store: Option<(String, u16)>,
    /// Whether this process serves the store.
    pub serves: bool,
    /// The job's token.
    pub job: String,
}

/// The environment does not say clearly who this process is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A launcher's variables are there in part.
    #[error("{present} is set but {missing} is not, so the job's shape is unknown; set both, or start the program with `npushmem run`")]
    Partial {
        /// The variable that is set.
        present: &'static str,
        /// The variable that is missing.
        missing: &'static str,
    },
    /// A launcher's variable is no number.
    #[error(
        "{name}={value:?} is not a whole number from 0 to 65536, so this PE cannot tell who it is"
    )]
    Number {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The number of this PE is outside the job.
    #[error("PE {pe} is outside a job of {n_pes} PEs ({launcher}); PE numbers run from 0 to {}", n_pes.saturating_sub(1))]
    OutOfRange {
        /// This PE.
        pe: u32,
        /// PEs of the job.
        n_pes: u32,
        /// Whose variables said so.
        launcher: &'static str,
    },
    /// No address for the store.
    #[error("{launcher} says that this is PE {pe} of {n_pes}, but not where PE 0 can be reached; set NPUSHMEM_STORE=host:port (PE 0's host) for all PEs")]
    NoStore {
        /// Whose variables said so.
        launcher: &'static str,
        /// This PE.
        pe: u32,
        /// PEs of the job.
        n_pes: u32,
    },
    /// The launcher's address of PE 0 cannot be used.
    #[error(
        "{name}={value:?} gives no address for the store: {reason}; set NPUSHMEM_STORE=host:port"
    )]
    Address {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Why.
        reason: String,
    },
}

/// Added to torchrun's MASTER_PORT: the port itself belongs to torch's own store.
const TORCHRUN_PORT_OFFSET: u16 = 17;
/// Derived ports lie in [DERIVED_PORT_FIRST, DERIVED_PORT_FIRST + DERIVED_PORTS): below Linux's ephemeral range.
const DERIVED_PORT_FIRST: u16 = 12_000;
const DERIVED_PORTS: u64 = 18_000;

/// Variables of a launcher that says rank and size.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
    job: &'static [&'static str],
    /// The process above all PEs of a machine, which names the job where no variable does; empty: none.
    process: &'static str,
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "torchrun",
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: &["LOCAL_RANK"],
        local_size: &["LOCAL_WORLD_SIZE"],
        job: &["TORCHELASTIC_RUN_ID", "MASTER_PORT"],
        process: "",
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        job: &[
            "PMIX_NAMESPACE",
            "OMPI_MCA_ess_base_jobid",
            "OMPI_MCA_orte_hnp_uri",
        ],
        process: "",
    },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        local_rank: &["SLURM_LOCALID"],
        local_size: &[],
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        process: "",
    },
    Launcher {
        name: "PMI",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
        job: &["PMI_JOBID", "PMI_PORT", "HYDRA_BSTRAP_TOKEN"],
        process: "hydra_pmi_proxy",
    },
];

/// Finds out who this process is.
///
/// # Errors
/// When a launcher's variables are incomplete, no numbers, contradict one another, or say nothing of where PE 0 is.
pub fn find(
    config: &Config,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Identity, IdentityError> {
    let lookup = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    match (config.pe, config.n_pes) {
        (Some(pe), Some(n_pes)) => {
            check(pe, n_pes, "NPUSHMEM_PE")?;
            let store = configured_store(config)?;
            if store.is_none() && n_pes > 1 {
                return Err(IdentityError::NoStore {
                    launcher: "NPUSHMEM_PE",
                    pe,
                    n_pes,
                });
            }
            Ok(Identity {
                pe,
                n_pes,
                local_rank: config.local_rank.unwrap_or(pe),
                local_size: n_pes,
                launcher: "NPUSHMEM_PE",
                serves: config.store_server == StoreServer::Pe0 && pe == 0 && n_pes > 1,
                store: store.filter(|_| n_pes > 1),
                job: config.job.clone(),
            })
        }
        (Some(_), None) => Err(IdentityError::Partial {
            present: "NPUSHMEM_PE",
            missing: "NPUSHMEM_NPES",
        }),
        (None, Some(n_pes)) if n_pes > 1 => Err(IdentityError::Partial {
            present: "NPUSHMEM_NPES",
            missing: "NPUSHMEM_PE",
        }),
        (None, _) => {
            for launcher in LAUNCHERS {
                if let Some(identity) = foreign(config, launcher, &lookup)? {
                    return Ok(identity);
                }
            }
            Ok(Identity {
                pe: 0,
                n_pes: 1,
                local_rank: config.local_rank.unwrap_or(0),
                local_size: 1,
                launcher: "nobody",
                store: None,
                serves: false,
                job: config.job.clone(),
            })
        }
    }
}

fn foreign(
    config: &Config,
    launcher: &Launcher,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Identity>, IdentityError> {
    let Some(pe) = number(launcher.rank, lookup)? else {
        return Ok(None);
    };
    // A shell inside a Slurm allocation has SLURM_NTASKS but no rank; a rank without a size is a broken environment.
    let Some(n_pes) = number(launcher.size, lookup)? else {
        return Err(IdentityError::Partial {
            present: launcher.rank,
            missing: launcher.size,
        });
    };
    check(pe, n_pes, launcher.name)?;
    let first_number = |names: &[&'static str]| -> Result<Option<u32>, IdentityError> {
        for name in names {
            if let Some(n) = number(name, lookup)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    };
    let local_rank = match config.local_rank {
        Some(rank) => rank,
        None => first_number(launcher.local_rank)?.unwrap_or(pe),
    };
    let local_size = first_number(launcher.local_size)?.filter(|size| (1..=n_pes).contains(size));
    let mut name: Vec<String> = vec![launcher.name.to_string()];
    name.extend(launcher.job.iter().filter_map(|variable| lookup(variable)));
    if name.len() == 1 && !launcher.process.is_empty() {
        name.extend(super::ancestor::named(launcher.process));
    }
    let name = name.join("/");
    let store = if n_pes == 1 {
        None
    } else if let Some(store) = configured_store(config)? {
        Some(store)
    } else if let Some(host) = lookup("MASTER_ADDR") {
        Some((host, master_port(lookup)?))
    } else {
        let one_machine = match launcher.name {
            "Slurm" => number("SLURM_NNODES", lookup)? == Some(1),
            _ => local_size == Some(n_pes),
        };
        if !one_machine || name == launcher.name {
            return Err(IdentityError::NoStore {
                launcher: launcher.name,
                pe,
                n_pes,
            });
        }
        let port = DERIVED_PORT_FIRST + (fnv1a(name.as_bytes()) % DERIVED_PORTS) as u16;
        Some(("127.0.0.1".to_string(), port))
    };
    Ok(Some(Identity {
        pe,
        n_pes,
        local_rank,
        local_size: local_size.unwrap_or(n_pes),
        launcher: launcher.name,
        serves: pe == 0 && store.is_some() && config.store_server != StoreServer::Launcher,
        store,
        job: if config.job.is_empty() {
            name
        } else {
            config.job.clone()
        },
    }))
}

fn master_port(lookup: &impl Fn(&str) -> Option<String>) -> Result<u16, IdentityError> {
    let Some(text) = lookup("MASTER_PORT") else {
        return Err(IdentityError::Partial {
            present: "MASTER_ADDR",
            missing: "MASTER_PORT",
        });
    };
    let refuse = |reason: &str| IdentityError::Address {
        name: "MASTER_PORT",
        value: text.clone(),
        reason: reason.into(),
    };
    match text.trim().parse::<u16>() {
        Ok(0) | Err(_) => Err(refuse("not a port from 1 to 65535")),
        Ok(port) => Ok(port
            .checked_add(TORCHRUN_PORT_OFFSET)
            .unwrap_or(port - TORCHRUN_PORT_OFFSET)),
    }
}

fn configured_store(config: &Config) -> Result<Option<(String, u16)>, IdentityError> {
    match &config.store {
        None => Ok(None),
        Some(text) => split_address(text)
            .map(Some)
            .map_err(|reason| IdentityError::Address {
                name: "NPUSHMEM_STORE",
                value: text.clone(),
                reason,
            }),
    }
}

fn number(
    name: &'static str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Option<u32>, IdentityError> {
    match lookup(name) {
        None => Ok(None),
        Some(value) => match value.trim().parse::<u32>() {
            Ok(n) if u64::from(n) <= crate::config::MAX_PES => Ok(Some(n)),
            _ => Err(IdentityError::Number { name, value }),
        },
    }
}

fn check(pe: u32, n_pes: u32, launcher: &'static str) -> Result<(), IdentityError> {
    if pe < n_pes {
        Ok(())
    } else {
        Err(IdentityError::OutOfRange {
            pe,
            n_pes,
            launcher,
        })
    }
}

/// FNV-1a, 64 bits: names ports and connection tags; not a defence against anybody.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(variables: &[(&str, &str)]) -> Result<Identity, String> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.to_string())
        };
        let config = Config::from_lookup(lookup).map_err(|e| e.to_string())?;
        find(&config, lookup).map_err(|e| e.to_string())
    }

    #[test]
    fn without_a_launcher_the_job_has_one_pe() {
        let me = identity(&[]).expect("identity");
        assert_eq!((me.pe, me.n_pes, me.store, me.serves), (0, 1, None, false));
    }

    #[test]
    fn our_launcher_serves_the_store_itself() {
        let me = identity(&[
            ("NPUSHMEM_PE", "0"),
            ("NPUSHMEM_NPES", "4"),
            ("NPUSHMEM_STORE", "127.0.0.1:4000"),
            ("NPUSHMEM_JOB", "token"),
        ])
        .expect("identity");
        assert_eq!(me.store, Some(("127.0.0.1".into(), 4000)));
        assert!(!me.serves);
        assert_eq!(me.job, "token");
    }

    #[test]
    fn torchrun_jobs_use_a_port_beside_torchs_own() {
        let me = identity(&[
            ("RANK", "0"),
            ("WORLD_SIZE", "2"),
            ("LOCAL_RANK", "0"),
            ("MASTER_ADDR", "node7"),
            ("MASTER_PORT", "29500"),
        ])
        .expect("identity");
        assert_eq!(me.store, Some(("node7".into(), 29517)));
        assert!(me.serves);
        let last = identity(&[
            ("RANK", "1"),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "n"),
            ("MASTER_PORT", "65535"),
        ]);
        assert_eq!(last.expect("identity").store, Some(("n".into(), 65518)));
    }

    #[test]
    fn slurm_and_open_mpi_and_pmi_are_understood() {
        let slurm = identity(&[
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_LOCALID", "3"),
            ("SLURM_NNODES", "1"),
            ("SLURM_JOB_ID", "77"),
        ])
        .expect("slurm");
        assert_eq!((slurm.pe, slurm.n_pes, slurm.launcher), (3, 4, "Slurm"));
        let ompi = identity(&[
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_NAMESPACE", "prterun-1234"),
        ])
        .expect("ompi");
        assert_eq!(
            (ompi.pe, ompi.local_rank, ompi.launcher),
            (1, 1, "Open MPI")
        );
        assert!(ompi.job.contains("prterun-1234"));
        let pmi = identity(&[
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
            ("NPUSHMEM_STORE", "a:1"),
        ])
        .expect("pmi");
        assert_eq!((pmi.pe, pmi.store), (1, Some(("a".into(), 1))));
    }

    #[test]
    fn several_machines_without_an_address_are_refused_with_the_setting_to_give() {
        let text = identity(&[
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_NNODES", "2"),
            ("SLURM_JOB_ID", "7"),
        ])
        .expect_err("no address");
        assert!(text.contains("NPUSHMEM_STORE"), "{text}");
    }

    #[test]
    fn half_an_environment_is_refused() {
        for variables in [
            &[("NPUSHMEM_PE", "1")][..],
            &[("NPUSHMEM_NPES", "2")][..],
            &[("RANK", "1")][..],
            &[("NPUSHMEM_PE", "1"), ("NPUSHMEM_NPES", "2")][..],
            &[
                ("NPUSHMEM_PE", "2"),
                ("NPUSHMEM_NPES", "2"),
                ("NPUSHMEM_STORE", "a:1"),
            ][..],
            &[("RANK", "x"), ("WORLD_SIZE", "2")][..],
            &[
                ("RANK", "0"),
                ("WORLD_SIZE", "2"),
                ("MASTER_ADDR", "n"),
                ("MASTER_PORT", "65536"),
            ][..],
        ] {
            identity(variables).expect_err(&format!("{variables:?}"));
        }
    }
}
