# Another program writes the file whole: to another name first, then renamed.
import os
import threading

from muntin import Extension

ext = Extension()
end = threading.Event()


def watch():
    path = os.path.join(ext.hello["dir"], ext.hello["flags"]["file"])
    while not end.wait(0.2):
        taken = path + ".taken"
        try:
            os.rename(path, taken)  # so that it is sent once
            with open(taken, encoding="utf-8") as f:
                text = f.read().strip()
            os.remove(taken)
        except FileNotFoundError:
            continue
        if text:
            ext.send(text)


@ext.event("session_start")
def begin(_):
    threading.Thread(target=watch, daemon=True).start()


ext.run()
end.set()
