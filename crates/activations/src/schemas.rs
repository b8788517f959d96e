//! The schemas of all tools, as they are made from the types of their arguments and results.
//!
//! To make them is most of what a start would do; the file `schemas.tsv` has them ready. A test
//! compares them with the types.

use plexus_service::KnownSchemas;

use crate::names::Names;

/// A line for each tool: its namespace, its method, and its schemas.
const WRITTEN: &str = include_str!("schemas.tsv");

/// What is known of the tools under these names.
pub(crate) fn known(names: Names) -> KnownSchemas {
    let lines = parted(WRITTEN, b'\n');
    lines.fold(KnownSchemas::default(), |known, line| {
        let mut columns = parted(line, b'\t');
        match (columns.next(), columns.next(), columns.next()) {
            (Some(namespace), Some(method), Some(input)) => {
                let tool = names.joined(namespace, method);
                known.with(tool, input, columns.next())
            }
            _ => known,
        }
    })
}

/// What stands between bytes that are `by`. Every start waits for this, and what the standard library
/// has for it takes ten times as long.
fn parted(text: &'static str, by: u8) -> impl Iterator<Item = &'static str> {
    let ends = memchr::memchr_iter(by, text.as_bytes()).chain([text.len()]);
    ends.scan(0, move |start, end| {
        let part = text.get(*start..end);
        *start = end + 1;
        part
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use plexus_service::{LocalService, Raw, Section, Service};

    use super::*;
    use crate::builtin::Builtin;
    use crate::service::with_all;
    use crate::testing::everything;
    use crate::{Data, Places};

    /// A tool that was added, or whose types were changed, has other schemas: have them written by
    /// setting `PLEXUS_WRITE_SCHEMAS`.
    #[test]
    fn known_schemas_are_those_of_the_types() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&Places::in_directory(folder.path())).unwrap();
        let extras = everything();
        let builder = LocalService::builder("plexus", "1.2.3");
        let service = with_all(builder, &Builtin::ALL, Names::Dotted, &data, &extras);
        let catalogue = service.build().unwrap().catalogue();
        let catalogue = catalogue.borrow();
        let tools = catalogue.list(Section::Tools).entries().iter();
        let lines = tools.map(|tool| {
            let definition: HashMap<String, Raw> = tool.definition.decode().unwrap();
            let mut columns = vec![tool.key.replacen('.', "\t", 1)];
            columns.push(definition["inputSchema"].as_str().to_owned());
            let output = definition.get("outputSchema");
            columns.extend(output.map(|schema| schema.as_str().to_owned()));
            columns.join("\t") + "\n"
        });
        let made: String = lines.collect();
        if std::env::var_os("PLEXUS_WRITE_SCHEMAS").is_some() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schemas.tsv");
            std::fs::write(file, made).unwrap();
        } else {
            assert_eq!(WRITTEN, made, "set PLEXUS_WRITE_SCHEMAS to have it written");
        }
    }
}
