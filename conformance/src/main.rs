//! plexus
fn main() {}
