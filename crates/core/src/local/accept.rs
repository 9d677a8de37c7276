//! Whether the agent accepts an order. Generations and terms only grow.

use crate::records::order::Order;
use crate::records::report::SET_BACK;
use crate::words::counter::{Generation, Term};

/// Why an order is refused. The text follows "cannot ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StaleOrder {
    /// Its leadership term is older than that of the present order.
    #[error(
        "{start}{offered}: the stored order has term {known}; if it goes on, the store of the servers was set back: stop them, then run \
         `bellwether server restore --in-place`",
        start = SET_BACK
    )]
    Term {
        /// Term of the refused order.
        offered: Term,
        /// Term of the present order.
        known: Term,
    },
    /// Its generation is not newer than that of the present order.
    #[error("accept an order of generation {offered}: the stored order has generation {known}")]
    Generation {
        /// Generation of the refused order.
        offered: Generation,
        /// Generation of the present order.
        known: Generation,
    },
}

/// Checks that `offered` is newer than the present order.
///
/// # Errors
/// [`StaleOrder`] when its term is older, or its generation not newer.
pub fn newer(known: Option<&Order>, offered: &Order) -> Result<(), StaleOrder> {
    let Some(known) = known else { return Ok(()) };
    if offered.term < known.term {
        return Err(StaleOrder::Term { offered: offered.term, known: known.term });
    }
    if offered.generation <= known.generation {
        return Err(StaleOrder::Generation { offered: offered.generation, known: known.generation });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::counter::Epoch;

    fn order(generation: u64, term: u64) -> Order {
        let content = crate::records::order::OrderContent::default();
        Order { generation: Generation::new(generation), term: Term::new(term), epoch: Epoch::ZERO, content }
    }

    #[test]
    fn the_first_order_is_taken() {
        assert_eq!(newer(None, &order(1, 1)), Ok(()));
    }

    #[test]
    fn an_older_generation_or_term_is_refused() {
        let known = order(5, 3);
        assert_eq!(newer(Some(&known), &order(6, 3)), Ok(()));
        assert_eq!(newer(Some(&known), &order(6, 4)), Ok(()));
        assert!(matches!(newer(Some(&known), &order(5, 3)), Err(StaleOrder::Generation { .. })));
        assert!(matches!(newer(Some(&known), &order(4, 4)), Err(StaleOrder::Generation { .. })));
        let older = newer(Some(&known), &order(9, 2)).unwrap_err();
        assert!(matches!(older, StaleOrder::Term { .. }));
        assert!(alloc::format!("{older}").starts_with(SET_BACK), "the control plane knows it by that");
    }
}
