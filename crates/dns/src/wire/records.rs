//! Encoded records, made once for a name and a type and then used for every query until the zone changes. How many of them
//! fit into an answer is decided elsewhere.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;

use bellwether_core::dns::name::DnsName;
use bellwether_core::dns::zone::{AnswerName, Zone};
use bellwether_core::dns::{RecordData, SoaOwner};

use super::code::{CLASS_IN, TYPE_A, TYPE_AAAA, TYPE_HINFO, TYPE_NS, TYPE_PTR, TYPE_SOA, TYPE_SRV};

/// A pointer to the name in the question, which follows the header.
const QUESTION_NAME: u16 = 0xC000 + 12;

/// Length of a record before its data: a pointer to its owner, type, class, TTL, length.
const BEFORE_DATA: usize = 12;

/// SOA timers for secondaries: refresh, retry and expiry in seconds. There are no zone transfers, so these are only what
/// customary tools expect.
const SOA_TIMERS: [u32; 3] = [3_600, 600, 86_400];

/// All records that answer queries for one name and type.
#[derive(Debug, Default)]
pub(crate) struct RecordSet {
    bytes: Vec<u8>,
    /// The answer section.
    pub(crate) answers: Vec<Record>,
    /// The addresses of each target, for the additional section.
    targets: Vec<Range<usize>>,
    /// The SOA record for answers without records.
    pub(crate) authority: Option<Record>,
}

/// The location of one record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    place: Range<usize>,
    /// For a record that names a target: which target, and the offset of the name in the record.
    pub(crate) target: Option<(usize, usize)>,
}

impl RecordSet {
    /// The zone's answer, encoded.
    pub(crate) fn new(
        zone: &Zone,
        name: &DnsName,
        found: (&[RecordData<'_>], &[AnswerName<'_>], SoaOwner),
    ) -> Self {
        let (data, targets, apex) = found;
        let domain = domain(zone, name, apex);
        let mut records = Self::default();
        if data.is_empty() {
            let owner = domain.unwrap_or(QUESTION_NAME);
            let start = records.begin(owner, TYPE_SOA, zone.origin.negative_ttl_secs());
            records.soa(zone, domain);
            records.authority = Some(records.end(start));
            return records;
        }
        for data in data {
            let record = records.record(zone, targets, *data, domain);
            records.answers.push(record);
        }
        for said in targets {
            let start = records.bytes.len();
            // Several interfaces may have the same address.
            for address in zone.addresses(*said).collect::<BTreeSet<_>>() {
                // The owner is known when the record is in an answer.
                records.address(0, address, zone.origin.ttl_secs());
            }
            records.targets.push(start..records.bytes.len());
        }
        records
    }

    /// Rough memory use, in bytes.
    pub(crate) const fn weight(&self) -> usize {
        self.bytes.len() + self.answers.len() * size_of::<Record>() + self.targets.len() * 16
    }

    /// The number of targets.
    pub(crate) const fn target_count(&self) -> usize {
        self.targets.len()
    }

    /// The bytes of a record.
    pub(crate) fn bytes(&self, record: &Record) -> &[u8] {
        self.bytes.get(record.place.clone()).unwrap_or_default()
    }

    /// The records of a target's addresses, each without its owner, which is two bytes.
    pub(crate) fn addresses(&self, target: usize) -> impl Iterator<Item = &[u8]> {
        let place = self.targets.get(target).cloned().unwrap_or_default();
        let mut rest = self.bytes.get(place).unwrap_or_default();
        std::iter::from_fn(move || {
            let length = usize::from(*rest.get(BEFORE_DATA - 1)?);
            let (record, after) = rest.split_at_checked(BEFORE_DATA + length)?;
            rest = after;
            record.get(2..)
        })
    }

