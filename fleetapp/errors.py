"""Everything that can go wrong, as one tree.

::

    FleetError
    ├── UserError                   what was asked cannot be done as asked
    │   ├── BadRequest              a request's fields make no sense
    │   │   ├── ContextTooLong      prompt and answer do not fit the model's window
    │   │   ├── TemplateRefused     the model's chat template rejects these messages
    │   │   ├── TooLarge            more bytes than a request may have
    │   │   ├── TooSlow             the rest of a request did not arrive in time
    │   │   ├── WrongMediaType      the body is not what its path takes
    │   │   └── Unsupported         a known feature that this version does not offer
    │   ├── NotFound                no such model, node, code, conversation
    │   ├── Unauthorized            no or wrong API key or token
    │   ├── AlreadyRunning          a second start on the same state folder
    │   ├── Busy                    what was asked for is in use, or being worked on
    │   ├── LicenceNotAccepted      a model whose terms somebody has to agree to first
    │   └── BadSetting              a setting's value or file makes no sense
    │       └── ManagedByPolicy     an administrator has laid this value down
    ├── ModelError
    │   ├── NotAModel               the file is something else
    │   ├── CorruptModel            truncated or damaged
    │   ├── UnknownArchitecture     recognised, but nothing here can convert it
    │   ├── CannotSplit             no clean cut between its layers
    │   └── DownloadFailed          no source gave the file
    ├── StorageError
    │   ├── DiskFull                not enough room, said before starting where possible
    │   ├── ReadOnly                the folder cannot be written
    │   └── HashMismatch            bytes are not what the manifest says
    ├── TrustError
    │   ├── BadJoinCode             mistyped, unknown
    │   │   ├── ExpiredJoinCode
    │   │   ├── UsedUpJoinCode
    │   │   ├── RevokedJoinCode
    │   │   └── TooManyAttempts     too many wrong codes from one address
    │   ├── WrongFleet              certificate or authority of another fleet
    │   ├── NotAMember              not in the signed membership, or revoked
    │   ├── ClonedIdentity          another PC has this one's key
    │   └── BadSignature            a manifest or list that its author did not sign
    ├── ProtocolError
    │   ├── VersionMismatch         names both sides
    │   ├── Malformed               garbage, or a frame larger than allowed
    │   ├── StaleFrame              another epoch, slot generation or step
    │   │   └── KeptLost            a kept sequence is not there any more
    │   ├── PeerTimeout             a peer did not finish a message in time
    │   └── PeerClosed              a peer closed the connection, or it broke
    ├── FleetUnavailable            nothing can serve now; try again or add capacity
    │   ├── NoHub                   no coordinator reachable
    │   ├── NoCapacity              no plan fits, or the queue is full
    │   ├── ChainBroken             a stage left while this answer was being written
    │   │   └── StageSilent         it is there, but nothing is heard of it
    │   ├── RunnerFailed            a runner process crashed or hung
    │   ├── NotContributing         a PC does not work for the fleet now
    │   ├── Interrupted             the agent ended before the work did
    │   └── AgentNotRunning         this PC's agent is not running
    └── Cancelled                   ended by the person or client that asked

An error's text is one sentence of what happened; ``remedy`` is one sentence of what to do.
``code`` is stable and machine-readable, ``http_status`` and ``exit_code`` are how API and
command line show it. The idea of documenting the tree as part of the interface is httpx's.
"""

from __future__ import annotations

from typing import ClassVar


class FleetError(Exception):
    """Root of the tree.

    Args:
        message: one sentence saying what happened, naming the node or file.
        remedy: one sentence saying what to do; a class default applies if empty.
    """

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    default_remedy: ClassVar[str] = ""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy or self.default_remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class UserError(FleetError):
    code = "user_error"
    http_status = 400
    exit_code = 2


