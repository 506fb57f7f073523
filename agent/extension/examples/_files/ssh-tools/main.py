# Paths and contents go over standard input or quoted; nothing else is put together.
import os
import shlex
import signal
import subprocess

from muntin import Extension

ext = Extension()
LIMIT = 50 << 10


def remote(script, data=b"", timeout=None):
    flags = ext.hello["flags"]
    if not flags["host"]:
        raise RuntimeError("no host: say --extension-flag ssh-tools.host=NAME")
    line = "cd %s && %s" % (shlex.quote(flags["dir"]), script)
    p = subprocess.Popen([flags["ssh"], "-o", "BatchMode=yes", "--", flags["host"], line], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    done, cancelled = [False], ext.cancelled

    def watch():
        while not done[0]:
            if cancelled.wait(0.1):
                os.killpg(p.pid, signal.SIGTERM)
                return

    import threading
    threading.Thread(target=watch, daemon=True).start()
    try:
        out, _ = p.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGTERM)
        out, _ = p.communicate()
        out += b"\n[stopped after %d s]" % timeout
    finally:
        done[0] = True
    return p.returncode, out


def checked(script, data=b""):
    code, out = remote(script, data)
    if code != 0:
        raise RuntimeError(out.decode("utf-8", "replace").strip() or "ssh ended with %d" % code)
    return out


@ext.tool("bash")
def bash(args, update):
    code, out = remote(args["command"], timeout=args.get("timeout"))
    text = out[-LIMIT:].decode("utf-8", "replace")
    if len(out) > LIMIT:
        text = "[the first %d bytes are left out]\n" % (len(out) - LIMIT) + text
    if code != 0:
        text += "\n\nCommand exited with code %d" % code
    return {"text": text or "(no output)", "isError": code != 0}


@ext.tool("read")
def read(args, update):
    lines = checked("cat < " + shlex.quote(args["path"])).decode("utf-8", "replace").splitlines(True)
    first = max(args.get("offset", 1), 1) - 1
    text = "".join(lines[first:first + args.get("limit", 2000)])
    return text[:LIMIT]


def put(path, data):
    name = shlex.quote(path)
    checked('mkdir -p -- "$(dirname -- %s)" && cat > %s' % (name, name), data)


@ext.tool("write")
def write(args, update):
    put(args["path"], args["content"].encode())
    return "Wrote %d bytes to %s" % (len(args["content"].encode()), args["path"])


@ext.tool("edit")
def edit(args, update):
    old = checked("cat < " + shlex.quote(args["path"]))
    want, new = args["oldText"].encode(), args["newText"].encode()
    if old.count(want) != 1:
        raise RuntimeError("oldText is there %d times in %s: it must be there once" % (old.count(want), args["path"]))
    put(args["path"], old.replace(want, new))
    return "Changed " + args["path"]


ext.run()
