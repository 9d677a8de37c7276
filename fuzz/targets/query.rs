//! Fuzzes messages to the DNS server, by the function of this name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::dns::query(data));
