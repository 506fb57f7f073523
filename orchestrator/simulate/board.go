package simulate

import (
	"fmt"
	"math/rand/v2"

	"muntin/orchestrator"
)

// Board makes n tasks: some with priorities, some after one to three of those
// before them, deep chances as given.
func Board(n int, seed uint64, deep float64) []orchestrator.Task {
	random := rand.New(rand.NewPCG(seed, 1))
	tasks := make([]orchestrator.Task, n)
	for i := range tasks {
		t := orchestrator.Task{ID: fmt.Sprintf("t%d", i+1), Text: fmt.Sprintf("Task %d", i+1), State: orchestrator.TaskOpen, Priority: random.IntN(4)}
		if i > 0 && random.Float64() < deep {
			seen := map[int]bool{}
			for range 1 + random.IntN(3) {
				if before := random.IntN(i); !seen[before] {
					seen[before] = true
					t.After = append(t.After, tasks[before].ID)
				}
			}
		}
		tasks[i] = t
	}
	return tasks
}
