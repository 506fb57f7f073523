package notify

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"unicode"

	"muntin/internal/proc"
	"muntin/orchestrator"
)

// desktop shows a notification of the desktop: by the system's own program, else
// by OSC 9 (https://iterm2.com/documentation-escape-codes.html), which terminals
// show as one. tmux hands it on inside its passthrough sequence (tmux(1),
// allow-passthrough).
func (n *Notifier) desktop(ctx context.Context, e orchestrator.Notice) error {
	title := "muntin " + n.Run.Name
	argv := desktopArgv(runtime.GOOS, title, e.Text)
	if _, err := exec.LookPath(argv[0]); err == nil {
		_, err = proc.Run(ctx, proc.Spec{Argv: argv, Env: n.Environ, Timeout: postTime, Merge: true, Keep: keptOutput})
		if err == nil {
			return nil
		}
		n.Log.Info("the desktop took no notification", "argv", argv[0], "error", err)
	}
	if n.Terminal == nil {
		return errors.New("there is neither a desktop nor a terminal")
	}
	return n.write("\x1bPtmux;\x1b\x1b]9;" + printable(title+": "+e.Text) + "\x07\x1b\\")
}

// desktopArgv is the program that shows a notification. The text is an argument
// of its own in both.
func desktopArgv(system, title, text string) []string {
	if system == "darwin" {
		const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
		return []string{"osascript", "-e", script, title, text}
	}
	return []string{"notify-send", "--app-name=muntin", "--", title, text}
}

// printable drops what could end the sequence that a text is in.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
}
