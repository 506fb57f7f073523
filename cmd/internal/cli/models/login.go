package models

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muntin/agent/credential"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/oauth"
	"muntin/cmd/internal/cli/app"
)

// loginTimeout bounds how long a login waits for a browser.
const loginTimeout = 15 * time.Minute

type loginOptions struct {
	app      *app.App
	provider string
	browser  bool
	clientID string
	remove   bool
}

// NewLogin makes `muntin login`.
func NewLogin(a *app.App) *cobra.Command {
	o := loginOptions{app: a}
	cmd := &cobra.Command{
		Use:   "login <provider>",
		Short: "Store the key of a model provider",
		Long: "Asks for a key, without showing it, or reads it from standard input, and stores it\n" +
			"in a file that only you can read. \"!command\" in place of a key is kept as it is:\n" +
			"the command is run when a key is needed.\n\n" +
			"With --browser, OpenRouter makes a key for muntin once you agree in a browser, and\n" +
			"GitHub Models gets a token by a code that you type there; the latter needs the\n" +
			"client id of an app of your own (--client-id).",
		Example: "  muntin login anthropic\n  muntin login openrouter --browser\n  pass show groq | muntin login groq",
		Args:    app.Args(1, 1, "a provider"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.provider = args[0]
			return login(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.browser, "browser", false, "log in with a browser (openrouter, github-models)")
	f.StringVar(&o.clientID, "client-id", "", "with --browser for github-models: the client id of your app")
	f.BoolVar(&o.remove, "remove", false, "forget the stored key instead")
	return cmd
}

func login(ctx context.Context, o loginOptions) error {
	s, err := NewShop(o.app)
	if err != nil {
		return err
	}
	p, ok := s.Catalog.Provider(o.provider)
	if !ok {
		return app.Hint(app.Usage("there is no provider %q", o.provider), "muntin models --all lists the models of all")
	}
	out := o.app.Streams.Out
	if o.remove {
		if err := s.Store.Remove(ctx, p.ID); err != nil {
			return err
		}
		fmt.Fprintf(out, "The key of %s is no longer stored.\n", p.ID)
		return nil
	}
	c := credential.Credential{Type: credential.TypeKey}
	if o.browser {
		c, err = byBrowser(ctx, o)
	} else {
		c.Key, err = readKey(o.app, p)
	}
	if err != nil {
		return err
	}
	if err := s.Store.Set(ctx, p.ID, c); err != nil {
		return err
	}
	fmt.Fprintf(out, "The key of %s is stored in %s.\n", p.ID, s.Store.Path())
	return nil
}

func byBrowser(ctx context.Context, o loginOptions) (credential.Credential, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, fmt.Errorf("nobody has agreed within %s", loginTimeout))
	defer cancel()
	out := o.app.Streams.Out
	switch o.provider {
	case "openrouter":
		key, err := oauth.OpenRouter().Login(ctx, func(address string) {
			fmt.Fprintf(out, "Open this page in a browser on this machine:\n\n  %s\n\n", address)
		})
		return credential.Credential{Type: credential.TypeKey, Key: key}, err
	case "github-models":
		if o.clientID == "" {
			return credential.Credential{}, app.Hint(app.Usage("the login of GitHub needs a client id"),
				"register an OAuth app with device flow at https://github.com/settings/developers and give its id with --client-id")
		}
		device := oauth.GitHub(o.clientID)
		token, err := device.Login(ctx, func(page, code string) {
			fmt.Fprintf(out, "Open %s and type the code %s\n", page, code)
		})
		c := credential.Credential{Type: credential.TypeOAuth, TokenURL: device.TokenURL, ClientID: device.ClientID}
		return withToken(c, token, o.app.Now()), err
	}
	return credential.Credential{}, app.Hint(app.Usage("%s has no login by browser that is open to muntin", o.provider),
		"make a key on its site and run muntin login %s", o.provider)
}

// readKey asks for a key without showing it, or takes the first line of what is
// piped in.
func readKey(a *app.App, p catalog.Provider) (string, error) {
	file, isFile := a.Streams.In.(*os.File)
	if !a.Streams.InTTY || !isFile {
		line, err := bufio.NewReader(io.LimitReader(a.Streams.In, 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the key: %w", err)
		}
		return checkKey(line)
	}
	fmt.Fprintf(a.Streams.Err, "The key of %s (it is not shown): ", p.Name)
	line, err := term.ReadPassword(int(file.Fd()))
	fmt.Fprintln(a.Streams.Err)
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	return checkKey(string(line))
}

func checkKey(line string) (string, error) {
	key := strings.TrimSpace(line)
	if key == "" {
		return "", app.Usage("there is no key: nothing was typed")
	}
	if !strings.HasPrefix(key, "!") && strings.ContainsAny(key, " \t") {
		return "", app.Usage("that is no key: it has a space in it")
	}
	return key, nil
}
