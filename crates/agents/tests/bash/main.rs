//! Tests of the service `bash` through its tool.

#[cfg(test)]
mod output;
#[cfg(test)]
mod support;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod termination;
