"""Finding the other nodes on the local network with multicast DNS. A hint, never a dependency.

python-zeroconf runs on a thread of its own with a selector event loop, because Windows' proactor
loop drops a UDP reader after an error. Whatever fails is remembered for :meth:`diagnose` and
tried again when the interfaces change; nothing is raised, since a fleet must work without it.
A killed peer stays listed for as long as its records live (up to 75 minutes): whether somebody is
alive is for the hub to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from fleetapp.fleet import multicast
from fleetapp.fleet.peer import Announcement, Peer, parse
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.network import nearest_first
from fleetapp.types import SERVICE_TYPE, Role

__all__ = ["Announcement", "Discovery", "Peer"]

_log = logging.getLogger(__name__)

WATCH_SECONDS = 5.0
"""How often the interfaces are looked at again."""
_RESOLVE_MS = 3000
_RESOLVE_TRIES = 3
_STOP_SECONDS = 5.0
_MAX_PEERS = 2048
"""Anybody can send records; beyond this many, new ones are dropped."""


class Discovery:
    """Announces this node and lists others. All public methods are thread-safe.

    Args:
        interfaces: own IPv4 addresses to use; ``None`` for all usable ones, loopback excepted.
        platform: where own addresses come from; the current one if left out.
    """

    def __init__(
        self, interfaces: tuple[str, ...] | None = None, platform: Platform | None = None
    ) -> None:
        self._chosen = interfaces
        self._platform = current() if platform is None else platform
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._peers: dict[str, Peer] = {}
        self._wanted: Announcement | None = None
        self._failure = ""
        self._skipped: dict[str, str] = {}
        self._active: tuple[str, ...] = ()
        self._since = 0.0
        self._heard_itself = False
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        # owned by the thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = False
        self._refresh = False
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._registered: Announcement | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._broadcasts: set[asyncio.Future[Any]] = set()

    # ---------------------------------------------------------------- any thread

    def start(self, deadline: float = 5.0) -> None:
        """Begin to search; returns when that is up, or after ``deadline`` seconds. Never raises."""
        with self._lock:
            if self._thread is not None:
                return
            self._since = time.monotonic()
            self._stopping = False
            self._ready.clear()
            self._thread = threading.Thread(target=self._main, name="discovery", daemon=True)
            self._thread.start()
        if not self._ready.wait(deadline):
            _log.warning("discovery is slow to start", extra={"seconds": deadline})

    def announce(
        self,
        device_id: str,
        fleet_id: str,
        role: Role,
        port: int,
        addresses: tuple[str, ...],
    ) -> None:
        """Say this of this node from now on; replaces what was said before. Returns at once."""
        self._set_wanted(Announcement(device_id, fleet_id, role, port, tuple(addresses)))

    def withdraw(self) -> None:
        """Say goodbye and nothing more; the search goes on. Returns at once."""
        self._set_wanted(None)

    def refresh(self) -> None:
        """Look at the interfaces now and announce again: after waking or a change of network."""
        self._refresh = True
        self._poke()

    def found(self) -> tuple[Peer, ...]:
        """Everybody heard of but this node, by device id."""
        with self._lock:
            own = self._wanted.device_id if self._wanted else ""
            peers = [p for p in self._peers.values() if p.device_id != own]
        return tuple(sorted(peers, key=lambda p: p.device_id))

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever :meth:`found` may have changed; answers how to stop that.

        It runs in discovery's own thread: hand over with ``loop.call_soon_threadsafe``.
        """
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    async def wait_for(
        self, predicate: Callable[[tuple[Peer, ...]], bool], deadline: float
    ) -> bool:
        """Wait in any event loop until ``predicate(found())``; ``False`` after ``deadline`` s."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # that loop has just been closed
                loop.call_soon_threadsafe(changed.set)

        stop = self.on_change(wake)
        try:
            async with asyncio.timeout(deadline):
                while not predicate(self.found()):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return predicate(self.found())
        finally:
            stop()
        return True

    def diagnose(self) -> tuple[str, ...]:
        """Sentences on why nothing may be found, the remedy last; empty if all seems well."""
        kinds = {a.address: a.kind for a in self._platform.addresses(loopback=True)}
        with self._lock:
            now = multicast.Situation(
                started=self._thread is not None,
                failure=self._failure,
                interfaces=self._active,
                kinds=frozenset(kinds[a] for a in self._active if a in kinds),
                skipped=dict(self._skipped),
                searching=time.monotonic() - self._since if self._thread else 0.0,
                announced=self._registered is not None,
                heard_itself=self._heard_itself,
            )
        return multicast.diagnose(
            multicast.Situation(**{**now.__dict__, "peers": len(self.found())})
        )

    def stop(self, deadline: float = _STOP_SECONDS) -> None:
        """Say goodbye and end the thread; harmless if not started."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopping = True
        self._ready.wait(deadline)  # before that there may be no loop to wake
        self._poke()
        thread.join(deadline)
        if thread.is_alive():
            _log.warning("discovery did not stop in time", extra={"seconds": deadline})

    def _set_wanted(self, wanted: Announcement | None) -> None:
        with self._lock:
            self._wanted = wanted
        self._poke()

    def _poke(self) -> None:
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing left to wake
                loop.call_soon_threadsafe(wake.set)

    # ---------------------------------------------------------------- its own thread

    def _main(self) -> None:
        loop = asyncio.SelectorEventLoop()
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(self._run())
        except Exception as exc:  # noqa: BLE001  (a hint that fails must not take the agent along)
            _log.exception("discovery ended")
            with self._lock:
                self._failure = str(exc) or type(exc).__name__
        finally:
            self._ready.set()
            asyncio.set_event_loop(None)
            loop.close()

    async def _run(self) -> None:
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            while not self._stopping:
                self._wake.clear()
                await self._follow_interfaces()
                await self._follow_announcement()
                self._ready.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), WATCH_SECONDS)
        finally:
            await self._close()

    async def _follow_interfaces(self) -> None:
        candidates = self._chosen
        if candidates is None:
            candidates = tuple(a.address for a in self._platform.addresses())
        good, bad = multicast.usable(candidates)
        refresh, self._refresh = self._refresh, False
        with self._lock:
            self._skipped = bad
        if (good == self._active and not refresh) and (self._zeroconf is not None or not good):
            return
        if refresh:
            # after sleep the sockets may have lost their group without anybody noticing
            await self._close()
        failure = ""
        try:
            if good and self._zeroconf is None:
                self._open(good)
            elif self._zeroconf is not None:
                await self._zeroconf.async_update_interfaces(list(good), IPVersion.V4Only)
        except Exception as exc:  # noqa: BLE001  (zeroconf documents none; remembered and retried)
            _log.warning("multicast DNS failed", extra={"error": repr(exc)})
            failure = str(exc) or type(exc).__name__
            await self._close()
        with self._lock:
            self._failure = failure
            self._active = () if failure else good
        _log.info("searching", extra={"interfaces": good, "skipped": bad})

    def _open(self, addresses: tuple[str, ...]) -> None:
        self._zeroconf = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.V4Only)
        self._browser = AsyncServiceBrowser(
            self._zeroconf.zeroconf, [SERVICE_TYPE], handlers=[self._on_service]
        )

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        zeroconf, self._zeroconf = self._zeroconf, None
        browser, self._browser = self._browser, None
        with self._lock:
            self._registered = None
        if zeroconf is None:
            return
        for future in self._broadcasts:
            future.cancel()
        try:
            if browser is not None:
                await browser.async_cancel()
            await zeroconf.async_close()
        except Exception as exc:  # noqa: BLE001  (closing for good; nothing to act on)
            _log.warning("multicast DNS did not close cleanly", extra={"error": repr(exc)})

    async def _follow_announcement(self) -> None:
        with self._lock:
            wanted = self._wanted
        if self._zeroconf is None or wanted == self._registered:
            return
        try:
            before = self._registered
            if before is not None and (wanted is None or wanted.instance != before.instance):
                self._keep(await self._zeroconf.async_unregister_service(_info(before)))
                before = None
            if wanted is not None and before is not None:
                self._keep(await self._zeroconf.async_update_service(_info(wanted)))
            elif wanted is not None:
                # RFC 6762, 8.1: a name known to be unique by other means is not probed for
                self._keep(
                    await self._zeroconf.async_register_service(
                        _info(wanted), cooperating_responders=True
                    )
                )
        except Exception as exc:  # noqa: BLE001  (remembered; tried again with the next change)
            _log.warning("announcing failed", extra={"error": repr(exc)})
            with self._lock:
                self._failure = f"this PC could not be announced ({exc})"
            return
        with self._lock:
            self._registered, self._failure = wanted, ""

    def _keep(self, broadcast: Any) -> None:
        """Repeats go on in the background; hold the future, or it may be collected half-way."""
        future = asyncio.ensure_future(broadcast)
        self._broadcasts.add(future)
        future.add_done_callback(self._broadcasts.discard)

    def _on_service(
        self,
        zeroconf: Zeroconf,
        service_type: str,  # noqa: ARG002  (zeroconf passes these four by keyword)
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        running = self._tasks.pop(name, None)
        if running is not None:
            running.cancel()
        if state_change is ServiceStateChange.Removed:
            self._put(name, None)
            return
        if len(self._tasks) + len(self._peers) < _MAX_PEERS or name in self._peers:
            self._tasks[name] = asyncio.ensure_future(self._resolve(zeroconf, name))

    async def _resolve(self, zeroconf: Zeroconf, name: str) -> None:
        info = AsyncServiceInfo(SERVICE_TYPE, name)
        for _ in range(_RESOLVE_TRIES):
            if await info.async_request(zeroconf, _RESOLVE_MS):
                # the order of address records is lost on the way; what is near is tried first
                addresses = nearest_first(
                    info.parsed_scoped_addresses(IPVersion.All),
                    self._platform.addresses(loopback=True),
                )
                peer = parse(name, info.port, info.properties, addresses)
                if peer is None:
                    _log.info("a service record makes no sense", extra={"instance": name[:80]})
                self._put(name, peer)
                break
        self._tasks.pop(name, None)

    def _put(self, name: str, peer: Peer | None) -> None:
        with self._lock:
            if self._registered is not None and name == self._registered.instance:
                self._heard_itself = peer is not None
            if self._peers.get(name) == peer:
                return
            if peer is None:
                del self._peers[name]
            else:
                self._peers[name] = peer
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


def _info(said: Announcement) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE_TYPE,
        said.instance,
        parsed_addresses=list(said.addresses),
        port=said.port,
        properties=said.properties(),
        server=said.server,
    )
