"""Uses the Python client that was generated from the API's description: sets an entity, and reads it and the nodes back."""

import sys

from generated import AuthenticatedClient
from generated.api.entities import entities_get, entities_put
from generated.api.freezes import freezes_put
from generated.api.nodes import nodes_list
from generated.models import EntitySpec, FreezeSpec

url, token = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token) as client:
    [node] = nodes_list.sync("default", client=client).items
    assert node.node.name == "web-1", node
    entities_put.sync("default", "web", client=client, body=EntitySpec(selector="role=web", owner="shop team"))
    entity = entities_get.sync("default", "web", client=client)
    assert (entity.selector, entity.owner) == ("role=web", "shop team"), entity
    statuses = [freezes_put.sync_detailed("default", "sale", client=client, body=FreezeSpec()) for _ in range(2)]
    assert [int(answer.status_code) for answer in statuses] == [201, 200], statuses
    assert all(answer.parsed.freeze.name == "sale" for answer in statuses), statuses
