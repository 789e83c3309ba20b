"""A StatusNotifier host for tests: what Plasma or a GNOME extension sees of a tray icon.

The protocol's watcher, and a reader of one item and its menu (com.canonical.dbusmenu).
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

from jeepney import (
    DBusAddress,
    MessageFlag,
    MessageType,
    Properties,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.io.blocking import open_dbus_connection

WATCHER = "org.kde.StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PATIENCE = 30.0
PROPERTIES: dict[str, tuple[str, Any]] = {
    "RegisteredStatusNotifierItems": ("as", []),
    "IsStatusNotifierHostRegistered": ("b", True),
    "ProtocolVersion": ("i", 0),
}


class NotifierHost:
    """Shows one item. Open it before the app starts.

    Args:
        address: of the session bus.
    """

    def __init__(self, address: str) -> None:
        self._watching = open_dbus_connection(address)
        self._asking = open_dbus_connection(address)
        self._items: queue.Queue[str] = queue.Queue()
        self._over = threading.Event()
        self._item = ""
        self._watching.send_and_get_reply(message_bus.RequestName(WATCHER), timeout=PATIENCE)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Be gone."""
        self._over.set()
        self._thread.join(PATIENCE)
        self._watching.close()
        self._asking.close()

    def wait_for_icon(self) -> None:
        """Until one has come."""
        self._item = self._items.get(timeout=PATIENCE)

    def property(self, name: str) -> Any:
        """Of the icon."""
        there = DBusAddress("/StatusNotifierItem", self._item, ITEM)
        return self._ask(Properties(there).get(name))[0][1]

    def tooltip(self) -> str:
        """Its words."""
        return " ".join(self.property("ToolTip")[2:]).strip()

    def activate(self) -> None:
        """A click on the icon."""
        there = DBusAddress("/StatusNotifierItem", self._item, ITEM)
        self._ask(new_method_call(there, "Activate", "ii", (0, 0)))

    def menu(self) -> dict[str, dict[str, Any]]:
        """Every entry that is there to be seen, by its words; submenus included."""
        there = DBusAddress("/MenuBar", self._item, MENU)
        layout = self._ask(new_method_call(there, "GetLayout", "iias", (0, -1, [])))[1]
        found = {}
        for number, properties in _entries(layout):
            told = {key: value for key, (_, value) in properties.items()}
            label = str(told.get("label", "")).replace("_", "")
            if label and told.get("visible", True):
                found[label] = told | {"number": number}
        return found

    def choose(self, label: str) -> None:
        """A click on an entry of the menu."""
        there = DBusAddress("/MenuBar", self._item, MENU)
        click = (self.menu()[label]["number"], "clicked", ("s", ""), 0)
        self._ask(new_method_call(there, "Event", "isvu", click))

    def _ask(self, message: Any) -> Any:
        reply = self._asking.send_and_get_reply(message, timeout=PATIENCE)
        assert reply.header.message_type is not MessageType.error, reply.body
        return reply.body

    def _watch(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                self._answer(self._watching.receive(timeout=0.1))

    def _answer(self, message: Any) -> None:
        if message.header.message_type is not MessageType.method_call:
            return
        fields = {field.name: value for field, value in message.header.fields.items()}
        match fields.get("member"):
            case "RegisterStatusNotifierItem":
                service = str(message.body[0])
                # some give a path of their own connection instead of a name
                self._items.put(fields["sender"] if service.startswith("/") else service)
                reply = new_method_return(message)
            case "RegisterStatusNotifierHost":
                reply = new_method_return(message)
            case "Get" if message.body[1] in PROPERTIES:
                reply = new_method_return(message, "v", (PROPERTIES[message.body[1]],))
            case "GetAll":
                reply = new_method_return(message, "a{sv}", (PROPERTIES,))
            case _:
                reply = new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")
        if not message.header.flags & MessageFlag.no_reply_expected:
            self._watching.send(reply)


def _entries(node: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    number, properties, children = node
    yield number, properties
    for _, child in children:
        yield from _entries(child)
