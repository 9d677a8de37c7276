//! Fuzzes what data stores and programs say to an agent, by the function of this name in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_agent::fuzzing::said(data));
