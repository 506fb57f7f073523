package board

import (
	"bytes"
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

// PlanStatus reads `status:` from the front matter of a PLAN.md. Other keys are
// the author's own. The error says what stands there instead of a status.
func PlanStatus(src []byte) (Status, error) {
	matter, _ := frontMatter(bytes.TrimPrefix(src, []byte("\ufeff")))
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
