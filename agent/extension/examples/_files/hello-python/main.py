from muntin import Extension

ext = Extension()


@ext.gate("tool_call")
def look(call):
    if ext.hello["flags"]["word"] in call["args"].get("command", ""):
        return {"block": True, "reason": "the word is not allowed"}


@ext.gate("input")
def shorten(prompt):
    if prompt["text"] == "hi":
        return {"action": "transform", "text": "Hello there."}


@ext.event("agent_settled")
def settled(_):
    ext.status("settled")


@ext.tool("hello")
def hello(args, update):
    update("Hello…")
    return "Hello, %s!" % args["name"]


@ext.command("hello")
def command(args):
    if args != "ask":
        return "Hello."
    return {True: "yes", False: "no", None: "nobody answered"}[ext.confirm("Say hello?")]


ext.run()
