"""What if: the same fleet with a node more or less, another model, other users. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import structs

from fleetapp.errors import BadRequest, NotFound
from fleetapp.hub.planner.fleet import plan_fleet
from fleetapp.hub.planner.inputs import Device, Link, Model, Node, Wish
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.types import DeviceId


class Inputs(msgspec.Struct, frozen=True):
    """All that a plan is made of."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    wishes: tuple[Wish, ...]

    def plan(self) -> FleetPlan:
        """See ``plan_fleet``."""
        return plan_fleet(self.nodes, self.links, self.wishes)


class AddNode(msgspec.Struct, frozen=True, tag="add_node"):
    """One more PC with a CPU and so many bytes; its speed is assumed, its links too."""

    memory: int
    name: str = ""


class RemoveNode(msgspec.Struct, frozen=True, tag="remove_node"):
    """Without the PC of this name or device id."""

    name: str


class UseModel(msgspec.Struct, frozen=True, tag="use_model"):
    """This model instead of those served; what is known of the demand stays."""

    model: Model


class SetUsers(msgspec.Struct, frozen=True, tag="set_users"):
    """So many users of every model."""

    users: int


MAX_GB = 4096
"""Memory of a PC that may be thought of: more than any has."""
MAX_USERS = 10_000

Edit = AddNode | RemoveNode | UseModel | SetUsers


def parse_edit(text: str, find: Callable[[str], Model]) -> Edit:
    """An edit as people write it: ``+16`` (GB), ``-NAME``, ``model=NAME``, ``users=20``.

    Args:
        text: one of these.
        find: the model of a name; raises NotFound.

    Raises:
        BadRequest: it is none of these.
        NotFound: no such model.
    """
    text = text.strip()
    try:
        if text.startswith("+"):
            number = text[1:].strip().lower().removesuffix("gb").removesuffix("gib").strip()
            return AddNode(int(float(number) * 2**30))
        if text.startswith("users="):
            return SetUsers(int(text.removeprefix("users=")))
    except (ValueError, OverflowError):
        raise BadRequest(
            f"'{text}' has no number.", remedy="Say +16 for a PC with 16 GB, or users=20."
        ) from None
    if text.startswith("-") and len(text) > 1:
        return RemoveNode(text[1:])
    if text.startswith("model=") and len(text) > len("model="):
        return UseModel(find(text.removeprefix("model=")))
    raise BadRequest(
        f"'{text}' is no change that can be planned.",
        remedy="Say +GB for a PC more, -NAME for one less, model=NAME or users=NUMBER.",
    )


def what_if(inputs: Inputs, edits: Iterable[Edit]) -> Inputs:
    """The inputs after these edits, in order.

    Raises:
        NotFound: no such PC.
        BadRequest: a number makes no sense.
    """
    for edit in edits:
        match edit:
            case AddNode():
                inputs = _with_node(inputs, edit)
            case RemoveNode(name):
                kept = tuple(n for n in inputs.nodes if name not in (n.name, n.device_id))
                if len(kept) == len(inputs.nodes):
                    known = ", ".join(n.name for n in inputs.nodes)
                    raise NotFound(
                        f"No PC called '{name}' contributes; there are: {known or 'none'}.",
                        remedy="Say '-' and the name or device id of one of these."
                        if known
                        else "Leave this out until a PC contributes.",
                    )
                inputs = structs.replace(inputs, nodes=kept)
            case UseModel(model):
                first = inputs.wishes[0].demand if inputs.wishes else None
                wish = Wish(model, first) if first is not None else Wish(model)
                inputs = structs.replace(inputs, wishes=(wish,))
            case SetUsers(users):
                if not 1 <= users <= MAX_USERS:
                    raise BadRequest(
                        f"{users} users cannot be planned for.",
                        remedy=f"Say a number from 1 to {MAX_USERS}, like users=20.",
                    )
                wishes = tuple(
                    structs.replace(w, demand=structs.replace(w.demand, users=users))
                    for w in inputs.wishes
                )
                inputs = structs.replace(inputs, wishes=wishes)
    return inputs


def _with_node(inputs: Inputs, edit: AddNode) -> Inputs:
    if not 0 < edit.memory <= MAX_GB * 2**30:
        raise BadRequest(
            f"A PC with {edit.memory / 2**30:g} GB cannot be planned for.",
            remedy=f"Say more than 0 and at most {MAX_GB} GB, like +16.",
        )
    taken = {n.name for n in inputs.nodes}
    fresh = (f"NEW-PC-{i}" for i in range(1, len(taken) + 2))
    name = edit.name or next(n for n in fresh if n not in taken)
    node = Node(DeviceId(name.lower()), name, (Device("CPU", edit.memory),))
    return structs.replace(inputs, nodes=(*inputs.nodes, node))
