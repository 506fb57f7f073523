package checkpoint

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// saverEnv makes the test binary a saver: "worktree number"; number 0 is for ever.
const saverEnv = "CHECKPOINT_TEST_SAVER"

const sharedChain = "refs/muntin/run/shared"

// soak returns the long measure when long tests are wanted.
func soak(short, long int) int {
	if os.Getenv("MUNTIN_SOAK") != "" {
		return long
	}
	return short
}

// saverChild saves a worktree again and again, with more and fewer new objects.
func saverChild() bool {
	spec := os.Getenv(saverEnv)
	if spec == "" {
		return false
	}
	dir, number, _ := strings.Cut(spec, "\x1f")
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	s, err := Open(ctx, Options{Worktree: dir, Ref: sharedChain})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	fmt.Println("ready")
	for i := 0; n == 0 || i < n; i++ {
		for j := range 1 + i%3*8 {
			text := fmt.Sprintf("%d %d %d", os.Getpid(), i, j)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", j)), []byte(text), 0o600); err != nil {
				fmt.Println("error", err)
				return true
			}
		}
		if _, _, err := s.Save(ctx, Meta{Cause: CauseTurn, Turn: i + 1}); err != nil {
			fmt.Println("error", err)
			return true
		}
	}
	return true
}

// startSaver starts a saver and waits until its store is open.
func startSaver(t *testing.T, dir string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(gitEnv(), fmt.Sprintf("%s=%s\x1f%d", saverEnv, dir, n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Errorf("saver: %q", lines.Text())
	}
	return cmd, lines
}

// TestManySavers lets four processes in four worktrees save on one chain while
// git packs the refs. No save may be lost, and none may be made of air.
func TestManySavers(t *testing.T) {
	t.Parallel()
	each := soak(10, 50)
	r := newRepo(t)
	r.write("f", "1\n")
	r.commit()
	ctx, stop := context.WithCancel(t.Context())
	var packer, savers sync.WaitGroup
	packer.Go(func() {
		for ctx.Err() == nil {
			cmd := exec.Command("git", "pack-refs", "--all") // it may lose the race for a lock
			cmd.Dir, cmd.Env = r.dir, gitEnv()
			_ = cmd.Run()
		}
	})
	for i := range 4 {
		dir := r.path(fmt.Sprintf("../wt%d", i))
		r.git("worktree", "add", "-q", "--detach", dir)
		savers.Go(func() {
			cmd, lines := startSaver(t, dir, each)
			for lines.Scan() {
				t.Errorf("saver %d: %s", i, lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("saver %d: %v", i, err)
			}
		})
	}
	savers.Wait()
	stop()
	packer.Wait()
	all, err := r.open(Options{Ref: sharedChain}).List(t.Context())
	if err != nil || len(all) != 4*each || all[0].ID != 4*each {
		t.Errorf("%d checkpoints, %v; want %d", len(all), err, 4*each)
	}
	if n := r.git("rev-list", "--count", "--first-parent", sharedChain, "--not", "HEAD"); n != strconv.Itoa(4*each) {
		t.Errorf("git counts %s commits, want %d", n, 4*each)
	}
	r.git("fsck", "--strict", "--no-dangling")
}

// TestKilledSavers kills processes in the middle of saves.
func TestKilledSavers(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("f", "1\n")
	r.commit()
	before := 0
	for i := range soak(8, 200) {
		cmd, lines := startSaver(t, r.dir, 0)
		kill := time.AfterFunc(rand.N(80*time.Millisecond), func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			t.Errorf("saver: %s", lines.Text())
		}
		_ = cmd.Wait() // killed
		kill.Stop()
		s := r.open(Options{Ref: sharedChain})
		all, err := s.List(t.Context())
		if err != nil || len(all) < before {
			t.Fatalf("after kill %d: %d checkpoints, %v; before there were %d", i, len(all), err, before)
		}
		for j, c := range all {
			if c.ID != len(all)-j {
				t.Fatalf("after kill %d: checkpoint %d is at place %d", i, c.ID, len(all)-j)
			}
		}
		before = len(all)
	}
	s := r.open(Options{Ref: sharedChain})
	c, _ := r.save(s, Meta{})
	if c.Tree != r.oracle() || c.ID != before+1 {
		t.Errorf("after all kills: %+v", c)
	}
	r.git("fsck", "--strict", "--full", "--no-dangling")
	r.git("gc", "-q", "--prune=now")
	if all, err := s.List(t.Context()); err != nil || len(all) != before+1 {
		t.Errorf("after gc: %d checkpoints, %v", len(all), err)
	}
}
