"""Which model is asked."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import QComboBox, QWidget

from ui.chat.model import ChatModel, ModelChoice
from ui.chat.safe_text import one_line


class ModelPicker(QComboBox):
    """Lists what the fleet serves, and the one that was chosen even if it is not served now."""

    picked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Model"))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(16)
        # activated, not changed: what the fleet says must not be taken for a choice
        self.activated.connect(self._activated)

    def _activated(self, index: int) -> None:
        self.picked.emit(str(self.itemData(index)))

    def show_models(self, model: ChatModel, wanted: str) -> None:
        """Show what there is now; ``wanted`` is what this conversation asks, or empty."""
        self.clear()
        for choice in model.models:
            name = one_line(choice.id)
            if not choice.fleet.ready:
                name = self.tr("{model} (not ready)").format(model=name)
            self.addItem(name, choice.id)
            self.setItemData(self.count() - 1, self._tip(choice), Qt.ItemDataRole.ToolTipRole)
        if wanted and self.findData(wanted) < 0:
            self.addItem(self.tr("{model} (not served now)").format(model=one_line(wanted)), wanted)
        self.setEnabled(self.count() > 0)
        if self.count() == 0:
            problem = model.models_problem
            self.addItem(self.tr("No model is served yet"), "")
            self.setToolTip("" if problem is None else str(problem))
            return
        chosen = self.findData(model.choose(wanted))
        self.setCurrentIndex(max(0, chosen))
        self.setToolTip(self._tip_of(model, str(self.currentData())))

    def _tip_of(self, model: ChatModel, name: str) -> str:
        return next((self._tip(m) for m in model.models if m.id == name), "")

    def _tip(self, choice: ModelChoice) -> str:
        return self.tr("Served by {pcs}; up to {n} tokens of question and answer together.").format(
            pcs=", ".join(one_line(name) for name in choice.fleet.devices) or "?",
            n=QLocale().toString(choice.fleet.context_length),
        )
