package adapter

import (
	"path"
	"slices"
	"strings"
	"time"
)

// The names of the adapters that are not a CLI's own.
const (
	BuiltIn = "muntin"  // our own agent: it attaches to the socket
	Shell   = "shell"   // bash, zsh, sh, fish at their prompt
	Generic = "generic" // anything else
)

// An Adapter is how one kind of agent is prompted and watched. The zero value
// types the text and nothing else.
type Adapter struct {
	Name        string
	Description string // one line
	// Link says that the agent attaches to the supervisor's socket and takes
	// and reports everything there. Nothing is ever typed into it.
	Link bool
	// Foreground says that the agent is a shell: it is at rest only while its
	// own process group is the terminal's foreground group.
	Foreground bool

	Submit      []byte        // the key that sends what was pasted
	SubmitDelay time.Duration // from the text being read to Submit: a quick Enter is taken for a part of the paste
	LongDelay   time.Duration // the same for texts over LongText; 0: SubmitDelay
	Quiet       time.Duration // output still this long: the turn is over
	ReadyQuiet  time.Duration // output still this long after the start: it takes prompts
	ReadyOutput bool          // ready only after some output: it has a prompt or a screen to show
	ReadyPaste  bool          // ready only when it has asked for bracketed paste, as its composer does
	Abort       []byte        // the keys that end a turn
	NoSteer     bool          // it takes nothing while it works: what is sent then waits for the turn's end
	Status      bool          // it tells of its work by OSC 7501
	Rules       []Rule        // what its hooks, titles, notifications and bells mean, the first that fits
	// Composer is a regular expression for the line of its composer: what
	// stands above the last such line is the transcript. It must fit no line of
	// a dialog. Empty: not known.
	Composer string
	Sights   []Sight  // what its screen means when it stands still, the first that fits
	StripEnv []string // variables it must not inherit, beside the supervisor's own list

	Setup Setup  // what is added to its command line
	Hooks []Hook // what it runs `muntin hook` for
	// HookTimeout is how long it waits for one, in its own unit: seconds, or
	// milliseconds. A hook ends itself long before.
	HookTimeout int
	// Approval has the words that make it ask for every act ("ask"), for none
	// but edits ("edits"), for none ("all"), or only plan ("plan").
	Approval map[string][]string
	Sandbox  map[string][]string // the words for each of its own sandboxes
	Thinking []string            // the words that set how hard the model thinks, {value}
	Tools    []string            // the words that say which tools it has, {value} with commas between
	Versions Range               // of the CLI, with which the adapter was tried

	// Its folder of settings is HomeSub in the folder that the variable HomeEnv
	// names, else HomeDir in the user's.
	HomeEnv, HomeSub, HomeDir string
	Transcript                string // pattern of a conversation's file in that folder, with {id} or its first 8 characters, {id8}
	Format                    Format // how to read it
	OpenFile                  bool   // it holds the file open, by which it is found where {id} is not known
}

// LongText is the length, in bytes, from which a text gets LongDelay.
const LongText = 2048

// Delay is how long to wait between a text of n bytes and Submit.
func (a Adapter) Delay(n int) time.Duration {
	if n > LongText && a.LongDelay > 0 {
		return a.LongDelay
	}
	return a.SubmitDelay
}

// For returns the adapter for a command line: the built-in one for
// "muntin agent …", a CLI's own by the program's name, Shell for a shell at
// its prompt (not for one that runs a script), else Generic.
func For(argv []string) Adapter {
	argv = command(argv)
	if len(argv) == 0 {
		return generic()
	}
	name := strings.TrimPrefix(path.Base(argv[0]), "-") // "-bash" is a login shell
	switch {
	case name == BuiltIn:
		if len(argv) > 1 && argv[1] == "agent" {
			return builtIn()
		}
		return generic()
	case isShell(name):
		if interactive(argv[1:]) {
			return shell()
		}
		return generic()
	}
	if a, ok := cli(name); ok {
		return a
	}
	return generic()
}

// Lookup returns the adapter of that name: BuiltIn, Shell, Generic, the name
// of a shell, or that of a CLI.
func Lookup(name string) (Adapter, bool) {
	switch {
	case name == BuiltIn:
		return builtIn(), true
	case name == Generic:
		return generic(), true
	case name == Shell || isShell(name):
		return shell(), true
	}
	return cli(name)
}

// Names lists the adapters that Lookup knows, without the single shells.
func Names() []string {
	return []string{BuiltIn, Shell, Generic, "claude", "codex", "gemini", "opencode", "pi", "qwen"}
}

// command leaves off a leading env(1) with its assignments.
func command(argv []string) []string {
	if len(argv) == 0 || path.Base(argv[0]) != "env" {
		return argv
	}
	for i, arg := range argv[1:] {
		if !strings.Contains(arg, "=") {
			return argv[i+1:]
		}
	}
	return argv
}

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "zsh", "sh", "fish", "dash", "ksh"}, name)
}

// interactive reports whether a shell with these arguments reads commands from
// its terminal: no script, no -c.
func interactive(args []string) bool {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--rcfile" || arg == "--init-file" || arg == "-o" || arg == "-O":
			i++ // takes a value
		case strings.HasPrefix(arg, "--"):
		case strings.HasPrefix(arg, "-"):
			if strings.Contains(arg, "c") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func builtIn() Adapter { return Adapter{Name: BuiltIn, Link: true} }

func shell() Adapter {
	return Adapter{
		Name: Shell, Foreground: true,
		Submit: enter(), SubmitDelay: 20 * time.Millisecond,
		Quiet: 300 * time.Millisecond, ReadyQuiet: 200 * time.Millisecond, ReadyOutput: true,
		Abort: ctrlC(),
	}
}

func generic() Adapter {
	return Adapter{
		Name:   Generic,
		Submit: enter(), SubmitDelay: 150 * time.Millisecond, LongDelay: 300 * time.Millisecond,
		Quiet: 5 * time.Second, ReadyQuiet: time.Second,
		Abort: ctrlC(),
	}
}

func enter() []byte  { return []byte("\r") }
func escape() []byte { return []byte("\x1b") }
func ctrlC() []byte  { return []byte{3} }

// Command is the program that a command line starts, as it is written there;
// empty for none.
func Command(argv []string) string {
	if argv = command(argv); len(argv) == 0 {
		return ""
	}
	return argv[0]
}

// Program is the name of the program that a command line starts, without its
// folder; empty for none.
func Program(argv []string) string {
	argv = command(argv)
	if len(argv) == 0 || argv[0] == "" {
		return ""
	}
	return path.Base(argv[0])
}
