package ports

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func newBook(t testing.TB) (Book, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return Book{Path: filepath.Join(t.TempDir(), "state", "ports.json")}, dir
}

func TestBlocksNeverOverlap(t *testing.T) {
	t.Parallel()
	book, dir := newBook(t)
	leases := make([]Lease, 12)
	var group errgroup.Group
	for i := range leases {
		group.Go(func() (err error) {
			leases[i], err = book.Take(t.Context(), Lease{Owner: fmt.Sprint("a", i), Count: 3 + i%4, Dir: dir})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for _, l := range leases {
		for p := l.First; p < l.First+l.Count; p++ {
			if seen[p] != "" {
				t.Errorf("port %d is %s's and %s's", p, seen[p], l.Owner)
			}
			seen[p] = l.Owner
		}
	}
	again, err := book.Take(t.Context(), Lease{Owner: "a1", Count: leases[1].Count, Dir: dir})
	if err != nil || again != leases[1] {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if err := errors.Join(book.Release(t.Context(), "a0"), book.Release(t.Context(), "a0"), book.Release(t.Context(), "nobody")); err != nil {
		t.Fatal(err)
	}
	if l, err := book.Of("a0"); err != nil || l.Count != 0 || l.Env() != nil {
		t.Errorf("released: %+v, %v", l, err)
	}
	if l, err := book.Of("a1"); err != nil || l != leases[1] {
		t.Errorf("not released: %+v, %v", l, err)
	}
}

func TestABusyPortIsInNoBlock(t *testing.T) {
	t.Parallel()
	book, dir := newBook(t)
	first, err := book.Take(t.Context(), Lease{Owner: "a", Count: 4, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := book.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first.First+2)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second, err := book.Take(t.Context(), Lease{Owner: "b", Count: 4, Dir: dir})
	if err != nil || second.First <= first.First+2 {
		t.Errorf("%+v over the busy %d, %v", second, first.First+2, err)
	}
}

func TestALeaseEndsWithItsRun(t *testing.T) {
	t.Parallel()
	book, dir := newBook(t)
	if _, err := book.Take(t.Context(), Lease{Owner: "gone", Count: 2, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Take(t.Context(), Lease{Owner: "b", Count: 2, Dir: filepath.Dir(book.Path)}); err != nil {
		t.Fatal(err)
	}
	if l, err := book.Of("gone"); err != nil || l.Count != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestWhatCannotBeReadIsLeftAlone(t *testing.T) {
	t.Parallel()
	book, dir := newBook(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(book.Path), 0o700), os.WriteFile(book.Path, []byte("{half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Take(t.Context(), Lease{Owner: "a", Count: 2, Dir: dir}); err == nil || !strings.Contains(err.Error(), book.Path) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(book.Path); err != nil || string(b) != "{half" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestNoRoomAndWrongSizes(t *testing.T) {
	t.Parallel()
	book, dir := newBook(t)
	for _, n := range []int{0, -1, MaxBlock + 1} {
		if _, err := book.Take(t.Context(), Lease{Owner: "a", Count: n, Dir: dir}); err == nil {
			t.Errorf("%d ports were lent", n)
		}
	}
	full := page{Version: 1}
	for i := range (highest - lowest) / MaxBlock {
		full.Leases = append(full.Leases, Lease{Owner: fmt.Sprint(i), First: lowest + i*MaxBlock, Count: MaxBlock, Dir: dir})
	}
	if _, err := full.room(t.Context(), 1); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
}

func TestEnv(t *testing.T) {
	t.Parallel()
	got := Lease{First: 20100, Count: 3}.Env()
	if !slices.Equal(got, []string{"MUNTIN_PORT=20100", "MUNTIN_PORTS=20100 20101 20102"}) {
		t.Errorf("%q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"leases":[{"owner":"a","first":20000,"count":10,"dir":"/x"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"leases":[{"owner":"a","first":9223372036854775807,"count":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parse(b)
		for _, l := range p.Leases {
			if err == nil && (l.First < lowest || l.First > highest-l.Count) {
				t.Errorf("%+v", l)
			}
		}
	})
}