    fn record(
        &mut self,
        zone: &Zone,
        targets: &[AnswerName<'_>],
        data: RecordData<'_>,
        domain: Option<u16>,
    ) -> Record {
        let ttl = zone.origin.ttl_secs();
        let (start, points_at) = match data {
            RecordData::Address(address) => return self.address(QUESTION_NAME, address, ttl),
            RecordData::Srv { port, target } => {
                let start = self.begin(QUESTION_NAME, TYPE_SRV, ttl);
                let [high, low] = port.to_be_bytes();
                self.bytes.extend_from_slice(&[0, 1, 0, 1, high, low]);
                (start, Some(target))
            }
            RecordData::Ns { target } => (self.begin(QUESTION_NAME, TYPE_NS, ttl), Some(target)),
            RecordData::Ptr(said) => {
                let start = self.begin(QUESTION_NAME, TYPE_PTR, ttl);
                zone.origin.write(said, &mut self.bytes);
                (start, None)
            }
            RecordData::Soa => {
                let start = self.begin(QUESTION_NAME, TYPE_SOA, ttl);
                self.soa(zone, domain);
                (start, None)
            }
            RecordData::Everything => {
                let start = self.begin(QUESTION_NAME, TYPE_HINFO, ttl);
                self.bytes.extend_from_slice(b"\x07RFC8482\x00");
                (start, None)
            }
        };
        let target = points_at.map(|target| (target, self.bytes.len() - start));
        if let Some(said) = points_at.and_then(|target| targets.get(target)) {
            // Without pointers, as RFC 2782 requires.
            zone.origin.write(*said, &mut self.bytes);
        }
        Record { target, ..self.end(start) }
    }

    fn address(&mut self, owner: u16, address: IpAddr, ttl: u32) -> Record {
        let start = match address {
            IpAddr::V4(address) => {
                let start = self.begin(owner, TYPE_A, ttl);
                self.bytes.extend_from_slice(&address.octets());
                start
            }
            IpAddr::V6(address) => {
                let start = self.begin(owner, TYPE_AAAA, ttl);
                self.bytes.extend_from_slice(&address.octets());
                start
            }
        };
        self.end(start)
    }

    fn soa(&mut self, zone: &Zone, domain: Option<u16>) {
        for (said, label) in
            [(AnswerName::NameServer, &b"\x02ns"[..]), (AnswerName::Contact, b"\x0ahostmaster")]
        {
            match domain {
                Some(pointer) => {
                    self.bytes.extend_from_slice(label);
                    self.bytes.extend_from_slice(&pointer.to_be_bytes());
                }
                None => zone.origin.write(said, &mut self.bytes),
            }
        }
        let [refresh, retry, expire] = SOA_TIMERS;
        for number in [zone.serial, refresh, retry, expire, zone.origin.negative_ttl_secs()] {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Begins a record, and returns its start; its length is written when it ends.
    fn begin(&mut self, owner: u16, kind: u16, ttl: u32) -> usize {
        let start = self.bytes.len();
        let ([a, b], [c, d], [e, f]) = (owner.to_be_bytes(), kind.to_be_bytes(), CLASS_IN.to_be_bytes());
        let [g, h, i, j] = ttl.to_be_bytes();
        self.bytes.extend_from_slice(&[a, b, c, d, e, f, g, h, i, j, 0, 0]);
        start
    }

    /// Ends a record. The longest data is that of SOA, with two names of at most 255 bytes, so its length always fits.
    fn end(&mut self, start: usize) -> Record {
        let data = start + BEFORE_DATA;
        let length = u16::try_from(self.bytes.len() - data).unwrap_or_default();
        if let Some(place) = self.bytes.get_mut(data - 2..data) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Record { place: start..self.bytes.len(), target: None }
    }
}

/// A pointer to the domain in the question; none in the names of addresses.
fn domain(zone: &Zone, name: &DnsName, apex: SoaOwner) -> Option<u16> {
    let before = name.bytes().len().checked_sub(zone.origin.domain().bytes().len())?;
    match apex {
        SoaOwner::Domain => u16::try_from(before).ok().map(|before| QUESTION_NAME + before),
        SoaOwner::Question => None,
    }
}
