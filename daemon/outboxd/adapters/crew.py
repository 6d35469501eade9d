"""Threads for what cannot be awaited: synchronous handlers, and calls of the AWS SDK."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

IDLE_SECONDS = 10.0
"""A thread without work for so long ends: a pool that was busy once keeps no stacks for ever."""

LOOK_SECONDS = 0.005
"""A result that nobody has told of is found by then."""


class _Job:
    """Work for a thread, and who waits for it: a future of the event loop `loop`."""

    __slots__ = ("context", "error", "future", "loop", "result", "work")

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.context: Context = copy_context()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.context.run(self.work)
        except BaseException as error:
            self.error = error

    def conclude(self) -> None:
        """Tell who waits. In the event loop's thread."""
        if self.future.done():  # cancelled: nobody waits any more
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Crew:
    """At most `size` threads that take work in the order in which it came.

    Not `anyio.to_thread`, which wakes a thread and the event loop for each call: of 210 µs of CPU
    that a message cost, with a handler that does nothing, this was more than a half. Here one
    thread is woken at a time, and only if those that are awake may not get round to the work: when
    handlers are quick a single thread does them one after another, and when they wait each has its
    own. A thread that goes on with the next piece of work at once tells of its results when it has
    done them all. For the case that one of these takes long the event loop looks by itself, soon
    after it has given work away and as long as there are more results or more work.
    """

    def __init__(self, size: int, name: str) -> None:
        """`name` is what dumps of stacks and profiles call the threads."""
        self._size = size
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._done: deque[_Job] = deque()
        self._idle: list[threading.Lock] = []
        self._threads = 0
        self._waking = False
        self._telling = False
        self._looking: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, called in a thread with a copy of the current context.

        Cancelled, this leaves the thread to itself: it keeps its place until its work has ended.
        Work that has not begun by then is not begun.
        """
        loop = asyncio.get_running_loop()
        job = _Job(work, loop)
        self._waiting.append(job)
        self._wake()
        self._look_later(loop)
        result: T = await job.future
        return result

    def _wake(self) -> None:
        """See to it that somebody looks after the work that waits."""
        with self._lock:
            # The one who is on its way wakes the next, if there is work for it.
            if self._waking or not self._waiting:
                return
            if self._idle:
                self._waking = True
                self._idle.pop().release()  # the one who has rested least: the others may end
            elif self._threads < self._size:
                self._waking = True
                self._threads += 1
                # A daemon: a handler that never returns must not keep the process from ending.
                threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        bell = threading.Lock()
        bell.acquire()
        woken = True
        while True:
            with self._lock:
                if woken:
                    self._waking = False
                job = self._waiting.popleft() if self._waiting else None
                if job is None:
                    self._idle.append(bell)
            if job is not None:
                woken = False
                self._do(job)
            elif self._is_woken(bell):
                woken = True
            else:
                return

    def _is_woken(self, bell: threading.Lock) -> bool:
        """Rest until there is work; False if there was none for long, and this thread is to end."""
        if bell.acquire(timeout=IDLE_SECONDS):
            return True
        with self._lock:
            if bell in self._idle:
                self._idle.remove(bell)
                self._threads -= 1
                return False
        return bell.acquire()  # it was rung a moment too late to be heard

    def _do(self, job: _Job) -> None:
        if self._waiting:
            self._wake()
        if job.future.cancelled():
            return
        job.run()
        self._done.append(job)
        # Read and written without the lock: at worst the loop is called once too often.
        if not self._waiting and not self._telling:
            self._telling = True
            try:
                job.loop.call_soon_threadsafe(self._tell)
            except RuntimeError:  # the loop has ended, and with it everybody who waited
                self._telling = False

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._looking is not loop:
            self._looking = loop
            loop.call_later(LOOK_SECONDS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = None
        if self._done or self._waiting:
            self._tell()
            self._look_later(loop)

    def _tell(self) -> None:
        self._telling = False
        while self._done:
            self._done.popleft().conclude()
