//! The place of DNS answers over UDP and TCP from a zone snapshot.
//!
//! Empty so far: services and their names come with the catalogue.
