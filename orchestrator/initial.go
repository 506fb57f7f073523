package orchestrator

import "muntin/recipes"

// InitialState is the state of a run before anything happened.
func InitialState(run Run, recipe *recipes.Recipe) State {
	settings := Settings{
		Run: run.Name, Attempts: recipe.Attempts, Check: recipe.Checks.Task, RunCheck: recipe.Checks.Run, Branch: run.Branch,
		Approval: recipe.Board.Approve, MaxParallel: recipe.MaxParallel,
		Stall: Stall{After: recipe.Stall.After, Nudges: recipe.Stall.Nudges},
		Flow:  flowOf(recipe), Notices: wantedEvents(recipe),
		Limits: Budget(recipe.Limits), Roles: map[string]Budget{},
	}
	for _, role := range recipe.Roles {
		if role.Limits != (recipes.Limits{}) {
			settings.Roles[role.Name] = Budget(role.Limits)
		}
	}
	var agents []Agent
	for _, a := range recipe.Agents {
		agents = append(agents, Agent{
			Name: a.Name, Role: a.Role,
			After: a.DependsOn, First: promptedLater(a),
			Isolated: a.Isolation != recipes.IsolationNone, Shared: a.Isolation == recipes.IsolationShared,
			Restart: Restart{Policy: policyOf(a.Restart), Most: a.Restarts},
			Limits:  ownLimits(Budget(a.Limits), settings.Roles[a.Role]),
		})
	}
	return NewState(settings, agents)
}

// promptedLater tells whether the orchestrator sends an agent's first prompt, when
// those that it depends on have come. Others find theirs in their inbox.
func promptedLater(a recipes.Agent) bool {
	return len(a.DependsOn) > 0 && (a.Prompt != "" || a.PromptFile != "")
}

func policyOf(r recipes.Restart) RestartPolicy {
	if r == recipes.RestartNever {
		return RestartNever
	}
	return RestartPolicy(r)
}

// ownLimits are an agent's limits that are narrower than its role's. A role's
// hold for its agents together, so that the others say nothing more.
func ownLimits(own, role Budget) Budget {
	for _, name := range BudgetFields() {
		if most := role.Field(name); most > 0 && own.Field(name) >= most {
			own = own.with(name, 0)
		}
	}
	return own
}

// Measured tells whether a recipe limits what agents' processes hold, so that
// their supervisors have to measure it.
func Measured(recipe *recipes.Recipe) bool {
	limits := recipe.Limits.Memory > 0 || recipe.Limits.Processes > 0
	for _, list := range [][]recipes.Agent{recipe.Roles, recipe.Agents} {
		for _, a := range list {
			limits = limits || a.Limits.Memory > 0 || a.Limits.Processes > 0
		}
	}
	return limits
}
