package orchestrator

import (
	"fmt"
	"maps"
	"slices"
)

// A Back is a rollback of the run as the reducer hears of it: the agents that were
// taken back are at nothing any more.
type Back struct {
	Point  int      `json:"point"`
	Agents []string `json:"agents"`
}

// wentBack lets go of the work of agents that were taken back. What the board says
// of it has been written by whoever took them back, and effects for it that were
// under way are void.
func (r *step) wentBack(b Back) {
	for _, agent := range slices.Sorted(maps.Keys(r.state.Works)) {
		w := r.state.Works[agent]
		if !slices.Contains(b.Agents, agent) {
			continue
		}
		r.emit(Effect{Kind: EffectRecall, Agent: agent, Task: w.Task})
		r.free(w)
		delete(r.state.Courses, w.Task)
	}
	r.state.RunCheck = RunCheck{}
	r.tell(Fact{Text: fmt.Sprintf("the run went back to point %d", b.Point)})
}

// voids tells whether a rollback makes an effect void that has no result yet.
func (b Back) voids(e Effect) bool {
	switch e.Kind {
	case EffectSend, EffectMark:
		return slices.Contains(b.Agents, e.Agent)
	case EffectRunCheck:
		return true
	case EffectClaim, EffectPrepare, EffectCheck, EffectCommit, EffectFirst, EffectMerge, EffectOverlap, EffectApprove, EffectRestart, EffectRecall, EffectNotice:
	}
	return false // nobody waits for it: see State.wants
}
