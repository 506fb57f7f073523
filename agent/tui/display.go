package tui

import (
	"context"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/internal/term"
)

// A display shows the conversation and gives what a person does there as inputs.
// Its methods may be called from several goroutines. None of them waits for the
// person.
type display interface {
	// inputs is where a person's doings come from. It is closed when there will
	// be no more.
	inputs() <-chan input
	// head shows what the pane begins with, and begins to take inputs. ctx is
	// that of the front end.
	head(ctx context.Context, o Options, notices []string)
	// event shows an event of the agent, or of a command of the person.
	event(e agent.Event)
	// past shows what was said before.
	past(messages []llm.Message)
	// prompt shows a message; how is "", or "steering" for one that goes into
	// the turn that runs.
	prompt(m message, how string)
	// note is a remark of the program itself.
	note(text string)
	// page shows a text that was asked for, in Markdown.
	page(text string)
	footer(o harness.Outcome, err error)
	status(st state, msg string)
	// ready says that prompts are taken and nothing runs.
	ready()
	// entered says that a line of the person was taken.
	entered()
	// queued tells which prompts wait for the end of the turn.
	queued(texts []string)
	// giveBack puts texts that were waiting back into the person's hands.
	giveBack(texts []string)
	facts(f facts)
	// notice shows what an extension says.
	notice(n harness.Notice)
	// recolour shows all that comes in other colours.
	recolour(t term.Theme)
	// statuses are what extensions have to say for as long as it holds.
	statuses(texts []string)
	// ask shows a question; nil: none. The answer comes as an input.
	ask(q *question)
	// copy puts a text onto the person's clipboard.
	copy(text string)
	failed() error
	leave() error
}

// An inputKind says what a person did.
type inputKind int

const (
	inputLine      inputKind = iota // sent a text
	inputFollowUp                   // sent a text for after the turn
	inputAbort                      // Escape
	inputInterrupt                  // Ctrl-C
	inputTakeBack                   // wants the waiting texts back
	inputAnswer                     // answered the question, or did not
	inputLeave                      // Ctrl-D
	inputModel                      // wants the model's list
	inputThinking                   // wants the next level of thinking
)

// An input is one thing that a person did.
type input struct {
	kind   inputKind
	text   string
	choice int // inputAnswer: of question.items; -1: none
}

// A question has items to choose from or, without any, wants a text.
type question struct {
	title string
	body  string // below the title
	items []item
	at    int    // the item that is chosen at first
	text  string // to begin with
}

// An item can be chosen.
type item struct {
	label  string
	detail string
}

// facts are what the status line tells.
type facts struct {
	model    string
	thinking string
	used     int // tokens of the next request
	window   int // 0: not known
	cost     float64
	branch   string
	task     string
	name     string
}
