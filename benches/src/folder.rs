//! Writes a cluster as a folder: one file for the nodes, one for each Service with its slices.
//!
//! With one file for each Service, the agent reads one small file after a change of one Service, like one event of an
//! API server.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::shape::{ServiceRecord, Shape};
use crate::yaml::{write_node, write_service};

/// Writes the whole cluster into `folder`, and creates it if it is missing.
pub fn write_folder(shape: &Shape, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut nodes = BufWriter::new(File::create(folder.join("nodes.yaml"))?);
    for index in 0..shape.nodes {
        write_node(shape, &shape.node(index), &mut nodes)?;
    }
    nodes.flush()?;
    for index in 0..shape.services {
        let service = shape.service(index);
        let mut text = Vec::with_capacity(4096);
        write_service(shape, &service, &mut text)?;
        fs::write(service_file(folder, &service), text)?;
    }
    Ok(())
}

/// Returns the file of `folder` with `service` and its slices.
pub fn service_file(folder: &Path, service: &ServiceRecord) -> PathBuf {
    folder.join(format!("{}.yaml", service.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_file_for_the_nodes_and_one_for_each_service() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape {
            services: 12,
            ..Shape::default()
        };
        write_folder(&shape, folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 13);
        let third = fs::read_to_string(service_file(folder.path(), &shape.service(2))).unwrap();
        assert_eq!(third.matches("kind: EndpointSlice").count(), 1);
        assert!(third.contains("clusterIP: 10.96.0.18\n"));
    }
}
