package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muntin/agent/harness"
	"muntin/agent/tool"
	"muntin/cmd/internal/cli/app"
)

// inputs are the prompts of a command line: the first holds what came on standard
// input, then the files named by @, then the first message.
func inputs(a *app.App, args []string) ([]harness.Input, error) {
	var texts []string
	if !a.Streams.InTTY {
		b, err := io.ReadAll(a.Streams.In)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		if text := strings.TrimSpace(string(b)); text != "" {
			texts = append(texts, text+"\n")
		}
	}
	return inputsAfter(a, texts, args)
}

// inputsAfter makes prompts of arguments; texts go before the first.
func inputsAfter(a *app.App, texts, args []string) ([]harness.Input, error) {
	var first draft
	var messages []string
	for _, arg := range args {
		name, isFile := strings.CutPrefix(arg, "@")
		if !isFile {
			messages = append(messages, arg)
			continue
		}
		text, err := first.attach(a, name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(messages) > 0 {
		texts = append(texts, messages[0])
		messages = messages[1:]
	}
	first.Text = strings.TrimSpace(strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n"))
	if first.Text == "" && len(first.Images) == 0 {
		return nil, nil
	}
	all := []harness.Input{first.Input}
	for _, m := range messages {
		all = append(all, harness.Input{Text: m})
	}
	return all, nil
}

// a draft is a prompt that files are attached to.
type draft struct{ harness.Input }

// attach reads a file: of a text it gives the text, as Pi puts it; a picture goes
// with the prompt. An empty file is left out.
func (d *draft) attach(a *app.App, name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(a.Getenv("HOME"), rest)
	}
	file, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	picture, is, err := tool.Picture(file)
	if err != nil {
		return "", fmt.Errorf("reading the file @%s: %w", name, err)
	}
	if is {
		d.Images = append(d.Images, picture)
		return fmt.Sprintf("<file name=%q></file>", file), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the file @%s: %w", name, err)
	}
	if len(text) == 0 {
		return "", nil
	}
	return fmt.Sprintf("<file name=%q>\n%s\n</file>", file, text), nil
}

// textOrFile is a text that a flag gives, or that of the file that it names.
func textOrFile(value string) (string, error) {
	if value == "" || strings.ContainsRune(value, '\n') {
		return value, nil
	}
	info, err := os.Stat(value)
	if err != nil || !info.Mode().IsRegular() {
		return value, nil // it names no file: it is the text
	}
	b, err := os.ReadFile(value)
	if err != nil {
		return "", fmt.Errorf("reading the system prompt: %w", err)
	}
	return string(b), nil
}

// toolNames are the tools that the flags ask for: names and globs, or, when all of
// them begin with + or -, changes to the default ones, which those of extensions are
// too. It is never nil.
func toolNames(o Options, theirs []string) ([]string, error) {
	names := []string{}
	signed := func(p string) bool { return strings.HasPrefix(p, "+") || strings.HasPrefix(p, "-") }
	changes := len(o.Tools) > 0 && !slices.ContainsFunc(o.Tools, func(p string) bool { return !signed(p) })
	switch {
	case o.NoTools && len(o.Tools) > 0:
		return nil, app.Usage("--no-tools leaves nothing for --tools to choose")
	case o.NoTools:
		return names, nil
	case len(o.Tools) == 0 || changes:
		names = append(tool.Defaults(), without(theirs, tool.Defaults())...)
	}
	var errs []error
	for _, p := range o.Tools {
		if signed(p) && !changes {
			return nil, app.Usage("--tools %s: names, or only changes by + and -", strings.Join(o.Tools, ","))
		}
		found, err := match(strings.TrimLeft(p, "+-"), theirs)
		errs = append(errs, err)
		if strings.HasPrefix(p, "-") {
			names = without(names, found)
		} else {
			names = append(names, without(found, names)...)
		}
	}
	for _, p := range o.Exclude {
		found, err := match(p, theirs)
		errs = append(errs, err)
		names = without(names, found)
	}
	return names, errors.Join(errs...)
}

// match are the tools whose names fit a pattern.
func match(pattern string, theirs []string) ([]string, error) {
	known := append(tool.Names(), without(theirs, tool.Names())...)
	found := slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return err != nil || !ok
	})
	if len(found) == 0 {
		return nil, app.Usage("there is no tool %q: there are %s", pattern, strings.Join(known, ", "))
	}
	return found, nil
}

func without(names, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(gone, n) })
}

// firstPrompt is what a terminal begins with; standard input is the person's.
func firstPrompt(a *app.App, args []string) (string, error) {
	prompts, err := inputsAfter(a, nil, args)
	switch {
	case err != nil || len(prompts) == 0:
		return "", err
	case len(prompts) > 1 || len(prompts[0].Images) > 0:
		return "", app.Usage("several prompts and pictures need -p")
	}
	return prompts[0].Text, nil
}
