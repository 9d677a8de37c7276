use alloc::vec;

use proptest::prelude::*;

use super::*;

fn task(name: &str) -> RunTask {
    let (stage, task) = name.split_once('/').unwrap_or(("all", name));
    RunTask {
        stage: stage.parse().unwrap(),
        task: task.parse().unwrap(),
        digest: name.into(),
        profiles: vec![],
        idempotent: false,
    }
}

fn list(names: &str) -> Vec<RunTask> {
    names.split_whitespace().map(task).collect()
}

fn add(at: impl Into<Option<usize>>, names: &str) -> ListEdit {
    ListEdit::Add { at: at.into(), tasks: list(names) }
}

fn remove(names: &str) -> ListEdit {
    ListEdit::Remove(names.split_whitespace().map(Into::into).collect())
}

/// The names of the list after an edit, of which so many tasks were begun.
fn after(names: &str, begun: usize, edit: &ListEdit) -> Result<String, ListRefusal> {
    let list = list(names);
    let edited = edited(&list, begun, edit)?.unwrap_or(list);
    Ok(edited.iter().map(|task| task.task.to_string()).collect::<Vec<_>>().join(" "))
}

#[test]
fn tasks_are_added_at_the_end_or_at_an_offset_from_the_first_that_was_not_begun() {
    assert_eq!(after("a b c", 1, &add(None, "x y")).unwrap(), "a b c x y");
    assert_eq!(after("a b c", 1, &add(0, "x")).unwrap(), "a x b c");
    assert_eq!(after("a b c", 1, &add(2, "x")).unwrap(), "a b c x");
    assert_eq!(after("a b c", 3, &add(0, "x")).unwrap(), "a b c x");
    let refused = after("a b c", 1, &add(3, "x")).unwrap_err();
    assert_eq!(refused, ListRefusal::BehindTheEnd { at: 3, later: 2 });
}

#[test]
fn one_ordered_sequence_of_later_tasks_is_removed() {
    assert_eq!(after("a b c d", 1, &remove("b d")).unwrap(), "a c");
    assert_eq!(after("a b c b", 1, &remove("b")).unwrap(), "a c b", "one for each time that it is named");
    assert_eq!(after("a b c b", 1, &remove("b b")).unwrap(), "a c");
    assert_eq!(after("a one/b two/b", 0, &remove("two/b")).unwrap(), "a b");
    let refused = after("a b c", 0, &remove("c b")).unwrap_err();
    assert_eq!(refused.to_string(), "b is not among the tasks that follow c: all/a, all/b, all/c");
}

#[test]
fn what_was_begun_stays() {
    let refused = after("a b c", 2, &remove("a")).unwrap_err();
    assert_eq!(refused, ListRefusal::Begun { task: "a".into() });
    assert_eq!(after("a b a", 1, &remove("a")).unwrap(), "a b", "the later one is another");
    let refused = after("a b c", 2, &remove("c a")).unwrap_err();
    assert!(matches!(refused, ListRefusal::NotLater { .. }), "{refused}");
}

#[test]
fn a_list_has_an_end() {
    let long = vec!["a"; MAX_TASKS].join(" ");
    assert_eq!(after(&long, 0, &add(None, "x")).unwrap_err(), ListRefusal::TooLong(MAX_TASKS + 1));
}

fn names() -> impl Strategy<Value = String> {
    proptest::collection::vec("[a-d]", 0..6).prop_map(|names| names.join(" "))
}

fn edits() -> impl Strategy<Value = ListEdit> {
    let some = || proptest::collection::vec("[a-d]", 1..4).prop_map(|names| names.join(" "));
    prop_oneof![
        (proptest::option::of(0_usize..6), some()).prop_map(|(at, names)| add(at, &names)),
        some().prop_map(|names| remove(&names)),
    ]
}

proptest! {
    #[test]
    fn an_edit_changes_nothing_that_was_begun_and_adds_or_removes_exactly_what_it_names(
        names in names(), begun in 0_usize..6, edit in edits(),
    ) {
        let before = list(&names);
        let begun = begun.min(before.len());
        let Ok(Some(after)) = edited(&before, begun, &edit) else { return Ok(()) };
        prop_assert_eq!(&after[..begun], &before[..begun]);
        let (longer, shorter, named) = match &edit {
            ListEdit::Add { tasks, .. } => (&after, &before, tasks.len()),
            ListEdit::Remove(names) => (&before, &after, names.len()),
        };
        prop_assert_eq!(longer.len(), shorter.len() + named);
        let mut rest = longer.iter();
        prop_assert!(shorter.iter().all(|task| rest.any(|other| other == task)), "the others keep their order");
    }

    #[test]
    fn adding_the_same_again_changes_nothing(
        names in names(), begun in 0_usize..6, at in proptest::option::of(0_usize..6), added in "[a-d]( [a-d]){0,3}",
    ) {
        let before = list(&names);
        let begun = begun.min(before.len());
        let edit = add(at, &added);
        let Ok(after) = edited(&before, begun, &edit) else { return Ok(()) };
        let after = after.unwrap_or(before);
        prop_assert_eq!(edited(&after, begun, &edit).unwrap(), None);
    }
}
