"""The chat window: conversations on the left, one of them on the right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QByteArray, QSettings, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QCloseEvent,
    QDesktopServices,
    QHideEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMessageBox,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.chat import words
from ui.chat.composer import Composer
from ui.chat.empty_page import EmptyPage
from ui.chat.find_bar import FindBar
from ui.chat.highlight import warm_up
from ui.chat.link_dialog import LinkDialog
from ui.chat.menu import ChatMenu
from ui.chat.model import ChatModel
from ui.chat.model_picker import ModelPicker
from ui.chat.options_panel import OptionsPanel
from ui.chat.safe_text import one_line
from ui.chat.saving import Saving, confirm
from ui.chat.sidebar import Sidebar
from ui.chat.thread import ThreadView
from ui.chat.values import NEW, Message, Options
from ui.icons import app_icon
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

DRAFT_MS = 400
"""After the last key."""
MODELS_MS = 10_000
"""Between two looks at what the fleet serves, while the window can be seen."""
WAITING_MS = 1_500
"""The same while nothing that is served can answer."""
OPEN = "open"
"""Under which the conversation that is shown is remembered."""


class ChatWindow(QWidget):
    """Shows one conversation of a ChatModel; there may be several such windows."""

    settings_asked = Signal()
    closed = Signal(object)
    """Itself."""
    window_asked = Signal()
    """A second window is wanted."""

    def __init__(
        self, model: ChatModel, settings: QSettings | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.model = model
        self.current = NEW
        self.open_url: Callable[[QUrl], object] = QDesktopServices.openUrl
        self.dialog: LinkDialog | None = None
        self.question: QMessageBox | None = None
        self._settings = settings
        self._editing: Message | None = None
        self.setWindowIcon(app_icon())
        self._draft_later = QTimer(self, singleShot=True, interval=DRAFT_MS)
        self._draft_later.timeout.connect(self._keep_draft)
        self._build()
        self._connect()
        self._shortcuts()
        self._models_again = QTimer(self, interval=MODELS_MS)
        self._models_again.timeout.connect(model.refresh_models)
        self.resize(120 * theme.GRID, 88 * theme.GRID)
        if settings is not None:
            kept = settings.value("chat/geometry")
            if isinstance(kept, QByteArray):
                self.restoreGeometry(kept)
        self._say_about_history()
        last = model.store.recall(OPEN)
        number = int(last) if last.isdecimal() else NEW
        self.show_conversation(number if model.store.conversation(number) else NEW)

    # what is shown

    def show_conversation(self, conversation: int) -> None:
        """Show another one, with the draft it was left with."""
        self._keep_draft()
        self.options.flush()
        self.leave_edit()
        self.current = conversation
        self.model.store.remember(OPEN, str(conversation))
        if not self.find_bar.isHidden():
            self.find_bar.leave()
        options = self.model.options(conversation)
        self.options.show_options(options)
        self.picker.show_models(self.model, options.model)
        self.composer.set_text(self.model.store.draft(conversation))
        self.sidebar.set_current(conversation)
        self._show_thread()
        self.composer.text.setFocus()

    def _show_thread(self) -> None:
        messages = self.model.messages(self.current)
        running = self.model.running(self.current)
        self.stack.setCurrentWidget(self.thread_view if messages else self.empty)
        self.thread_view.show_messages(messages, self._progress())
        self.composer.set_busy(running is not None)
        self.find_bar.follow(messages)
        known = self.model.store.conversation(self.current)
        title = one_line(known.title) if known is not None else self.tr("New chat")
        self.setWindowTitle(self.tr("{title} - Chat").format(title=title))
        self.menu.show_for(known is not None)

    def _progress(self) -> str:
        running = self.model.running(self.current)
        if running is None:
            return ""
        return words.progress_line(running, self.model.paused_for(self.current))

    def _thread_changed(self, conversation: int) -> None:
        if conversation != self.current:
            return
        if conversation != NEW and self.model.store.conversation(conversation) is None:
            # it was deleted, perhaps in another window
            self.composer.set_text("")
            self.show_conversation(NEW)
            return
        if self._editing is not None and self._editing.id not in {
            m.id for m in self.model.messages(conversation)
        }:
            self.leave_edit()
        was_busy = not self.composer.stop.isHidden()
        self._show_thread()
        if was_busy and self.model.running(conversation) is None:
            self._announce(self.tr("The answer is complete."))

    def _answer_changed(self, conversation: int) -> None:
        running = self.model.running(self.current)
        if conversation == self.current and running is not None:
            self.thread_view.show_growth(running.message, self._progress())

    def show_agent(self, said: str) -> None:
        """Why nothing can be asked now; empty if it can. What was typed stays."""
        if said and said != self.agent_line.text():
            self._announce(said)
        self.agent_line.setText(said)
        self.agent_line.setVisible(bool(said))

    # what a person does

    def start_new(self) -> None:
        """Show the conversation that the next question begins."""
        self.show_conversation(NEW)

    def _again(self, message: Message) -> None:
        self.model.regenerate(message.conversation)

    def _stop(self) -> None:
        self.model.stop(self.current)

    def _save_markdown(self) -> None:
        self.saving.ask(self.current, "md")

    def _save_json(self) -> None:
        self.saving.ask(self.current, "json")

    def _models_changed(self) -> None:
        waits = not any(m.fleet.ready for m in self.model.models)
        self._models_again.setInterval(WAITING_MS if waits else MODELS_MS)
        self.picker.show_models(self.model, self.model.options(self.current).model)

    def send(self, text: str) -> None:
        """Ask, or ask anew what is being edited."""
        self.options.flush()
        editing, self._editing = self._editing, None
        self.composer.warn("")
        before = self.current
        if editing is not None:
            self.model.edit(editing, text)
            self.composer.set_text(self.model.store.draft(self.current))
            return
        self.notice.clear()
        self.composer.set_text("")
        self._draft_later.stop()
        self.model.store.set_draft(before, "")
        if before == NEW:
            # the new conversation gets what was chosen for it before it was one
            options = replace(self.model.options(NEW), system=self.options.system.toPlainText())
            self.current = self.model.ask(NEW, text)
            self.model.set_options(self.current, options)
            self.model.store.remember(OPEN, str(self.current))
            self.sidebar.set_current(self.current)
            self._show_thread()
        else:
            self.model.ask(before, text)
        self.thread_view.show_newest()

    def edit(self, message: Message) -> None:
        """Put an earlier question into the field, and say what sending it again removes."""
        self._keep_draft()
        self._editing = message
        self.composer.set_text(message.text)
        self.composer.warn(words.removal_warning(self.model.removed_by_edit(message)))
        self.composer.text.setFocus()

    def leave_edit(self) -> None:
        """Nothing is removed; the draft comes back."""
        if self._editing is not None:
            self._editing = None
            self.composer.warn("")
            self.composer.set_text(self.model.store.draft(self.current))

    def escape(self) -> None:
        """Leave what is open over the chat; else stop the answer."""
        inside = self.focusWidget()
        if (
            not self.find_bar.isHidden()
            and inside is not None
            and self.find_bar.isAncestorOf(inside)
        ):
            self.find_bar.leave()
        elif self.model.running(self.current) is not None:
            self.model.stop(self.current)
        elif self._editing is not None:
            self.leave_edit()
        elif not self.find_bar.isHidden():
            self.find_bar.leave()
        elif self.sidebar.search.text():
            self.sidebar.search.clear()

    def copy_last_answer(self) -> None:
        """To the clipboard, as it was written."""
        answers = [m for m in self.model.messages(self.current) if m.role == "assistant" and m.text]
        if answers:
            theme.copy(answers[-1].text)
            self._announce(self.tr("The answer was copied."))

    def look_at_link(self, address: str) -> None:
        """Show where it leads; the browser opens it only after a yes."""
        if self.dialog is not None:
            self.dialog.reject()
        self.dialog = LinkDialog(address, self)
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.dialog.opened.connect(self.open_url)
        self.dialog.finished.connect(self._dialog_finished)
        self.dialog.open()

    def ask_to_delete(self) -> None:
        """Delete this conversation after a question."""
        known = self.model.store.conversation(self.current)
        if known is not None:
            self._confirm(
                self.tr("Delete this chat?"),
                one_line(known.title),
                self.tr("&Delete"),
                lambda: self.model.delete(known.id),
            )

    def ask_to_delete_all(self) -> None:
        """Delete the history after a question."""
        self._confirm(
            self.tr("Delete all chats?"),
            self.tr(
                "All %n chats on this PC are deleted for good.",
                "",
                len(self.model.store.conversations()),
            ),
            self.tr("&Delete all"),
            self.model.delete_all,
        )

    # Qt's events

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Ask the fleet what it serves, now and from time to time."""
        super().showEvent(event)
        self.model.refresh_models()
        self._models_again.start()
        for later in (200, 400):
            QTimer.singleShot(later, warm_up)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Nothing is asked for nobody."""
        super().hideEvent(event)
        self._models_again.stop()
        self.keep()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Only the window goes; an answer under way is written to its end."""
        self.keep()
        super().closeEvent(event)
        self.closed.emit(self)

    def keep(self) -> None:
        """Write down what was typed and where the window was."""
        self._keep_draft()
        self.options.flush()
        if self._settings is not None:
            self._settings.setValue("chat/geometry", self.saveGeometry())

    def _keep_draft(self) -> None:
        self._draft_later.stop()
        if self._editing is None:
            self.model.store.set_draft(self.current, self.composer.current_text())

    # how it is put together

    def _build(self) -> None:
        self.saving = Saving(self.model, self)
        self.menu = ChatMenu(self)
        self.sidebar = Sidebar(self.model, self.menu)
        self.picker = ModelPicker()
        self.options_button = QToolButton()
        self.options_button.setText(self.tr("&Options"))
        self.options_button.setToolTip(self.tr("System prompt, temperature, length (Ctrl+.)"))
        self.options_button.setAccessibleName(self.tr("Options of this chat"))
        self.options_button.setCheckable(True)
        self.options_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.options = OptionsPanel()
        self.options.hide()
        self.notice = Notice()
        self.agent_line = text_label(muted=True)
        self.agent_line.hide()
        self.thread_view = ThreadView()
        self.empty = EmptyPage()
        self.stack = QStackedWidget()
        self.stack.addWidget(self.thread_view)
        self.stack.addWidget(self.empty)
        self.find_bar = FindBar()
        self.composer = Composer()
        top = QHBoxLayout()
        top.setSpacing(theme.GRID)
        top.addWidget(self.picker, 1)
        top.addWidget(self.options_button)
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(theme.GRID, theme.GRID, theme.GRID, theme.GRID)
        column.setSpacing(theme.GRID)
        column.addLayout(top)
        column.addWidget(self.options)
        column.addWidget(self.notice)
        column.addWidget(self.find_bar)
        column.addWidget(self.stack, 1)
        column.addWidget(self.agent_line)
        column.addWidget(self.composer)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(self.sidebar)
        self.splitter.addWidget(right)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setSizes([32 * theme.GRID, 88 * theme.GRID])
        self.sidebar.setMinimumWidth(22 * theme.GRID)
        right.setMinimumWidth(42 * theme.GRID)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.splitter)

    def _connect(self) -> None:
        model = self.model
        model.thread_changed.connect(self._thread_changed)
        model.answer_changed.connect(self._answer_changed)
        model.models_changed.connect(self._models_changed)
        self.saving.failed.connect(self.notice.show_error)
        model.history_failed.connect(self.notice.show_error)
        for action, act in (
            (self.menu.new, self.start_new),
            (self.menu.rename, self.sidebar.rename_current),
            (self.menu.markdown, self._save_markdown),
            (self.menu.json, self._save_json),
            (self.menu.delete, self.ask_to_delete),
            (self.menu.find_words, self._start_find),
            (self.menu.another, self.window_asked.emit),
            (self.menu.copy_all, self.saving.ask_for_history),
            (self.menu.delete_all, self.ask_to_delete_all),
        ):
            action.triggered.connect(act)
        self.sidebar.chosen.connect(self.show_conversation)
        self.sidebar.new_asked.connect(self.start_new)
        self.picker.picked.connect(self._pick)
        self.options_button.toggled.connect(self._toggle_options)
        self.options.chosen.connect(self._set_options)
        self.thread_view.link_chosen.connect(self.look_at_link)
        self.thread_view.edit_asked.connect(self.edit)
        self.thread_view.again_asked.connect(self._again)
        self.find_bar.moved.connect(self.thread_view.show_message)
        self.find_bar.marked.connect(self.thread_view.mark)
        self.find_bar.left.connect(self.composer.text.setFocus)
        self.composer.sent.connect(self.send)
        self.composer.stopped.connect(self._stop)
        self.composer.edit_left.connect(self.leave_edit)
        self.composer.changed.connect(self._draft_later.start)

    def _shortcuts(self) -> None:
        for keys, act in (
            ("Ctrl+N", self.start_new),
            ("Ctrl+K", self.sidebar.start_search),
            ("Ctrl+F", self._start_find),
            ("Esc", self.escape),
            ("Ctrl+Shift+C", self.copy_last_answer),
            ("Ctrl+.", self.options_button.toggle),
            ("Ctrl+,", self.settings_asked.emit),
            ("Ctrl+Shift+N", self.window_asked.emit),
            ("Ctrl+W", self.close),
            ("F2", self.sidebar.rename_current),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(act)
        delete = QShortcut(QKeySequence(Qt.Key.Key_Delete), self.sidebar.view)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self.ask_to_delete)

    def _start_find(self) -> None:
        self.find_bar.start(self.model.messages(self.current))

    def _toggle_options(self, on: bool) -> None:
        self.options.setVisible(on)
        (self.options.system if on else self.composer.text).setFocus()

    def _pick(self, model: str) -> None:
        self.options.flush()
        self.options.set_model(model)
        self._set_options(replace(self.model.options(self.current), model=model))

    def _set_options(self, options: Options) -> None:
        self.model.set_options(self.current, options)

    def _say_about_history(self) -> None:
        store = self.model.store
        if store.problem is not None:
            self.notice.show_error(store.problem)
        elif store.set_aside is not None:
            self.notice.show_text(
                self.tr(
                    "The chat history was damaged. It was put aside as {file}, and a new one was "
                    "begun."
                ).format(file=store.set_aside)
            )

    def _confirm(self, title: str, text: str, yes: str, act: Callable[[], object]) -> None:
        if self.question is not None:
            self.question.close()
        self.question = confirm(self, title, text, yes, act)
        self.question.finished.connect(self._question_finished)

    def _question_finished(self) -> None:
        self.question = None

    def _dialog_finished(self) -> None:
        self.dialog = None

    def _announce(self, text: str) -> None:
        """For those who do not see it."""
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))
