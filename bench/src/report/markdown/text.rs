//! The parts of the page that are the same in every report.

pub(super) const REPRODUCTION: &str = "\
This page is written by `bench/run`. To reproduce it, use two quiet cores of a Linux machine with
Rust, Node.js and Python:

```sh
bench/run                        # everything, and this page; 35 to 45 minutes
bench/run quick                  # without rivals, in less than three minutes
bench/run quick --save FILE      # saves the figures
bench/run quick --against FILE   # compares with saved figures
```

It builds Plexus, installs the rivals from their package registries at pinned versions
([versions and options](../../bench/rivals/README.md)), and measures. All figures, including those
of each round, are in [`figures.json`](figures.json).
";

pub(super) const PLACEMENT: &str = "\
All are measured on all cores, which the load generator shares: on a machine with two cores it takes
part of both, from the subject, the limit and the rivals alike. A ratio of two such rates is therefore
not the ratio of what both could do on a machine of their own.
";

pub(super) const METHOD: &str = "\
- **Subjects.** Every server is a small program with one tool, `repeat`, made with the SDK that it is
  named after. The tool has the arguments `text` and `times`, reports its progress once if the client
  asks for it, and returns the text that often. In the requests `times` is 2, so the text of a request
  is half as long as that of its answer, which is the size that is shown. `plexus` is such a server,
  made with the library of Plexus; `plexus serve` and `plexus bridge` are the program.
- **Placement.** Nothing is pinned: the subject, the load generator and servers behind a gateway share
  all cores, and each program chooses its own runtime. Points with *one core* are measured with one
  core for each process: the subject is pinned to one core and the load generator to another. Servers
  behind a gateway then have a third core, or share that of the generator. This shows the work of a
  core, not what users run.
- **Order.** At each point all subjects are measured one after the other, and all points in each of
  several rounds. The tables show the medians of the rounds.
- **Warm-up.** In each round every server starts anew. Before its first point it answers calls for
  two seconds, or 20,000 of them, in each era and form, so that a just-in-time compiler has done its
  work. Over stdio the warm-up of each measurement takes two seconds.
- **Load.** A closed loop with a number of keep-alive connections (`c`). Each has one request in
  flight and, in the handshake era, its own session. Requests are prepared bytes in which only the
  id changes. After a warm-up, all requests within a window are counted. The window is up to four
  times longer for a subject that has not answered three times on each connection.
- **Event streams (SSE).** The client asks for progress, and the answer is a stream of the tool's
  progress and its result.
- **Busy neighbour.** Another process with one thread uses as much CPU time as it gets. The CPU time
  of the whole machine includes that of the neighbour.
- **Errors.** The id and the content of every response are checked, and the progress in every event
  stream. Of responses longer than 64 KiB, one in sixteen is checked as a whole, the others by id,
  length and both ends. A wrong response, an error, a closed connection or ten seconds without a
  response, in any round, is shown as *failed*.
- **Figures.** Latency is from the first byte written to the last byte read. CPU time of the subject
  is that of the process and all its descendants. CPU time of the machine is that of all processes,
  the load generator included, and of the kernel, as `/proc/stat` counts it. Memory is resident
  memory of the process and all its descendants.
- **The limit** is a reference value of the same machine, measured at the same point in the same
  run. For servers it is a bare hyper server that reads the whole request and answers with a fixed
  body of the same content. For gateways in front of HTTP it is a proxy that forwards bytes without
  parsing them, in front of stdio an HTTP server that forwards bodies as lines and finds out only the
  ids of messages. For stdio it is a program that writes the lines that it reads. On several cores
  the HTTP programs have the default runtime of tokio, as all Rust subjects do.
  Compare ratios, not absolute figures, between machines.
- **Fairness.** Rust subjects are compiled with the same profile. In the workspace of Plexus some
  packages are compiled for size instead of speed, because messages do not pass through them; the
  table of builds names them. Rivals have no such packages. Rivals are configured for speed as
  their documentation says: without Nagle's algorithm, and without sessions and with JSON responses
  where they support that.
- **Not included.** Programs that are in no package registry, such as agentgateway, and programs
  whose licence does not permit everyone to use them, such as mcp-gateway of crates.io.
";
