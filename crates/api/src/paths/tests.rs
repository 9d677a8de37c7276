use super::*;

#[test]
fn parameters_are_filled_in_order_and_encoded() {
    assert_eq!(
        fill(NODE_STATUS, &["default", "web-1", "a b"]),
        "/v1/namespaces/default/nodes/web-1/statuses/a%20b"
    );
    assert_eq!(fill(WHY, &["default", "node/w%"]), "/v1/namespaces/default/why/node/w%25");
}
