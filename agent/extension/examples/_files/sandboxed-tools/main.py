import os
import signal
import subprocess

from muntin import Extension

ext = Extension()
LIMIT = 50 << 10


@ext.tool("bash")
def bash(args, update):
    p = subprocess.Popen(["bash", "-c", args["command"]], cwd=ext.hello["dir"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    left, cancelled, note = args.get("timeout", 120), ext.cancelled, ""
    while True:
        try:
            out, _ = p.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            left -= 0.2
            if left <= 0 or cancelled.is_set():
                os.killpg(p.pid, signal.SIGKILL)
                note = "\n[stopped]"
    text = out[-LIMIT:].decode("utf-8", "replace") + note
    if p.returncode:
        text += "\n\nCommand exited with code %d" % p.returncode
    return {"text": text or "(no output)", "isError": p.returncode != 0}


ext.run()
