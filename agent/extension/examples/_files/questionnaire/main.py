from muntin import Extension

ext = Extension()
OTHER = "something else…"


def ask(q):
    options = q.get("options") or []
    answer = ext.select(q["question"], options + [OTHER]) if options else None
    if not options or answer == OTHER:
        answer = ext.input(q["question"])
    return answer


@ext.tool("questionnaire")
def questionnaire(args, update):
    if not ext.hello["dialogs"]:
        return {"text": "Nobody is there to ask. Decide yourself, and say what you assumed.", "isError": True}
    lines = []
    for q in args["questions"][:5]:
        answer = ask(q)
        lines.append("%s\n  %s" % (q["question"], answer if answer is not None else "(the user did not answer)"))
        update("\n".join(lines))
    return "\n".join(lines) or "There were no questions."


ext.run()
