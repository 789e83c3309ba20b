"""Do two neighbours of a ring fit together? Pure: the hello, and what is held against it."""

from __future__ import annotations

import msgspec

from fleetapp import __version__
from fleetapp.engine.pipe import Link, PeerAddress
from fleetapp.errors import (
    FleetError,
    FleetUnavailable,
    ProtocolError,
    StaleFrame,
    TrustError,
    VersionMismatch,
)
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire.frames import Hello


class Self(msgspec.Struct, frozen=True):
    """What this runner says of itself in a hello, and holds others' hellos against."""

    device_id: str
    fleet: str
    model: str
    """Digest of the model manifest."""
    first_layer: int
    """0 on a head, which is also what the return hop announces."""
    precision: str
    runtime: str


def previous_stage(link: Link) -> int:
    """Number of the stage before, around the ring."""
    return (link.stage - 1) % link.stages


def next_stage(link: Link) -> int:
    """Number of the stage after, around the ring."""
    return (link.stage + 1) % link.stages


def before(link: Link) -> PeerAddress:
    """The stage before; only in a ring of several.

    Raises:
        ProtocolError: the link does not say.
    """
    if link.prev is None:
        raise ProtocolError(f"The link of stage {link.stage} names no stage before it.")
    return link.prev


def after(link: Link) -> PeerAddress:
    """The stage after; only in a ring of several.

    Raises:
        ProtocolError: the link does not say.
    """
    if link.next is None:
        raise ProtocolError(f"The link of stage {link.stage} names no stage after it.")
    return link.next


def name_of(me: Self, link: Link) -> str:
    """This stage in words."""
    return f"stage {link.stage} (device {me.device_id})"


def name_of_previous(link: Link) -> str:
    """The stage before, in words."""
    return f"stage {previous_stage(link)} (device {before(link).device_id})"


def name_of_next(link: Link) -> str:
    """The stage after, in words."""
    return f"stage {next_stage(link)} (device {after(link).device_id})"


def capital(words: str) -> str:
    """The same words at the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def release(runtime: str) -> str:
    """What two stages must have in common: name and version, neither build nor device."""
    return " ".join(word.split("-", 1)[0] for word in runtime.split()[:2])


def hello_of(me: Self, link: Link) -> Hello:
    """How this stage introduces itself to the next."""
    return Hello(
        protocol=PROTOCOL_VERSION,
        app=__version__,
        runtime=me.runtime,
        fleet=me.fleet,
        chain=link.chain,
        epoch=link.epoch,
        from_stage=link.stage,
        to_stage=next_stage(link),
        stages=link.stages,
        model=link.model,
        next_layer=link.next_layer,
        precision=me.precision,
    )


def objection(
    hello: Hello, spki: str, me: Self, link: Link | None, *, taken: bool
) -> FleetError | None:
    """Why the sender of a hello is not the stage before this one; None if it is.

    A FleetUnavailable (of exactly that class) means "not yet": asking again makes sense. Every
    other sentence names both sides and what differs.

    Args:
        hello: what the sender said.
        spki: the key it proved to hold.
        me: this runner.
        link: the ring it is forming or in, if any.
        taken: the connection from the stage before is in use already.
    """
    if hello.fleet != me.fleet:
        return TrustError(
            f"The sender serves fleet {hello.fleet}, device {me.device_id} serves fleet {me.fleet}."
        )
    if link is None or link.prev is None:
        return FleetUnavailable(
            f"The sender forms epoch {hello.epoch} of chain {hello.chain}, device {me.device_id} "
            "is in no ring yet."
        )
    return _wrong_time(hello, spki, me, link) or _wrong_sender(hello, spki, me, link, taken=taken)


def failed_before(
    hello: Hello, me: Self, failed: tuple[Link, FleetError] | None
) -> FleetError | None:
    """For a runner in no ring: why it could not form the one that a hello asks for, if it tried.

    Asking again would not help; the cause travels on to the stage before.
    """
    if failed is None or (failed[0].chain, failed[0].epoch) != (hello.chain, hello.epoch):
        return None
    link, error = failed
    return ProtocolError(f"{capital(name_of(me, link))} could not link: {error.message}")


def _wrong_time(hello: Hello, spki: str, me: Self, link: Link) -> FleetError | None:
    mine = capital(name_of(me, link))
    theirs = f"stage {hello.from_stage} (key {spki[:16]})"
    if hello.chain != link.chain or hello.epoch > link.epoch:
        return FleetUnavailable(
            f"{mine} is in epoch {link.epoch} of chain {link.chain}, {theirs} in epoch "
            f"{hello.epoch} of chain {hello.chain}."
        )
    if hello.epoch < link.epoch:
        return StaleFrame(
            f"{mine} is in epoch {link.epoch}, {theirs} comes from epoch {hello.epoch}."
        )
    return None


def _wrong_sender(
    hello: Hello, spki: str, me: Self, link: Link, *, taken: bool
) -> FleetError | None:
    mine = capital(name_of(me, link))
    if spki != before(link).spki:
        return TrustError(
            f"{mine} expects {name_of_previous(link)} with key {before(link).spki[:16]}, not the "
            f"holder of key {spki[:16]}."
        )
    theirs = f"stage {hello.from_stage} (device {before(link).device_id})"
    if taken:
        return ProtocolError(f"{mine} has a connection from {theirs} already.")
    return _difference(hello, me, link, mine, theirs)


def _difference(hello: Hello, me: Self, link: Link, mine: str, theirs: str) -> FleetError | None:
    pairs: tuple[tuple[str, str | int, str | int], ...] = (
        ("number of stages", hello.stages, link.stages),
        ("sender's stage number", hello.from_stage, previous_stage(link)),
        ("receiver's stage number", hello.to_stage, link.stage),
        ("model digest", hello.model, link.model),
        ("first layer of the receiver", hello.next_layer, me.first_layer),
        ("precision", hello.precision, me.precision),
    )
    for what, they, we in pairs:
        if they != we:
            return ProtocolError(
                f"{mine} and {theirs} do not fit: the {what} is {we} here and {they} there."
            )
    if release(hello.runtime) != release(me.runtime):
        return VersionMismatch(
            f"{mine} runs {me.runtime} (fleetapp {__version__}), {theirs} runs {hello.runtime} "
            f"(fleetapp {hello.app})."
        )
    return None
