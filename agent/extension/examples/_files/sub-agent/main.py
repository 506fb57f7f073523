# The other agent works in a tmux pane of its own, which muntin attach shows. When no
# agent is named, a run with one agent is started for the task, and ended after it.
import itertools
import os
import subprocess

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


def ask(agent, task, *where):
    return muntin("send", agent, "--wait", *where, data=task)


@ext.tool("sub_agent")
def sub_agent(args, update):
    if args["action"] == "agents":
        return muntin("ls")
    if not args.get("task"):
        raise RuntimeError("ask needs a task")
    if args.get("agent"):
        update("asked " + args["agent"])
        return ask(args["agent"], args["task"])
    name = "sub-%d-%d" % (os.getpid(), next(numbers))
    muntin("up", "solo", "--name", name)
    try:
        update("it works in a pane: muntin attach " + name)
        return ask("solo", args["task"], "--run", name)
    finally:
        muntin("down", name)


ext.run()
