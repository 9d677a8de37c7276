//! Fuzzes orders, as agents read them, by the function of this name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::shapes::ordered(data));
