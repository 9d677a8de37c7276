//! Histories of a node: whatever it is ordered and whatever it loses, no member is started without its data.

use std::vec::Vec;

use super::*;

/// What happens to a node.
#[derive(Debug, Clone)]
enum Act {
    Order(u64, u8),
    /// So many steps are made before the agent is killed.
    Work(usize),
    WipeData,
    WipeDirectory,
    End(Option<i32>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_u64..5, 0_u8..6).prop_map(|(number, task)| Act::Order(number, task)),
        8 => (0_usize..8).prop_map(Act::Work),
        1 => Just(Act::WipeData),
        1 => Just(Act::WipeDirectory),
        2 => prop_oneof![Just(Some(0)), Just(Some(1)), Just(None)].prop_map(Act::End),
    ]
}

/// A node on which steps are made, with what is to hold of them.
struct Played {
    node: Node,
    /// The members that ever had data.
    had_data: BTreeSet<MemberKey>,
    aside: Vec<MemberDirectory>,
}

impl Played {
    fn perform(&mut self, step: MemberStep) {
        let node = &mut self.node;
        let own = MemberKey::of(&node.order);
        match step {
            MemberStep::Rest(..) | MemberStep::Serve => {}
            MemberStep::Prepare => {
                if node.directory == MemberDirectory::Absent {
                    assert!(!self.had_data.contains(&own), "{own:?} is made anew");
                    node.directory = MemberDirectory::Claimed(own.clone(), MemberData::Unused);
                }
                node.noted = Some(NotedMember { key: own, has_left: false });
            }
            MemberStep::Stop => node.process = MemberProcess::Stopped,
            MemberStep::SetAside => {
                let is_own = matches!(&node.directory, MemberDirectory::Claimed(key, _) if *key == own);
                assert!(!is_own || node.order.task == MemberTask::Leave, "its own data are set aside");
                assert!(!matches!(node.process, MemberProcess::Running(_)), "it still runs");
                self.aside.push(std::mem::replace(&mut node.directory, MemberDirectory::Absent));
            }
            MemberStep::NoteLeft => node.noted = Some(NotedMember { key: own, has_left: true }),
            MemberStep::Ask => node.standing = Standing::Listed,
            MemberStep::Restore => {
                let MemberDirectory::Claimed(key, data) = &mut node.directory else { panic!("no directory") };
                assert_eq!((&*key, *data), (&own, MemberData::Unused));
                assert!(!matches!(node.process, MemberProcess::Running(_)), "it runs");
                assert!(self.had_data.insert(own), "what it has acknowledged is overwritten");
                *data = MemberData::Present;
            }
            MemberStep::Start(with) => {
                let MemberDirectory::Claimed(key, data) = &mut node.directory else { panic!("no directory") };
                assert_eq!(*key, own);
                if with == StartWith::Data {
                    assert_eq!(*data, MemberData::Present);
                } else {
                    assert!(self.had_data.insert(own.clone()), "{own:?} is started without its data");
                }
                *data = MemberData::Present;
                node.process = MemberProcess::Running(own);
            }
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Order(number, task) => {
                let is_restored = *task == 5;
                let task = match task {
                    0 => MemberTask::Prepare,
                    1 | 5 => MemberTask::Run(MemberStart::First),
                    2 => MemberTask::Run(join(&[1, *number])),
                    3 => MemberTask::Run(MemberStart::Again),
                    _ => MemberTask::Leave,
                };
                let restore = Some(source()).filter(|_| is_restored);
                self.node.order = MemberOrder { restore, ..order(*number, task) };
            }
            Act::Work(steps) => {
                for _ in 0..*steps {
                    let step = self.node.plan();
                    self.perform(step);
                }
            }
            Act::WipeData => {
                if let MemberDirectory::Claimed(_, data) = &mut self.node.directory {
                    *data = MemberData::Lost;
                }
            }
            Act::WipeDirectory => self.node.directory = MemberDirectory::Absent,
            Act::End(code) => {
                self.node.process = ended(*code, true);
                self.node.standing = Standing::NotAsked;
            }
        }
    }

    /// Whether nothing is to be done any more, after at most so many steps.
    fn settles(&mut self) -> bool {
        for _ in 0..8 {
            let step = self.node.plan();
            if matches!(step, MemberStep::Rest(..) | MemberStep::Serve) {
                return true;
            }
            self.perform(step);
        }
        false
    }
}

proptest! {
    #[test]
    fn no_member_is_started_without_its_data_and_nothing_that_is_there_is_lost(acts in prop::collection::vec(act(), 1..40)) {
        let mut node = Node::with(MemberTask::Prepare, MemberData::Unused);
        (node.order, node.noted, node.directory) =
            (order(1, MemberTask::Prepare), None, MemberDirectory::Absent);
        let mut played = Played { node, had_data: BTreeSet::new(), aside: Vec::new() };
        for act in &acts {
            played.act(act);
        }
        prop_assert!(played.settles(), "{:?}", played.node.plan());
        // The same order says the same again.
        let first = played.node.plan();
        prop_assert_eq!(first, played.node.plan());
    }
}
