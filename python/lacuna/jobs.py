# SPDX-License-Identifier: Apache-2.0
"""Long work: in a thread and a context of its own, with its log in `logging`, its progress in a callback, ended by Ctrl-C.

The library's sinks are called in any thread. They only put what they get into a queue, which the caller's thread reads: a
callback runs where the caller is, what it raises ends the work, and a signal is handled at once.
"""
import functools
import queue
import threading

from .library import NULL, call, ffi, in_context, lib, text

# The library's levels as those of logging, whose DEBUG is 10.
LEVELS = {lib.LAC_LOG_ERROR: 40, lib.LAC_LOG_WARNING: 30, lib.LAC_LOG_INFO: 20, lib.LAC_LOG_DEBUG: 10, lib.LAC_LOG_TRACE: 5}


@functools.cache
def logger():
    """The logger `lacuna`."""
    import logging  # pylint: disable=import-outside-toplevel # at the first work, so that `import lacuna` is quick
    return logging.getLogger("lacuna")


def _wanted_level():
    """The last level of the library whose lines the logger takes; None: it takes none."""
    taken = [level for level, its in LEVELS.items() if logger().isEnabledFor(its)]
    return max(taken) if taken else None


class Bar:
    """Progress as bars: tqdm's, or lines of the log where it is not installed."""

    def __init__(self):
        try:
            from tqdm.auto import tqdm  # pylint: disable=import-outside-toplevel
            self.make = tqdm
        except ImportError:
            self.make = None
        self.bar = self.what = None

    def __call__(self, what, done, total):
        if self.make is None:
            logger().info("%s: %d of %d", what, done, total)
            return
        if what != self.what:
            self.close()
            self.bar, self.what = self.make(desc=what, total=total), what
        self.bar.total = total
        self.bar.update(done - self.bar.n)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def run(work, progress=None):
    """work() in a context of its own; its result. What the callback raises, and Ctrl-C, end the work and are raised."""
    events, context = queue.SimpleQueue(), ffi.new("lac_context **")
    report = Bar() if progress is True else progress or None
    level = _wanted_level()
    call("lac_context_create", context)

    @ffi.callback("lac_log_sink")
    def log(its_level, line, _user):
        events.put((logger().log, LEVELS[its_level], "%s", text(line)))

    @ffi.callback("lac_progress_sink")
    def went(what, done, total, _user):
        events.put((report, text(what), done, total))

    if level is not None:
        lib.lac_context_set_log(context[0], level, log, NULL)
    if report:
        lib.lac_context_set_progress(context[0], went, NULL)
    outcome = {}

    def in_thread():
        try:
            with in_context(context[0]):
                outcome["result"] = work()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            outcome["error"] = error
        finally:
            events.put(None)

    thread = threading.Thread(target=in_thread, name="lacuna", daemon=True)
    thread.start()
    try:
        failure = _listen(events, context[0])
        thread.join()
    finally:
        if not thread.is_alive():
            lib.lac_context_destroy(context[0])
        if isinstance(report, Bar):
            report.close()
    if failure is not None:
        raise failure
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def _listen(events, context):
    """Hands on events until the work ended; what came between (Ctrl-C, a callback's exception) asks the work to end."""
    failure = None
    while True:
        try:
            event = events.get(timeout=None if failure is None else 0.05)
            if event is None:
                return failure
            if failure is None:
                event[0](*event[1:])
        except queue.Empty:  # a search ends with what it has, which fulfils a request: the next one ends what comes after it
            lib.lac_context_interrupt(context, True)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            failure = failure or error
            lib.lac_context_interrupt(context, True)
