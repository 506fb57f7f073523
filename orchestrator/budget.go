package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"muntin/agent/pty"
)

// A Budget is what agents may use, or have used. In a limit, zero is none.
type Budget struct {
	Turns     int           `json:"turns,omitempty"`
	Tokens    int64         `json:"tokens,omitempty"`
	Cost      float64       `json:"cost,omitempty"`      // US dollars
	Time      time.Duration `json:"time,omitempty"`      // of turns
	Memory    int64         `json:"memory,omitempty"`    // bytes held at the end of the last turn
	Processes int           `json:"processes,omitempty"` // there at the end of the last turn
}

// BudgetFields are the names of what a Budget limits, as recipes and commands
// have them.
func BudgetFields() []string {
	return []string{"turns", "tokens", "cost", "time", "memory", "processes"}
}

// Field returns a part of the budget by its name: a count, dollars,
// nanoseconds or bytes.
func (b Budget) Field(name string) float64 {
	switch name {
	case "turns":
		return float64(b.Turns)
	case "tokens":
		return float64(b.Tokens)
	case "cost":
		return b.Cost
	case "time":
		return float64(b.Time)
	case "memory":
		return float64(b.Memory)
	case "processes":
		return float64(b.Processes)
	}
	return 0
}

// with returns the budget with another value of a field.
func (b Budget) with(name string, v float64) Budget {
	switch name {
	case "turns":
		b.Turns = int(v)
	case "tokens":
		b.Tokens = int64(v)
	case "cost":
		b.Cost = v
	case "time":
		b.Time = time.Duration(v)
	case "memory":
		b.Memory = int64(v)
	case "processes":
		b.Processes = int(v)
	}
	return b
}

func (b Budget) plus(c Budget) Budget {
	for _, name := range BudgetFields() {
		b = b.with(name, b.Field(name)+c.Field(name))
	}
	return b
}

// FormatBudget writes a value of a field for people.
func FormatBudget(name string, v float64) string {
	switch name {
	case "cost":
		return "$" + strconv.FormatFloat(v, 'f', 2, 64)
	case "time":
		return time.Duration(v).Round(time.Second).String()
	case "memory":
		return Bytes(int64(v))
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Bytes writes a size for people, in powers of 1000.
func Bytes(n int64) string {
	switch {
	case n >= 1e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + " GB"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 0, 64) + " MB"
	}
	return strconv.FormatFloat(float64(n)/1e3, 'f', 0, 64) + " kB"
}

// spent names the first field whose limit is reached.
func (b Budget) spent(used Budget) (field string) {
	for _, name := range BudgetFields() {
		if limit := b.Field(name); limit > 0 && used.Field(name) >= limit {
			return name
		}
	}
	return ""
}

// account adds what a turn used.
func (a *Agent) account(end pty.TurnEndInfo) {
	a.Used.Turns++
	a.Used.Time += time.Duration(end.DurationMS) * time.Millisecond
	if u := end.Usage; u != nil {
		a.Used.Tokens += int64(u.Input + u.Output + u.CacheRead + u.CacheWrite)
		a.Used.Cost += u.Cost
	}
	if held := end.Resources; held != nil {
		a.Used.Memory, a.Used.Processes = held.Memory, held.Processes
	}
}

// A Scope is whom a budget is for: an agent, the agents of a role together, or,
// with neither, all of the run together.
type Scope struct {
	Agent string `json:"agent,omitempty"`
	Role  string `json:"role,omitempty"`
}

func (s Scope) String() string {
	switch {
	case s.Agent != "":
		return s.Agent
	case s.Role != "":
		return "role " + s.Role
	}
	return "the run"
}

// Budget returns a scope's limits and what was used of them.
func (s State) Budget(of Scope) (limits, used Budget) {
	limits = s.limits(of)
	if of.Agent != "" {
		return limits, s.Agents[of.Agent].Used
	}
	for _, name := range s.Order {
		if a := s.Agents[name]; of.Role == "" || a.Role == of.Role {
			used = used.plus(a.Used)
		}
	}
	return limits, used
}

func (s State) limits(of Scope) Budget {
	switch {
	case of.Agent != "":
		return s.Agents[of.Agent].Limits
	case of.Role != "":
		return s.Settings.Roles[of.Role]
	}
	return s.Settings.Limits
}

// Scopes are all whom budgets can be for: the run, its roles, its agents.
func (s State) Scopes() []Scope {
	list := []Scope{{}}
	for _, name := range s.Order {
		if role := (Scope{Role: s.Agents[name].Role}); !slices.Contains(list, role) {
			list = append(list, role)
		}
	}
	for _, name := range s.Order {
		list = append(list, Scope{Agent: name})
	}
	return list
}

const budgetPrefix = "budget: "

// Over says which budget keeps an agent from another prompt; "" if none does.
// The text stays the same while the limit does.
func (s State) Over(a Agent) string {
	for _, of := range []Scope{{Agent: a.Name}, {Role: a.Role}, {}} {
		if s.limits(of) == (Budget{}) {
			continue
		}
		limits, used := s.Budget(of)
		if name := limits.spent(used); name != "" {
			return fmt.Sprintf(budgetPrefix+"%s has reached its limit of %s (%s)", of, name, FormatBudget(name, limits.Field(name)))
		}
	}
	return ""
}

func (r *step) over(a Agent) string { return r.state.Over(a) }

// A Raise changes one limit of a budget: by To, or to it; to 0 lifts the limit.
type Raise struct {
	Field string  `json:"field"`
	By    bool    `json:"by,omitempty"`
	To    float64 `json:"to"`
}

// A BudgetChange is a person's change of limits.
type BudgetChange struct {
	Of     Scope   `json:"of"`
	Raises []Raise `json:"raises"`
}

// budget takes a person's change. Adding to no limit leaves it so.
func (r *step) budget(c BudgetChange) {
	limits, _ := r.state.Budget(c.Of)
	for _, raise := range c.Raises {
		was := limits.Field(raise.Field)
		to := raise.To
		if raise.By {
			if was == 0 {
				continue
			}
			to += was
		}
		limits = limits.with(raise.Field, max(to, 0))
		r.tell(Fact{Agent: c.Of.Agent, Text: fmt.Sprintf("the limit of %s of %s is now %s", raise.Field, c.Of, limitValue(raise.Field, to))})
	}
	switch {
	case c.Of.Agent != "":
		a, ok := r.state.Agents[c.Of.Agent]
		if a.Limits = limits; ok {
			r.state.Agents[a.Name] = a
		}
	case c.Of.Role != "":
		r.state.Settings.Roles = maps.Clone(r.state.Settings.Roles)
		if r.state.Settings.Roles == nil {
			r.state.Settings.Roles = map[string]Budget{}
		}
		r.state.Settings.Roles[c.Of.Role] = limits
	default:
		r.state.Settings.Limits = limits
	}
}

func limitValue(field string, to float64) string {
	if to <= 0 {
		return "lifted"
	}
	return FormatBudget(field, to)
}
