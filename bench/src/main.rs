//! The `plexus-bench` command; all of it is in the library.

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    plexus_bench::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("the benchmark runs on Linux only")
}
