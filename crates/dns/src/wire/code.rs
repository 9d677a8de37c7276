//! The codes of DNS that are used here.

use bellwether_core::dns::RecordType;

/// The response code of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseCode {
    /// NOERROR: the name exists.
    NoError,
    /// FORMERR: the message is malformed.
    FormErr,
    /// SERVFAIL: the server failed.
    ServFail,
    /// NXDOMAIN: the name does not exist.
    NxDomain,
    /// NOTIMP: the operation is not supported.
    NotImp,
    /// REFUSED: this server does not answer it.
    Refused,
    /// BADVERS: the version of EDNS is unknown.
    BadVers,
}

impl ResponseCode {
    /// The lower four bits are in the header, the upper eight in EDNS.
    pub(crate) const fn bits(self) -> (u8, u8) {
        match self {
            Self::NoError => (0, 0),
            Self::FormErr => (1, 0),
            Self::ServFail => (2, 0),
            Self::NxDomain => (3, 0),
            Self::NotImp => (4, 0),
            Self::Refused => (5, 0),
            Self::BadVers => (0, 1),
        }
    }
}

pub(crate) const TYPE_A: u16 = 1;
pub(crate) const TYPE_NS: u16 = 2;
pub(crate) const TYPE_SOA: u16 = 6;
pub(crate) const TYPE_PTR: u16 = 12;
pub(crate) const TYPE_HINFO: u16 = 13;
pub(crate) const TYPE_AAAA: u16 = 28;
pub(crate) const TYPE_SRV: u16 = 33;
pub(crate) const TYPE_OPT: u16 = 41;
pub(crate) const TYPE_IXFR: u16 = 251;
pub(crate) const TYPE_AXFR: u16 = 252;
pub(crate) const TYPE_ANY: u16 = 255;

/// The class of the Internet, the only one served.
pub(crate) const CLASS_IN: u16 = 1;

/// The records of a numeric type.
pub(crate) const fn kind(number: u16) -> RecordType {
    match number {
        TYPE_A => RecordType::A,
        TYPE_NS => RecordType::Ns,
        TYPE_SOA => RecordType::Soa,
        TYPE_PTR => RecordType::Ptr,
        TYPE_AAAA => RecordType::Aaaa,
        TYPE_SRV => RecordType::Srv,
        TYPE_ANY => RecordType::Any,
        _ => RecordType::Other,
    }
}
