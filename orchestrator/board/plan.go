package board

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// A Status is how far a plan is, as the front matter of PLAN.md says.
type Status string

// The statuses of a plan. A plan without one is of no planned run.
const (
	PlanNone     Status = ""
	PlanDraft    Status = "draft"
	PlanApproved Status = "approved"
	PlanDone     Status = "done"
)

// maxFrontMatter bounds the front matter that is read, in bytes: agents write the
// plan, and the reader of YAML takes a time that grows with the square of its keys.
const maxFrontMatter = 64 << 10

// PlanStatus reads `status:` from the front matter of a PLAN.md. Other keys are
// the author's own. The error says what stands there instead of a status.
func PlanStatus(src []byte) (Status, error) {
	matter, _ := frontMatter(bytes.TrimPrefix(src, []byte("\ufeff")))
	if len(matter) > maxFrontMatter {
		return PlanNone, fmt.Errorf("reading the plan's front matter: it has %d bytes, more than %d", len(matter), maxFrontMatter)
	}
	var head struct {
		Status Status `yaml:"status"`
	}
	if err := yaml.Unmarshal(matter, &head); err != nil {
		return PlanNone, fmt.Errorf("reading the plan's front matter: %w", err)
	}
	switch head.Status {
	case PlanNone, PlanDraft, PlanApproved, PlanDone:
		return head.Status, nil
	}
	return PlanNone, fmt.Errorf("reading the plan's status: %q is none of draft, approved and done", head.Status)
}

// SetPlanStatus writes the status into the front matter of a PLAN.md and leaves
// every other byte as it is. A text without front matter gets one.
func SetPlanStatus(src []byte, status Status) ([]byte, error) {
	if _, err := PlanStatus(src); err != nil {
		return nil, err
	}
	bom := 0
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		bom = len("\ufeff")
	}
	eol := "\n"
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		eol = "\r\n"
	}
	line := "status: " + string(status) + eol
	matter, n := frontMatter(src[bom:])
	out := bytes.Clone(src[:bom])
	switch {
	case n == 0:
		out = append(out, "---"+eol+line+"---"+eol...)
		if rest := src[bom:]; len(rest) > 0 {
			out = append(append(out, eol...), rest...)
		}
	default:
		start := bytes.IndexByte(src[bom:], '\n') + 1
		out = append(out, src[bom:bom+start]...)
		found := false
		for l := range bytes.Lines(matter) {
			if bytes.HasPrefix(l, []byte("status:")) && !found {
				out, found = append(out, line...), true
				continue
			}
			out = append(out, l...)
		}
		if !found {
			out = append(out, line...)
		}
		out = append(out, src[bom+start+len(matter):]...)
	}
	if got, err := PlanStatus(out); err != nil || got != status {
		return nil, fmt.Errorf("setting the plan's status: the front matter cannot be edited: %w", cmp.Or(err, errors.New("the status is not on a line of its own")))
	}
	return out, nil
}

// PlanBody is the plan without its front matter.
func PlanBody(src []byte) []byte { return src[bodyStart(src):] }
