package orchestrator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"muntin/orchestrator/worktree"
)

// A radar finds coming conflicts between the agents' latest checkpoints. What
// it has found out about a pair of trees it does not find out again.
type radar struct {
	mu      sync.Mutex // held over a look
	clashes map[[2]worktree.Side][]OverlapFile
	paths   map[touchKey][]string
}

// A touchKey is a side and the commit that it is compared with.
type touchKey struct {
	side worktree.Side
	base string
}

// overlap looks at all pairs of agents, and at each with what is merged.
func (c *Crew) overlap(ctx context.Context) ([]Overlap, error) {
	standings, err := c.Git.Standings(ctx, c.Run, checkpointRefs(c.Run))
	if err != nil {
		return nil, err
	}
	var names []string
	seen := false
	for name, s := range standings {
		if name != worktree.Merged && c.Members[name].Worktree != nil {
			names = append(names, name)
			seen = seen || s.Tree != ""
		}
	}
	if !seen {
		return nil, errOutside
	}
	slices.Sort(names)
	return c.radar.look(ctx, c.Git, names, standings)
}

func (r *radar) look(ctx context.Context, git *worktree.Manager, names []string, all map[string]worktree.Side) (found []Overlap, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	merged := all[worktree.Merged]
	q, err := git.Quarantine()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	next := radar{clashes: map[[2]worktree.Side][]OverlapFile{}, paths: map[touchKey][]string{}}
	touched := map[string][]string{}
	for _, name := range names {
		key := touchKey{all[name], merged.Tip}
		list, known := r.paths[key]
		if !known {
			if list, err = git.Touched(ctx, key.side, key.base); err != nil {
				return nil, err
			}
		}
		next.paths[key], touched[name] = list, list
	}
	for i, a := range names {
		if len(touched[a]) == 0 {
			continue // it has nothing that is not merged
		}
		for _, b := range append([]string{worktree.Merged}, names[i+1:]...) {
			pair := [2]worktree.Side{all[a], all[b]}
			files, known := r.clashes[pair]
			if !known && (b == worktree.Merged || len(worktree.Meet(touched[a], touched[b])) > 0) {
				list, err := q.Clash(ctx, pair[0], pair[1])
				if err != nil {
					return nil, err
				}
				files = overlapFiles(list)
			}
			next.clashes[pair] = files
			if len(files) > 0 {
				found = append(found, Overlap{A: a, B: b, Files: files})
			}
		}
	}
	r.clashes, r.paths = next.clashes, next.paths // what is no longer asked for is let go
	return found, nil
}

// touched is Manager.Touched through what the radar has found out.
func (r *radar) touched(ctx context.Context, git *worktree.Manager, s worktree.Side, base string) ([]string, error) {
	r.mu.Lock()
	list, known := r.paths[touchKey{s, base}]
	r.mu.Unlock()
	if known {
		return list, nil
	}
	return git.Touched(ctx, s, base)
}

func overlapFiles(list []worktree.Conflict) []OverlapFile {
	var files []OverlapFile
	for _, c := range list[:min(len(list), maxOverlapFiles)] {
		f := OverlapFile{Path: c.Path, Kind: c.Kind}
		for _, h := range c.Hunks {
			f.Hunks = append(f.Hunks, OverlapHunk{A: h.Ours, B: h.Theirs})
		}
		files = append(files, f)
	}
	return files
}
