//! Fuzzes requests of people: ensembles, external targets, filters, profiles, reactions, schedules, sinks, slots and clusters, by the function of this name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bellwether_fuzz::shapes::written(data));
