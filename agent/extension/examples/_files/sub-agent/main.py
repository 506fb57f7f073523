# The other agent works in a tmux pane of its own, which muntin attach shows. When no
# agent is named, a run with one agent is started for the task, and ended after it. What it
# changed is then on a branch of the repository.
import itertools
import json
import os
import subprocess
import threading

from muntin import Extension

ext = Extension()
numbers = itertools.count(1)

def muntin(*args, data=None):
    cancelled = ext.cancelled
    p = subprocess.Popen([ext.hello["flags"]["muntin"], "--repo", ext.hello["dir"], *args], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    first = data or ""
    while True:
        try:
            out, err = p.communicate(first, timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            first = None
            if cancelled.is_set():
                p.terminate()
    if p.returncode != 0:
        raise RuntimeError("muntin %s: %s" % (args[0], err.strip() or "exit status %d" % p.returncode))
    return out


def answer(run):
    """The answer to the first prompt of the run's agent."""
    cancelled = ext.cancelled
    p = subprocess.Popen([ext.hello["flags"]["muntin"], "--repo", ext.hello["dir"], "logs", "agent", "--run", run, "--json", "--follow"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def watch():
        while p.poll() is None:
            if cancelled.wait(0.5):
                p.terminate()

    threading.Thread(target=watch, daemon=True).start()
    try:
        for line in p.stdout:
            end = json.loads(line).get("turn_end")
            if end and end["reason"] == "done":
                return end.get("text", "")
            if end:
                raise RuntimeError("its turn did not end well: %s" % (end.get("error") or end["reason"]))
        raise RuntimeError("the run was not followed to the end of the task")
    finally:
        p.terminate()
        p.wait()


@ext.tool("sub_agent")
def sub_agent(args, update):
    if args["action"] == "agents":
        return muntin("ls")
    if not args.get("task"):
        raise RuntimeError("ask needs a task")
    if args.get("agent"):
        update("asked " + args["agent"])
        return muntin("send", args["agent"], "--wait", data=args["task"])
    name = "sub-%d-%d" % (os.getpid(), next(numbers))
    model = ext.hello["flags"].get("model")
    try:
        muntin("run", "--name", name, *(["--model", model] if model else []), " " + args["task"])  # a blank: it is no flag
        update("it works in a pane: muntin attach " + name)
        said = answer(name)
    except BaseException:
        try:
            muntin("down", name)
        except RuntimeError:
            pass  # it did not come up
        raise
    return said.rstrip() + "\n\n" + muntin("down", name)


ext.run()
