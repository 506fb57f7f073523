package simulate

import (
	"time"

	"muntin/orchestrator"
)

// A tally counts while a simulation is at work.
type tally struct {
	prompts, retries, restarts, claims, judged int

	waited, longest time.Duration
	ready           map[string]time.Time // when tasks could be given out first
	broken          error
}

// A Report is how a simulated run went. Times are seconds of its own time.
type Report struct {
	Phase    orchestrator.Phase `json:"phase"`
	Makespan float64            `json:"makespan_s"`
	Tasks    map[string]int     `json:"tasks"` // by their states
	Agents   []AgentReport      `json:"agents"`
	Busy     float64            `json:"utilisation"` // of all agents, from 0 to 1
	Prompts  int                `json:"prompts"`
	Retries  int                `json:"retries"`  // checks that failed, merges that conflicted
	Restarts int                `json:"restarts"` // of agents
	Judged   int                `json:"judged"`   // by a person
	Wait     float64            `json:"mean_wait_s"`
	Longest  float64            `json:"longest_wait_s"` // of a task, from when it was ready to its claim
	Tokens   int64              `json:"tokens"`
	Cost     float64            `json:"cost_usd"`
	Steps    int                `json:"steps"`
	Stuck    []Stuck            `json:"stuck"` // what did not get done, and why
}

// An AgentReport is how one agent fared.
type AgentReport struct {
	Name  string  `json:"name"`
	Turns int     `json:"turns"`
	Busy  float64 `json:"utilisation"`
	Why   string  `json:"why,omitempty"` // what keeps it at the end
}

// A Stuck is a task that a person is needed for.
type Stuck struct {
	Task  string                 `json:"task"`
	State orchestrator.TaskState `json:"state"`
	Why   string                 `json:"why,omitempty"`
}

func (s *simulation) report() Report {
	whole := s.now.Sub(s.start).Seconds()
	r := Report{
		Phase: s.state.Phase, Makespan: whole, Tasks: map[string]int{}, Agents: []AgentReport{}, Stuck: []Stuck{},
		Prompts: s.tally.prompts, Retries: s.tally.retries, Restarts: s.tally.restarts, Judged: s.tally.judged,
		Longest: s.tally.longest.Seconds(), Steps: s.steps,
	}
	if s.tally.claims > 0 {
		r.Wait = s.tally.waited.Seconds() / float64(s.tally.claims)
	}
	share := func(busy time.Duration, of int) float64 {
		if whole == 0 || of == 0 {
			return 0
		}
		return busy.Seconds() / whole / float64(of)
	}
	var busy time.Duration
	for _, name := range s.state.Order {
		p, a := s.agents[name], s.state.Agents[name]
		busy += p.busy
		r.Tokens += a.Used.Tokens
		r.Cost += a.Used.Cost
		trouble := s.state.Trouble(a)
		why := string(trouble.Kind)
		if trouble.Why != "" {
			why += ": " + trouble.Why
		}
		r.Agents = append(r.Agents, AgentReport{Name: name, Turns: p.turns, Busy: share(p.busy, 1), Why: why})
	}
	r.Busy = share(busy, len(s.state.Order))
	for _, t := range s.state.Tasks {
		if t.Group {
			continue
		}
		r.Tasks[string(t.State)]++
		if t.State != orchestrator.TaskDone && t.State != orchestrator.TaskCancelled && t.State != orchestrator.TaskOpen {
			r.Stuck = append(r.Stuck, Stuck{Task: t.ID, State: t.State, Why: t.Reason})
		}
	}
	return r
}
