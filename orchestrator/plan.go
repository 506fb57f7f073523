package orchestrator

import (
	"fmt"
	"slices"

	"muntin/agent/pty"
	"muntin/orchestrator/board"
	"muntin/recipes"
)

// approved reports whether tasks may be given out. A plan that is done holds
// nothing up: a person may still add tasks.
func (r *step) approved() bool {
	return r.state.Settings.Approval == recipes.ApproveNone ||
		r.state.Plan == board.PlanApproved || r.state.Plan == board.PlanDone
}

// plan takes a new reading of the plan, and tells those at work what changed.
func (r *step) plan(p Plan) {
	was := r.state.Plan
	r.state.Plan = p.Status
	if was != p.Status && r.state.Settings.Approval != recipes.ApproveNone {
		r.tell(Fact{Good: r.approved(), Text: "the plan is " + statusText(p.Status)})
	}
	if p.Diff == "" || !r.approved() {
		return
	}
	for _, name := range r.state.Order {
		w, ok := r.state.Works[name]
		if !ok || w.Stage != StageWorking {
			continue
		}
		r.emit(Effect{Kind: EffectSend, Agent: name, Task: w.Task, Msg: pty.KindSteer, Text: planText(p.Diff)})
		r.tell(Fact{Agent: name, Text: "the plan was changed: told " + name})
	}
}

func statusText(s board.Status) string {
	if s == board.PlanNone {
		return "a draft"
	}
	return string(s)
}

// planned follows the end of the planner's turn.
func (r *step) planned(a Agent) {
	if r.approved() || r.state.Approve != "" {
		return
	}
	if r.state.Settings.Approval == recipes.ApprovePerson {
		r.tell(Fact{Agent: a.Name, Text: "the plan waits for a person: read PLAN.md, then `muntin plan approve`"})
		return
	}
	r.state.Approve = r.emit(Effect{Kind: EffectApprove, Agent: a.Name})
}

func (r *step) approvedBy(res Result) {
	r.state.Approve = ""
	if !res.OK {
		r.tell(Fact{Bad: true, Text: "the plan could not be approved: " + res.Error})
		return
	}
	r.plan(Plan{Status: board.PlanApproved})
}

// planning reports whether a planner is at work, or about to be.
func (r *step) planning() bool {
	if r.approved() {
		return false
	}
	return slices.ContainsFunc(r.state.Order, func(name string) bool {
		a := r.state.Agents[name]
		return a.Role == recipes.RolePlanner && (a.State == pty.AgentStarting || a.State == pty.AgentWorking)
	})
}

func planText(diff string) string {
	return fmt.Sprintf("The plan (PLAN.md) was changed while you work:\n\n%s\n\nTake it into account where it concerns your task.\n",
		indent(tailOf(diff, maxCheckOutput)))
}
