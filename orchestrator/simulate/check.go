package simulate

import (
	"fmt"

	"muntin/agent/pty"
	"muntin/orchestrator"
)

// Check tells what a state holds that none may: a task with more agents than its
// flow allows, two readers, an agent and its work that do not belong together.
func Check(s orchestrator.State) error {
	lanes, readers := map[string]int{}, map[string]int{}
	for name, w := range s.Works {
		a, ok := s.Agents[name]
		switch {
		case !ok || w.Agent != name:
			return fmt.Errorf("the work of %s is filed under %s", w.Agent, name)
		case a.Task != w.Task:
			return fmt.Errorf("%s has ^%s and works on ^%s", name, a.Task, w.Task)
		case w.Stage == orchestrator.StageResting && w.Next.Text == "":
			return fmt.Errorf("^%s rests with %s for nothing", w.Task, name)
		case w.Over:
		case w.Reads:
			readers[w.Task]++
		default:
			lanes[w.Task]++
		}
	}
	for task, n := range lanes {
		if n > max(s.Settings.Flow.Lanes, 1) {
			return fmt.Errorf("%d agents work on ^%s", n, task)
		}
	}
	for task, n := range readers {
		if n > 1 {
			return fmt.Errorf("%d agents read ^%s", n, task)
		}
		if lanes[task] == 0 {
			return fmt.Errorf("^%s is read, and nobody did it", task)
		}
	}
	for name, a := range s.Agents {
		if _, busy := s.Works[name]; a.Task != "" && !busy {
			return fmt.Errorf("%s has ^%s and no work", name, a.Task)
		}
	}
	return nil
}

// watch notes what a step did, and that it prompts nobody who must not be.
func (s *simulation) watch(before orchestrator.State, effects []orchestrator.Effect) {
	for _, e := range effects {
		switch {
		case e.Kind == orchestrator.EffectSend && (e.Msg == pty.KindPrompt || e.Msg == pty.KindFollowUp):
			s.tally.prompts++
			if over := s.state.Over(s.state.Agents[e.Agent]); over != "" {
				s.broken("%s is prompted, though %s", e.Agent, over)
			}
		case e.Kind == orchestrator.EffectRestart:
			s.tally.restarts++
		case e.Kind == orchestrator.EffectClaim:
			if at, ok := s.tally.ready[e.Task]; ok {
				wait := s.now.Sub(at)
				s.tally.waited += wait
				s.tally.claims++
				s.tally.longest = max(s.tally.longest, wait)
			}
		}
	}
	for name, w := range s.state.Works {
		if was, ok := before.Works[name]; ok && was.Task == w.Task && w.Attempt > was.Attempt {
			s.tally.retries++
		}
	}
}

// atWork lists what agents have to do.
func (s *simulation) atWork() string {
	text := ""
	for _, name := range s.state.Order {
		a := s.state.Agents[name]
		w, busy := s.state.Works[name]
		text += fmt.Sprintf("\n  %s is %s %s", name, a.State, s.state.Trouble(a).Kind)
		if busy {
			text += fmt.Sprintf(", ^%s %s, waits for %q, held %q", w.Task, w.Stage, w.Key, w.Held.Why)
		}
	}
	return text
}

// ended tells what is wrong with how a run ended: something could be done, and
// nothing happens.
func (s *simulation) ended() error {
	if s.tally.broken != nil {
		return s.tally.broken
	}
	if p := s.state.Phase; p == orchestrator.PhaseRunning || p == orchestrator.PhaseStarting {
		return fmt.Errorf("the run hangs: it is %s, and nothing happens any more%s", p, s.atWork())
	}
	idle := 0
	for _, name := range s.state.Order {
		a := s.state.Agents[name]
		if _, busy := s.state.Works[name]; !busy && a.State == pty.AgentIdle && a.Role == orchestrator.RoleWorker && s.state.Over(a) == "" {
			idle++
		}
	}
	for _, t := range s.state.Tasks {
		if t.Ready && len(t.Names) == 0 && idle > 0 && len(s.state.Works) == 0 && len(s.state.Settings.Flow.Steps) == 0 {
			return fmt.Errorf("the run hangs: ^%s is ready, %d agents are idle, and it is not given out", t.ID, idle)
		}
	}
	return nil
}
