"""Which devices of this PC the fleet may use: one tick for each kind there is."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from fleetapp.types import ContributionView, DeviceClass, DeviceView
from ui import theme


class LentDevices(QWidget):
    """Shows what the agent says; a click only asks."""

    asked = Signal(str, bool)
    """Device class, and whether to lend it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        names = {
            "CPU": self.tr("Lend the pr&ocessor"),
            "GPU": self.tr("Lend the &graphics processor"),
            "NPU": self.tr("Lend the &neural processor"),
        }
        self._there: set[str] = {"CPU"}
        self.ticks: dict[str, QCheckBox] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * theme.GRID, 0, 0, 0)
        column.setSpacing(theme.GRID // 2)
        for device, text in names.items():
            tick = QCheckBox(text)
            # clicked, not toggled: what the agent reports must not be sent back to it
            tick.clicked.connect(lambda on, device=device: self.asked.emit(device, on))
            column.addWidget(tick)
            self.ticks[device] = tick
        self.show_there(())

    def show_there(self, devices: tuple[DeviceView, ...]) -> None:
        """Offer the kinds that this PC has; the processor always."""
        self._there = {"CPU"} | {d.kind for d in devices if not d.error}
        for device, tick in self.ticks.items():
            tick.setVisible(device in self._there)
            named = [d.name for d in devices if d.kind == device and d.name]
            tick.setToolTip("\n".join(named))

    def show_lent(self, contribution: ContributionView) -> None:
        """Tick what is lent."""
        for device, tick in self.ticks.items():
            tick.setChecked(contribution.devices.get(device, True))

    def offers(self, device: DeviceClass) -> bool:
        """Whether this PC has such a device."""
        return device in self._there
