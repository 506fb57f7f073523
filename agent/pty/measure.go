package pty

import (
	"golang.org/x/sys/unix"
)

// A procInfo is a process of this machine, as far as measuring needs it.
type procInfo struct {
	pid, parent int
	memory      int64 // bytes in main memory; 0 where the system does not tell
}

// resources adds up what the child, all that stems from it, and all of its
// session hold. It is nil where the system does not tell, and when the child
// has ended.
func (c *child) resources() *Resources {
	all := processes()
	ours := make(map[int]bool, 16)
	for grew := true; grew; { // a parent may stand behind its child
		grew = false
		for _, p := range all {
			if !ours[p.pid] && (p.pid == c.pid || ours[p.parent] || c.inSession(p.pid)) {
				ours[p.pid], grew = true, true
			}
		}
	}
	if !ours[c.pid] {
		return nil
	}
	var sum Resources
	for _, p := range all {
		if ours[p.pid] {
			sum.Processes++
			sum.Memory += p.memory
		}
	}
	return &sum
}

func (c *child) inSession(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == c.pid
}

// measuring follows the turns: while one runs, what it uses is told now and
// then.
func (s *supervisor) measuring() {
	if !s.opt.Limits {
		return
	}
	switch running := s.m.cur != nil && !s.m.settling; {
	case running && !s.measured:
		s.measured = true
		s.meter.Reset(LimitsEvery)
	case !running && s.measured:
		s.measured = false
		s.meter.Stop()
	}
}

// measure tells what the running turn has used by now.
func (s *supervisor) measure() {
	if !s.measured || s.m.exited {
		return
	}
	s.meter.Reset(LimitsEvery)
	info := UsageInfo{Usage: s.tail.sofar(), Resources: s.child.resources()}
	if info.Usage != nil || info.Resources != nil {
		s.write(Event{Kind: EventUsage, Turn: s.m.running(), Usage: &info})
	}
}