class BadRequest(UserError):
    """``param`` names the field at fault, or is empty."""

    code = "bad_request"

    def __init__(self, message: str, *, remedy: str = "", param: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.param = param


class ContextTooLong(BadRequest):
    code = "context_length_exceeded"
    default_remedy = "Shorten the prompt or start a new conversation."


class TemplateRefused(BadRequest):
    code = "chat_template_refused"


class TooLarge(BadRequest):
    code = "too_large"
    http_status = 413


class TooSlow(BadRequest):
    code = "too_slow"
    http_status = 408


class WrongMediaType(BadRequest):
    code = "wrong_media_type"
    http_status = 415
    default_remedy = "Send JSON with the header 'Content-Type: application/json'."


class Unsupported(BadRequest):
    code = "unsupported"


class NotFound(UserError):
    code = "not_found"
    http_status = 404


class Unauthorized(UserError):
    code = "unauthorized"
    http_status = 401
    default_remedy = "Send the header 'Authorization: Bearer <key>' with a key of this fleet."


class AlreadyRunning(UserError):
    code = "already_running"
    http_status = 409
    exit_code = 3


class Busy(UserError):
    code = "busy"
    http_status = 409


class LicenceNotAccepted(UserError):
    code = "licence_not_accepted"
    http_status = 403


class BadSetting(UserError):
    code = "bad_setting"


class ManagedByPolicy(BadSetting):
    code = "managed_by_policy"
    http_status = 403
    default_remedy = "Ask the administrator if it has to change."


class AlreadyMember(UserError):
    code = "already_member"
    http_status = 409


class PortTaken(UserError):
    code = "port_taken"
    http_status = 409


class ModelError(FleetError):
    code = "model_error"
    http_status = 422
    exit_code = 4


class NotAModel(ModelError):
    code = "not_a_model"
    default_remedy = "Give a GGUF file or a folder that holds openvino_model.xml."


class CorruptModel(ModelError):
    code = "corrupt_model"
    default_remedy = "Get the file again; nothing was imported."


class UnknownArchitecture(ModelError):
    code = "unknown_architecture"


class CannotSplit(ModelError):
    code = "cannot_split"


class DownloadFailed(ModelError):
    code = "download_failed"
    http_status = 502


class StorageError(FleetError):
    code = "storage_error"
    http_status = 507
    exit_code = 5


class DiskFull(StorageError):
    code = "disk_full"
    default_remedy = "Free some space or choose another folder; what was fetched so far is kept."


class ReadOnly(StorageError):
    code = "read_only"
    default_remedy = "Choose a folder that can be written with --state or FLEETAPP_HOME."


class HashMismatch(StorageError):
    code = "hash_mismatch"
    default_remedy = "The damaged part is dropped and fetched again."


class TrustError(FleetError):
    code = "trust_error"
    http_status = 403
    exit_code = 6


class BadJoinCode(TrustError):
    code = "bad_join_code"
    default_remedy = "Check it character by character or ask the admin for a new one."


class ExpiredJoinCode(BadJoinCode):
    code = "expired_join_code"
    default_remedy = "Ask the admin for a new one."


class UsedUpJoinCode(BadJoinCode):
    code = "used_up_join_code"
    default_remedy = "Ask the admin for a new one."


class RevokedJoinCode(BadJoinCode):
    code = "revoked_join_code"
    default_remedy = "Ask the admin for a new one."


class TooManyAttempts(BadJoinCode):
    code = "too_many_attempts"
    http_status = 429
    default_remedy = "Wait a minute, then try again with the code as the admin shows it."


class WrongFleet(TrustError):
    code = "wrong_fleet"


class NotAMember(TrustError):
    code = "not_a_member"
    default_remedy = "Join the fleet with a join code first."


class ClonedIdentity(TrustError):
    code = "cloned_identity"
    default_remedy = "Nothing to do: it is given an identity of its own."


class BadSignature(TrustError):
    code = "bad_signature"


class ProtocolError(FleetError):
    code = "protocol_error"
    http_status = 502
    exit_code = 7


class VersionMismatch(ProtocolError):
    code = "version_mismatch"
    default_remedy = "Update the older of the two."


class Malformed(ProtocolError):
    code = "malformed"


class StaleFrame(ProtocolError):
    code = "stale_frame"


class KeptLost(StaleFrame):
    code = "kept_lost"


class PeerTimeout(ProtocolError):
    code = "peer_timeout"


class PeerClosed(ProtocolError):
    code = "peer_closed"


class FleetUnavailable(FleetError):
    code = "unavailable"
    http_status = 503
    exit_code = 8


class NoHub(FleetUnavailable):
    code = "no_hub"


class NoCapacity(FleetUnavailable):
    code = "no_capacity"


class RateLimited(FleetUnavailable):
    """``seconds`` until it makes sense to try again."""

    code = "rate_limited"
    http_status = 429

    def __init__(self, message: str, *, remedy: str = "", seconds: int = 1) -> None:
        super().__init__(message, remedy=remedy)
        self.seconds = seconds


class ChainBroken(FleetUnavailable):
    code = "chain_broken"
    default_remedy = "Ask again; the fleet repairs itself within seconds."


class StageSilent(ChainBroken):
    code = "stage_silent"


class RunnerFailed(FleetUnavailable):
    code = "runner_failed"
    default_remedy = "Ask again; the runner is started anew."


class NotContributing(FleetUnavailable):
    code = "not_contributing"
    default_remedy = "The fleet goes on without this PC; it comes back by itself."


class Interrupted(FleetUnavailable):
    code = "interrupted"
    default_remedy = "Start it again; a download goes on where it stopped."


class AgentNotRunning(FleetUnavailable):
    code = "agent_not_running"
    default_remedy = "Start it with 'fleetapp agent', or try 'fleetapp demo'."


class Cancelled(FleetError):
    code = "cancelled"
    http_status = 499
    exit_code = 130


def _walk(cls: type[FleetError]) -> dict[str, type[FleetError]]:
    found = {cls.code: cls}
    for sub in cls.__subclasses__():
        found.update(_walk(sub))
    return found


def from_code(code: str, message: str, remedy: str = "") -> FleetError:
    """Rebuild an error that crossed a process or network boundary as (code, message, remedy)."""
    return _walk(FleetError).get(code, FleetError)(message, remedy=remedy)
