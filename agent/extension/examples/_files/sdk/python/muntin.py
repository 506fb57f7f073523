"""Extensions for muntin in Python: copy this file beside yours. It needs Python 3.8
and nothing else. The protocol is described in docs/extensions.md of muntin.

    from muntin import Extension
    ext = Extension()

    @ext.gate("tool_call")
    def look(call):
        if "rm -rf" in call["args"].get("command", ""):
            return {"block": True, "reason": "not that"}

    @ext.tool("greet")
    def greet(args, update):
        return "Hello, " + args["name"]

    ext.run()

Handlers run in threads of their own, so they may ask the user and take their time. A
handler that raises fails its request: a gate that fails counts as a no.
"""
import itertools
import json
import queue
import sys
import threading
import traceback


class Extension:
    def __init__(self):
        self.hello = {}  # what muntin said at the start: dir, state, session, flags, ...
        self._handlers = {}
        self._write = threading.Lock()
        self._ids = itertools.count(1)
        self._answers = {}
        self._cancels = {}
        self._events = queue.Queue()
        self._request = threading.local()

    # What the extension does. Each of these is a decorator.

    def gate(self, name):
        return lambda f: self._handlers.setdefault(name, lambda params, update: f(params))

    def tool(self, name):
        return lambda f: self._handlers.setdefault("tool " + name, lambda p, update: f(p["args"], update))

    def command(self, name):
        return lambda f: self._handlers.setdefault("command " + name, lambda p, update: f(p.get("args", "")))

    def event(self, name):
        return lambda f: self._handlers.setdefault("event " + name, f)

    def provider(self, f):
        """f(request, emit) answers a model request; emit(event) streams it."""
        return self._handlers.setdefault("provider", f)

    # What the extension may say.

    def notify(self, text, level="info"):
        self._send(type="event", method="notify", params={"text": text, "level": level})

    def status(self, text):
        self._send(type="event", method="status", params={"text": text})

    def send(self, text, steer=False):
        self._send(type="event", method="send", params={"text": text, "as": "steer" if steer else "followup"})

    def confirm(self, title, text=""):
        """True or False, or None when nobody answered."""
        a = self.ask(kind="confirm", title=title, text=text)
        return a.get("confirmed", False) if a.get("answered") else None

    def select(self, title, options):
        """One of the options, or None when nobody answered."""
        a = self.ask(kind="select", title=title, options=options)
        return a.get("value", "") if a.get("answered") else None

    def input(self, title, default=""):
        """A text, or None when nobody answered."""
        a = self.ask(kind="input", title=title, default=default)
        return a.get("value", "") if a.get("answered") else None

    def ask(self, **question):
        answer = queue.Queue()
        number = next(self._ids)
        self._answers[number] = answer
        self._send(type="request", id=number, method="ask", params=question)
        frame = answer.get()
        if frame.get("error"):
            raise RuntimeError(frame["error"])
        return frame.get("result", {})

    @property
    def cancelled(self):
        """A threading.Event that is set when nobody waits for this request any more."""
        return self._request.cancelled

    # How it works.

    def run(self):
        out, sys.stdout = sys.stdout, sys.stderr  # print() goes to the log
        self._out = out
        threading.Thread(target=self._run_events, daemon=True).start()
        for line in sys.stdin:
            try:
                self._frame(json.loads(line))
            except ValueError:
                traceback.print_exc()
        self._events.put(None)

    def _frame(self, f):
        kind, number = f.get("type"), f.get("id")
        if kind == "hello":
            self.hello = f["params"]
            self._send(type="ready", params={"protocol": 1})
        elif kind == "request":
            self._cancels[number] = threading.Event()
            threading.Thread(target=self._answer, args=(f,), daemon=True).start()
        elif kind == "response":
            waiting = self._answers.pop(number, None)
            if waiting:
                waiting.put(f)
        elif kind == "cancel" and number in self._cancels:
            self._cancels[number].set()
        elif kind == "event":
            self._events.put(f)

    def _answer(self, f):
        number, method, params = f["id"], f["method"], f.get("params", {})
        self._request.cancelled = self._cancels[number]
        key = method if method not in ("tool", "command") else method + " " + params["toolName" if method == "tool" else "name"]
        try:
            handler = self._handlers.get(key)
            if handler is None:
                raise LookupError("no handler for " + key)
            result = handler(params, lambda u: self._send(type="update", id=number, params={"text": u} if isinstance(u, str) else u))
            if isinstance(result, str):
                result = {"text": result}
            self._send(type="response", id=number, result=result or {})
        except Exception as e:
            traceback.print_exc()
            self._send(type="response", id=number, error=str(e) or repr(e))
        finally:
            self._cancels.pop(number, None)

    def _run_events(self):
        while True:
            f = self._events.get()
            if f is None:
                return
            handler = self._handlers.get("event " + f["method"])
            if handler:
                try:
                    handler(f.get("params", {}))
                except Exception:
                    traceback.print_exc()

    def _send(self, **frame):
        line = json.dumps(frame) + "\n"
        with self._write:
            self._out.write(line)
            self._out.flush()
