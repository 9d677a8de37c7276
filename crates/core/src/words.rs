//! Values that are valid by construction: text is parsed once, at the edge, and trusted inside.

pub mod address_range;
pub mod addresses;
pub mod counted;
pub mod counter;
pub mod cron;
pub mod digest;
pub mod facts;
pub mod feature;
pub mod filter;
pub mod label;
pub mod map;
pub mod name;
pub mod near;
pub mod node_data;
pub mod node_order;
pub mod percent;
pub mod plural;
pub mod precedence;
pub mod random;
pub mod role_params;
pub mod selector;
pub mod time;
pub mod value;
pub mod version;
pub mod window;
pub mod zone;
