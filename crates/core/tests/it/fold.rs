//! The board of a large fleet: folded change by change it answers as one built at once.

use bellwether_core::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::Span;
use proptest::prelude::*;

use crate::acts::version;
use crate::laws::{check_fold, config};
use crate::world::{World, newcomer};

/// What happens to a stretch of a large fleet.
#[derive(Debug, Clone)]
enum Move {
    Join,
    Leave,
    Assigned,
    Forgotten,
}

/// A fleet large enough for three levels of the board's tree.
const FLEET: u16 = 1_500;

fn moves() -> impl Strategy<Value = Vec<(Move, u16, u16)>> {
    let what = prop_oneof![
        2 => Just(Move::Join),
        1 => Just(Move::Leave),
        1 => Just(Move::Assigned),
        1 => Just(Move::Forgotten),
    ];
    proptest::collection::vec((what, 0..FLEET, 1..FLEET), 1..8)
}

fn move_one(world: &mut World, what: &Move, target: u16) {
    let name: TargetName = format!("web-{target}").parse().unwrap();
    let state = || TargetState {
        soak: Default::default(),
        failing_before: None,
        version: version(1),
        rollout: RolloutNumber::ZERO,
        purpose: AssignmentPurpose::KnownGood,
        assignment: AssignmentNumber::new(1),
        assigned_at: world.now,
        clock: DeadlineClock::Running {
            from: world.now.minus(Span::from_secs(u64::from(target))),
            set_at: world.now,
        },
        outcome: AssignmentOutcome::InFlight,
    };
    match what {
        Move::Join => world.see(&name, Some(newcomer(Some(&version(1)), world.now))),
        Move::Leave => world.see(&name, None),
        Move::Assigned => {
            let state = state();
            world.states.insert(name.clone(), state.clone());
            world.board.fold_state(&name, Some(state));
        }
        Move::Forgotten => {
            world.states.remove(&name);
            world.board.fold_state(&name, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases.div_ceil(20), ..config() })]

    #[test]
    fn a_large_board_folded_change_by_change_is_the_one_built_at_once(
        moves in moves(),
        back in any::<bool>(),
    ) {
        let mut world = World::new();
        for (what, from, count) in &moves {
            let stretch = *from..from.saturating_add(*count).min(FLEET);
            for target in stretch {
                move_one(&mut world, what, if back { FLEET - target } else { target });
            }
            check_fold(&world);
        }
        let mut emptied = world.clone();
        for target in 0..=FLEET {
            move_one(&mut emptied, &Move::Leave, target);
            move_one(&mut emptied, &Move::Forgotten, target);
        }
        prop_assert_eq!(emptied.board.targets().count(), 0);
        move_one(&mut emptied, &Move::Join, 1);
        prop_assert_eq!(emptied.board.targets().count(), 1);
        check_fold(&emptied);
    }
}
