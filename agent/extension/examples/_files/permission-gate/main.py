# Without somebody to ask, as with muntin agent -p, such commands are blocked.
import re

from muntin import Extension

ext = Extension()
DANGER = re.compile(
    r"\brm\s+(-\w*[rf]|--recursive|--force)|\bsudo\b|\bmkfs|\bdd\b.*\bof=|\bchmod\s+(-\w*R|.*\b777)|>\s*/dev/(sd|nvme|disk)"
    r"|\bgit\s+(push\b.*(--force|\s-f\b)|reset\s+--hard|clean\s+-\w*f|checkout\s+--\s)|\bdrop\s+(table|database)\b|curl\b.*\|\s*(ba|z)?sh\b",
    re.IGNORECASE,
)


def decide(command):
    if not DANGER.search(command):
        return {}
    if ext.confirm("Run this command?", command):
        return {}
    return {"block": True, "reason": "The user does not allow this command: " + command}


@ext.gate("tool_call")
def call(c):
    return decide(c["args"].get("command", ""))


@ext.gate("user_bash")
def bash(c):
    return decide(c["command"])


ext.run()
