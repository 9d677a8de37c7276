//! Fuzzes what agents send of members, facts, logs and services, by the function of this name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::shapes::reported(data));
