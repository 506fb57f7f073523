// Package ports lends blocks of TCP ports to agents, so that servers which
// several of them start at once do not collide. The leases of all runs of the
// machine's user are in one file, which is changed under a lock.
package ports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muntin/internal/durable"
)

// The range that blocks are taken from: above the well-known services, below
// what Linux gives to outgoing connections (32768 and up, see ip(7)).
const (
	lowest  = 20000
	highest = 32000
	// MaxBlock is the largest block, in ports.
	MaxBlock = 1000
)

// ErrNone says that there is no block of free ports left.
var ErrNone = errors.New("no block of free ports is left")

// A Lease is a block of ports that an agent has.
type Lease struct {
	Owner string `json:"owner"` // unique over all runs
	First int    `json:"first"`
	Count int    `json:"count"`
	// Dir is the folder of the run: when it is gone, so is the lease.
	Dir string `json:"dir"`
}

// Env is what an agent finds its ports by: MUNTIN_PORT is the first of them,
// MUNTIN_PORTS all, with spaces between. Without a lease there are none.
func (l Lease) Env() []string {
	if l.Count == 0 {
		return nil
	}
	all := make([]string, l.Count)
	for i := range all {
		all[i] = strconv.Itoa(l.First + i)
	}
	return []string{"MUNTIN_PORT=" + all[0], "MUNTIN_PORTS=" + strings.Join(all, " ")}
}

// A Book is the file of all leases.
type Book struct {
	Path string
}

// page is the format of the file.
type page struct {
	Version int     `json:"version"`
	Leases  []Lease `json:"leases"`
}

// Take lends a block of want.Count ports to want.Owner, all of them free at
// that moment and in nobody else's block. An owner that has a block of that
// size keeps it. The error matches ErrNone when there is no room.
func (b Book) Take(ctx context.Context, want Lease) (Lease, error) {
	if want.Count < 1 || want.Count > MaxBlock {
		return Lease{}, fmt.Errorf("lending ports to %s: want 1 to %d, not %d", want.Owner, MaxBlock, want.Count)
	}
	err := b.change(ctx, func(p *page) error {
		for _, l := range p.Leases {
			if l.Owner == want.Owner && l.Count == want.Count {
				want = l
				return nil
			}
		}
		p.Leases = slices.DeleteFunc(p.Leases, func(l Lease) bool { return l.Owner == want.Owner })
		first, err := p.room(ctx, want.Count)
		if err != nil {
			return err
		}
		want.First = first
		p.Leases = append(p.Leases, want)
		return nil
	})
	if err != nil {
		return Lease{}, fmt.Errorf("lending ports to %s: %w", want.Owner, err)
	}
	return want, nil
}

// Release gives the block of an owner back. That it has none is no error.
func (b Book) Release(ctx context.Context, owner string) error {
	l, err := b.Of(owner)
	if err != nil || l.Count == 0 {
		return err
	}
	err = b.change(ctx, func(p *page) error {
		p.Leases = slices.DeleteFunc(p.Leases, func(l Lease) bool { return l.Owner == owner })
		return nil
	})
	if err != nil {
		return fmt.Errorf("taking the ports of %s back: %w", owner, err)
	}
	return nil
}

// Of returns the block of an owner, the zero Lease when it has none.
func (b Book) Of(owner string) (Lease, error) {
	p, err := b.read()
	if err != nil {
		return Lease{}, err
	}
	for _, l := range p.Leases {
		if l.Owner == owner {
			return l, nil
		}
	}
	return Lease{}, nil
}

// change rewrites the file under its lock. Leases of runs that are gone fall away.
func (b Book) change(ctx context.Context, fn func(*page) error) error {
	if err := os.MkdirAll(filepath.Dir(b.Path), 0o700); err != nil {
		return err
	}
	lock, err := durable.Lock(ctx, b.Path+".lock")
	if err != nil {
		return err
	}
	p, err := b.read()
	if err == nil {
		p.Leases = slices.DeleteFunc(p.Leases, func(l Lease) bool {
			_, err := os.Stat(l.Dir)
			return errors.Is(err, os.ErrNotExist)
		})
		err = fn(&p)
	}
	if err == nil {
		err = b.write(p)
	}
	return errors.Join(err, lock.Unlock())
}

func (b Book) read() (page, error) {
	text, err := os.ReadFile(b.Path)
	if errors.Is(err, os.ErrNotExist) {
		return page{Version: 1}, nil
	}
	if err != nil {
		return page{}, fmt.Errorf("reading the leases of ports: %w", err)
	}
	p, err := parse(text)
	if err != nil {
		return page{}, fmt.Errorf("reading the leases of ports %s: %w", b.Path, err)
	}
	return p, nil
}

func parse(text []byte) (page, error) {
	var p page
	if err := json.Unmarshal(text, &p); err != nil {
		return page{}, err
	}
	if p.Version != 1 {
		return page{}, fmt.Errorf("version %d is not known", p.Version)
	}
	for _, l := range p.Leases {
		if l.Owner == "" || l.Count < 1 || l.Count > MaxBlock || l.First < lowest || l.First > highest-l.Count {
			return page{}, fmt.Errorf("the lease of %q is none: %d ports from %d", l.Owner, l.Count, l.First)
		}
	}
	return p, nil
}

func (b Book) write(p page) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(b.Path, append(text, '\n'), 0o600)
}

// room finds the first port of a block that nobody has and nobody listens on.
func (p page) room(ctx context.Context, count int) (int, error) {
	taken := slices.SortedFunc(slices.Values(p.Leases), func(a, b Lease) int { return a.First - b.First })
	for first := lowest; first+count <= highest; {
		next := first + count
		i := slices.IndexFunc(taken, func(l Lease) bool { return l.First < next && first < l.First+l.Count })
		if i >= 0 {
			first = taken[i].First + taken[i].Count
			continue
		}
		busy, err := firstBusy(ctx, first, count)
		if err != nil {
			return 0, err
		}
		if busy == 0 {
			return first, nil
		}
		first = busy + 1
	}
	return 0, ErrNone
}

// firstBusy returns the first port of a block that cannot be listened on, or 0.
func firstBusy(ctx context.Context, first, count int) (int, error) {
	var lc net.ListenConfig
	for port := first; port < first+count; port++ {
		for _, host := range []string{"", "127.0.0.1"} {
			l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			if err != nil {
				return port, nil
			}
			if err := l.Close(); err != nil {
				return port, nil
			}
		}
	}
	return 0, nil
}
