package bedrock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Credentials sign requests. Session is that of temporary ones.
type Credentials struct {
	ID, Secret, Session string
}

// A Chain looks for credentials and a region where Amazon's own tools do: in the
// environment, then in the shared files, where a profile has keys of its own.
//
// Source: https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
type Chain struct {
	Getenv func(string) string
}

// ErrNone says that there are no credentials.
var ErrNone = errors.New("there are no credentials of AWS")

// Credentials gives the first there are. The error is ErrNone where nobody has set
// up any.
func (c Chain) Credentials() (Credentials, error) {
	env := Credentials{c.Getenv("AWS_ACCESS_KEY_ID"), c.Getenv("AWS_SECRET_ACCESS_KEY"), c.Getenv("AWS_SESSION_TOKEN")}
	if env.ID != "" && env.Secret != "" {
		return env, nil
	}
	values, err := c.profile()
	if err != nil {
		return Credentials{}, err
	}
	found := Credentials{values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]}
	switch {
	case found.ID != "" && found.Secret != "":
		return found, nil
	case len(values) == 0 && c.Getenv("AWS_PROFILE") != "":
		return Credentials{}, fmt.Errorf("there is no profile %q in the files of AWS", c.name())
	case len(values) == 0:
		return Credentials{}, ErrNone
	}
	for _, how := range []string{"sso_session", "sso_start_url", "role_arn", "credential_process", "login_session"} {
		if values[how] != "" {
			return Credentials{}, fmt.Errorf("the profile %q gets its keys by %s, which muntin does not; put them into the environment with: aws configure export-credentials --profile %s --format env",
				c.name(), how, c.name())
		}
	}
	return Credentials{}, ErrNone
}

// Region gives the region that is set, or "".
func (c Chain) Region() string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region := c.Getenv(name); region != "" {
			return region
		}
	}
	values, err := c.profile()
	if err != nil {
		return "" // said when there is something to sign
	}
	return values["region"]
}

func (c Chain) name() string {
	for _, name := range []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE"} {
		if profile := c.Getenv(name); profile != "" {
			return profile
		}
	}
	return "default"
}

// profile gives the values of the profile that counts, of both files.
func (c Chain) profile() (map[string]string, error) {
	values := map[string]string{}
	for _, file := range []struct{ variable, name, prefix string }{
		{"AWS_CONFIG_FILE", "config", "profile "}, {"AWS_SHARED_CREDENTIALS_FILE", "credentials", ""},
	} {
		path := c.Getenv(file.variable)
		if path == "" {
			home := c.Getenv("HOME")
			if home == "" {
				continue
			}
			path = filepath.Join(home, ".aws", file.name)
		}
		section := file.prefix + c.name()
		if c.name() == "default" {
			section = "default"
		}
		if err := readSection(path, section, values); err != nil {
			return nil, fmt.Errorf("reading the profile %q: %w", c.name(), err)
		}
	}
	return values, nil
}

// readSection adds the values of one section of a file, which need not exist.
func readSection(path, section string, into map[string]string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return parseSection(f, section, into)
}

// parseSection reads the form of AWS's files: [name], and name = value. Values that
// are indented belong to the one before them and are of no use here.
func parseSection(r io.Reader, section string, into map[string]string) error {
	here := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			name, _, _ := strings.Cut(trimmed[1:], "]")
			here = strings.Join(strings.Fields(name), " ") == section
		case here && line[0] != ' ' && line[0] != '\t':
			if name, value, ok := strings.Cut(trimmed, "="); ok {
				into[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
			}
		}
	}
	return lines.Err()
}
