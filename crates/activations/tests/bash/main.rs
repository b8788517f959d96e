//! The activation `bash`: commands as they are called through the service.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod ending;
#[cfg(test)]
mod output;
#[cfg(test)]
mod support;
