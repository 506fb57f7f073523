package source

import (
	"fmt"
	"math"
	"strings"
	"time"

	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/dash"
	"muntin/recipes"
)

// needs are what waits for a person: agents before tasks, because they stand still.
func needs(run orchestrator.Run, st orchestrator.State) []dash.Need {
	var list []dash.Need
	if st.Settings.Approval == recipes.ApprovePerson && st.Plan != board.PlanApproved && st.Plan != board.PlanDone && len(st.Tasks) > 0 {
		list = append(list, dash.Need{
			Kind: dash.NeedPlan, Text: "no task is given out before PLAN.md is approved", Answer: []string{"plan", "approve"}, Label: "approve",
		})
	}
	kept := map[string]bool{}
	for _, name := range st.Order {
		a := st.Agents[name]
		if t := st.Trouble(a); t.NeedsPerson() {
			list = append(list, agentNeed(run, st, a, t))
			kept[name] = true
		}
	}
	for _, t := range st.Tasks {
		if n, ok := taskNeed(st, t, kept); ok {
			list = append(list, n)
		}
	}
	return list
}

func agentNeed(run orchestrator.Run, st orchestrator.State, a orchestrator.Agent, t orchestrator.Trouble) dash.Need {
	n := dash.Need{Agent: a.Name, Task: a.Task, Text: t.Why, Since: a.Since}
	at := []string{"--run", run.Name}
	switch t.Kind {
	case orchestrator.TroubleStalled:
		n.Kind, n.Label = dash.NeedStall, "ask what keeps it"
		n.Answer = append([]string{"send", a.Name, "Nothing was heard of you for a while. Go on, or say what keeps you.", "--steer"}, at...)
	case orchestrator.TroubleBudget:
		n.Kind = dash.NeedBudget
		if args, label := raise(st, a); args != nil {
			n.Answer, n.Label = append(append([]string{"budget"}, args...), at...), label
		}
	case orchestrator.TroubleGivenUp:
		n.Kind, n.Answer, n.Label = dash.NeedRevive, []string{"resume", run.Name}, "bring it back"
	case orchestrator.TroubleAsks, orchestrator.TroubleLimited, orchestrator.TroubleRestarting:
		n.Kind = dash.NeedAnswer // no adapter documents an answer that could be given for a person
	}
	if n.Text == "" {
		n.Text = string(t.Kind)
	}
	return n
}

// raise is how the limit that keeps an agent is raised by half.
func raise(st orchestrator.State, a orchestrator.Agent) (args []string, label string) {
	for _, of := range []orchestrator.Scope{{Agent: a.Name}, {Role: a.Role}, {}} {
		limits, used := st.Budget(of)
		for _, field := range orchestrator.BudgetFields() {
			limit := limits.Field(field)
			if limit <= 0 || used.Field(field) < limit {
				continue
			}
			switch {
			case of.Agent != "":
				args = []string{of.Agent}
			case of.Role != "":
				args = []string{"--role", of.Role}
			default:
				args = []string{"--total"}
			}
			more := math.Ceil(limit / 2)
			return append(args, "--"+field, "+"+budgetArg(field, more)), orchestrator.FormatBudget(field, more) + " more " + field
		}
	}
	return nil, ""
}

// budgetArg writes a value as `muntin budget` takes it.
func budgetArg(field string, v float64) string {
	if field == "time" {
		return time.Duration(v).Round(time.Second).String()
	}
	return fmt.Sprintf("%.0f", v)
}

// taskNeed tells whether a task waits for a person, who is not wanted for its
// agent already.
func taskNeed(st orchestrator.State, t orchestrator.Task, kept map[string]bool) (dash.Need, bool) {
	n := dash.Need{Task: t.ID, Text: t.Text}
	if work := st.WorkOn(t.ID); len(work) > 0 {
		n.Agent = work[0].Agent
	} else if t.Claim != "" {
		n.Agent = t.Claim
	}
	if t.Reason != "" {
		n.Text = t.Reason
	}
	switch t.State {
	case orchestrator.TaskBlocked:
		n.Kind, n.Answer, n.Label = dash.NeedBlocked, []string{"todo", "reopen", t.ID}, "try again"
		if strings.HasPrefix(t.Reason, "the merge conflicts in ") {
			n.Kind = dash.NeedConflict
		}
		return n, !t.Group
	case orchestrator.TaskWaiting:
		n.Kind = dash.NeedDecision
		return n, !kept[n.Agent]
	default:
		return n, false
	}
}
