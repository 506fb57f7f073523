package pty

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"muntin/agent/adapter"
)

// A fakeTUI says how a full-screen program with a composer behaves. It writes
// each text that is submitted into the file Log, base64, one a line.
type fakeTUI struct {
	Log      string
	Start    time.Duration // until it reads anything
	Trust    bool          // it asks a question first, and throws away what is no answer
	Swallow  time.Duration // an Enter that comes sooner after other keys is a line feed
	Fold     int           // longer pastes are shown as a mark
	Vim      bool          // Escape leaves the insert mode, in which keys are commands
	Busy     time.Duration // how long a turn takes
	Deaf     bool          // and it throws away what comes meanwhile
	Kitty    int           // flags of the keyboard protocol that it switches on
	Status   bool          // it tells its status
	NoPaste  bool          // it knows no bracketed paste
	Keeps    string        // the file that it writes its conversation into; it says how much is in it at its start
	Lazy     bool          // it throws away what is submitted
	Mute     bool          // it says nothing of its turns on its terminal
	composer []rune
	pastes   []string
	insert   bool
	lastKey  time.Time
	until    time.Time // the turn's end
	queue    []string
}

func playTUI() error {
	var f fakeTUI
	if err := json.Unmarshal([]byte(os.Getenv("FAKE_TUI")), &f); err != nil {
		return err
	}
	old, err := term.MakeRaw(0)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(0, old) }()
	<-time.After(f.Start)
	keys := make(chan readKeys)
	go func() {
		defer close(keys)
		for {
			buf := make([]byte, 64<<10)
			// When they came, as the program sees it: the machine may be so
			// busy that this goroutine stands still behind the reading, and
			// then the next key seems to come at once.
			for _, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, -1); errors.Is(err, unix.EINTR); {
				_, err = unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, -1)
			}
			at := time.Now()
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return
			}
			keys <- readKeys{buf[:n], at}
		}
	}()
	f.insert = true
	if f.Trust {
		fmt.Print("\x1b[2JDo you trust this folder? (y/n)\r\n")
		for answer := range keys {
			if bytes.IndexByte(answer.b, 'y') >= 0 {
				break
			}
		}
	}
	fmt.Print("\x1b[2J\x1b[Hfake\r\n")
	if f.Keeps != "" {
		kept, _ := os.ReadFile(f.Keeps) // none at first
		fmt.Printf("it has kept %d prompts\r\n", bytes.Count(kept, []byte(`"prompt"`)))
	}
	if !f.NoPaste {
		fmt.Print("\x1b[?2004h")
	}
	if f.Kitty > 0 {
		fmt.Printf("\x1b[>%du", f.Kitty)
	}
	f.say("idle")
	f.draw()
	return f.run(keys)
}

type readKeys struct {
	b  []byte
	at time.Time
}

func (f *fakeTUI) say(state string) {
	if f.Status && (!f.Mute || state == "idle") {
		fmt.Printf("\x1b]7501;state=%s:app=fake\x1b\\", state)
	}
}

func (f *fakeTUI) draw() {
	text := string(f.composer)
	fmt.Printf("\r\x1b[K❯ %.40q", text)
}

func (f *fakeTUI) run(keys <-chan readKeys) error {
	var rest []byte
	tick := time.NewTimer(time.Hour)
	for {
		select {
		case k, ok := <-keys:
			if !ok {
				return nil
			}
			if f.Deaf && k.at.Before(f.until) {
				continue
			}
			rest = append(rest, k.b...)
			for len(rest) > 0 {
				n, err := f.key(rest, k.at)
				if err != nil {
					return err
				}
				if n == 0 {
					break
				}
				rest = rest[n:]
			}
			f.draw()
		case <-tick.C:
		}
		if !f.until.IsZero() && !time.Now().Before(f.until) {
			f.until = time.Time{}
			if err := f.keep(adapter.Record{Kind: adapter.RecordTurn, Means: adapter.MeansDone}); err != nil {
				return err
			}
			f.say("done")
			f.say("idle")
			if !f.Mute {
				fmt.Print("\r\nanswered\r\n")
			}
			f.draw()
			if len(f.queue) > 0 {
				f.begin()
			}
		}
		tick.Reset(time.Hour)
		if !f.until.IsZero() {
			tick.Reset(time.Until(f.until))
		}
	}
}

// key takes one key, or waits for the rest of it.
func (f *fakeTUI) key(b []byte, at time.Time) (int, error) {
	quick := at.Sub(f.lastKey) < f.Swallow
	f.lastKey = at
	switch {
	case bytes.HasPrefix(b, []byte(pasteStart)):
		end := bytes.Index(b, []byte(pasteEnd))
		if end < 0 {
			return 0, nil
		}
		f.paste(string(b[len(pasteStart):end]))
		return end + len(pasteEnd), nil
	case bytes.HasPrefix(b, []byte("\x1b[13u")):
		return 5, f.submit()
	case b[0] == '\r':
		switch {
		case f.Kitty&8 != 0: // such a program's terminal does not send it
			return 1, nil
		case quick:
			f.composer = append(f.composer, '\n')
			return 1, nil
		}
		return 1, f.submit()
	case b[0] == 0x1b && len(b) > 2 && b[1] == '[':
		end := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
		if end < 0 {
			return 0, nil
		}
		return end + 3, nil
	case b[0] == 0x1b:
		f.insert = !f.Vim
	case b[0] == 0x7f:
		f.composer = f.composer[:max(len(f.composer)-1, 0)]
	case b[0] == 0x15:
		f.composer = nil
	case !f.insert:
		f.insert = b[0] == 'i'
	default:
		r := []rune(string(b[:min(len(b), 4)]))[0]
		n := len(string(r))
		if r == 0xFFFD {
			n = 1
		}
		f.composer = append(f.composer, r)
		return n, nil
	}
	return 1, nil
}

// pasteMark stands in the composer for a paste that is folded.
const pasteMark = '\uE000'

func (f *fakeTUI) paste(text string) {
	f.insert = true
	if f.Fold > 0 && len(text) > f.Fold {
		f.composer = append(f.composer, pasteMark+rune(len(f.pastes)))
		f.pastes = append(f.pastes, text)
		return
	}
	f.composer = append(f.composer, []rune(text)...)
}

func (f *fakeTUI) submit() error {
	var text strings.Builder
	for _, r := range f.composer {
		if i := int(r - pasteMark); i >= 0 && i < len(f.pastes) {
			text.WriteString(f.pastes[i])
			continue
		}
		text.WriteRune(r)
	}
	f.composer, f.pastes = nil, nil
	if text.Len() == 0 || f.Lazy {
		return nil
	}
	f.queue = append(f.queue, text.String())
	if err := f.keep(adapter.Record{Kind: adapter.RecordPrompt, Text: text.String()}); err != nil {
		return err
	}
	if f.until.IsZero() {
		f.begin()
	}
	return appendLine(f.Log, base64.StdEncoding.EncodeToString([]byte(text.String())))
}

func (f *fakeTUI) begin() {
	f.queue = f.queue[1:]
	f.until = time.Now().Add(f.Busy)
	f.say("working")
	if !f.Mute {
		fmt.Print("\r\nworking\r\n")
	}
}

// Each message reaches a program with a composer once, whole and by itself,
// whatever the program is like and while a person types at it.
func TestSoak(t *testing.T) {
	t.Parallel()
	count, fakes := 24, soakFakes()
	if os.Getenv("MUNTIN_SOAK") != "" {
		count = 2000
	}
	for name, fake := range fakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soak(t, fake, count)
		})
	}
}

func soakFakes() map[string]fakeTUI {
	ms := time.Millisecond
	return map[string]fakeTUI{
		"plain":          {Busy: 2 * ms},
		"slow start":     {Start: 300 * ms, Busy: 5 * ms},
		"trust screen":   {Trust: true, Busy: 2 * ms},
		"swallows Enter": {Swallow: 8 * ms, Busy: 2 * ms},
		"folds pastes":   {Fold: 200, Busy: 2 * ms, Status: true},
		"vim":            {Vim: true, Busy: 2 * ms, Status: true},
		"deaf":           {Busy: 15 * ms, Deaf: true, Status: true},
		"kitty":          {Kitty: 9, Busy: 2 * ms},
		"status":         {Status: true, Busy: 10 * ms, Swallow: 8 * ms},
	}
}

func soak(t *testing.T, fake fakeTUI, count int) {
	fake.Log = filepath.Join(t.TempDir(), "log")
	raw, err := json.Marshal(fake)
	if err != nil {
		t.Fatal(err)
	}
	ad := quickFor("x")
	ad.ReadyOutput, ad.ReadyPaste, ad.NoSteer = true, true, fake.Deaf
	ad.Quiet, ad.SubmitDelay = 40*time.Millisecond, 6*fake.Swallow+5*time.Millisecond
	if fake.Deaf {
		ad.Quiet = 500 * time.Millisecond // its stillness is no end
	}
	p := runPane(t, Options{
		Argv: []string{self(t)}, Adapter: ad, Hold: 25 * time.Millisecond, Env: []string{roleEnv + "=tui", "FAKE_TUI=" + string(raw)},
	})
	rnd := rand.New(rand.NewPCG(1, 2))
	want, named := map[string]int{}, map[string]string{}
	ids := make([]string, 0, count)
	c := p.client()
	send := func(i int) {
		m := message(KindPrompt, randomText(rnd, i))
		if i%5 == 3 {
			m.Kind = KindFollowUp
		}
		if i%7 == 5 {
			m.Kind = KindSteer
		}
		want[m.Text]++
		named[m.Text] = m.ID
		ids = append(ids, m.ID)
		if _, err := c.Send(testContext(t), m); err != nil {
			t.Error(err)
		}
	}
	for i := range count / 2 {
		send(i)
	}
	if fake.Trust {
		p.screen.waitFor(t, "trust")
		if _, err := p.screen.ptmx.WriteString("y"); err != nil {
			t.Fatal(err)
		}
	}
	p.ready()
	stop, typed := make(chan struct{}), []string(nil)
	var wg sync.WaitGroup
	wg.Go(func() { typed = typist(t, p, fake, stop) })
	for i := count / 2; i < count; i++ {
		send(i)
		<-time.After(time.Duration(rnd.IntN(60)) * time.Millisecond)
	}
	states := waitEnded(t, c, ids, time.Duration(count)*600*time.Millisecond+deadline)
	close(stop)
	wg.Wait()
	for id, s := range states {
		if s.State != StateDone {
			t.Errorf("message %s: %+v", id, s)
		}
	}
	for _, text := range typed {
		want[text]++
	}
	for _, text := range checkSoak(t, fake.Log, want) {
		for _, ev := range p.events() {
			if line, _ := json.Marshal(ev); ev.Message != nil && ev.Message.ID == named[text] {
				t.Logf("%.300s", line)
			}
		}
	}
}

// waitEnded waits until all of the messages have ended.
func waitEnded(t *testing.T, c *Client, ids []string, limit time.Duration) map[string]MessageInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ends := map[string]MessageInfo{}
	enough := errors.New("enough")
	err := c.Subscribe(ctx, 1, func(ev Event) error {
		if ev.Message != nil && ev.Message.State.Ended() && slices.Contains(ids, ev.Message.ID) {
			ends[ev.Message.ID] = *ev.Message
		}
		if len(ends) == len(ids) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("%d of %d messages ended: %v", len(ends), len(ids), err)
	}
	return ends
}

// typist is a person who types lines now and then, key by key, sometimes corrects them, and
// sends them. What was sent is the answer.
func typist(t *testing.T, p *pane, fake fakeTUI, stop <-chan struct{}) (sent []string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	enter := "\r"
	if fake.Kitty&8 != 0 {
		enter = "\x1b[13u"
	}
	pause := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-stop:
			return false
		}
	}
	key := func(s string) {
		if _, err := p.screen.ptmx.WriteString(s); err != nil {
			t.Error(err)
		}
	}
	shows := func(line string) bool {
		for !strings.HasSuffix(p.screen.tail(256), fmt.Sprintf("❯ %q", line)) {
			if !pause(5 * time.Millisecond) {
				return false
			}
		}
		return true
	}
	for i := 0; pause(time.Duration(300+rnd.IntN(1700)) * time.Millisecond); i++ {
		if fake.Deaf {
			continue // such a person's keys are lost too
		}
		if fake.Vim && i%2 == 1 {
			key("\x1b")
			pause(5 * time.Millisecond)
			key("i")
		}
		line := fmt.Sprintf("person %d", i)
		for _, r := range line {
			key(string(r))
			pause(time.Duration(rnd.IntN(40)) * time.Millisecond)
		}
		// People press Enter when they see what they have typed, and not faster
		// than the program takes it.
		if key("x"); !shows(line + "x") {
			key("\x15") // it is over
			return sent
		}
		if key("\x7f"); !shows(line) {
			key("\x15")
			return sent
		}
		<-time.After(6*fake.Swallow + 10*time.Millisecond)
		key(enter)
		sent = append(sent, line)
	}
	return sent
}

// checkSoak answers with the texts that are not there once.
func checkSoak(t *testing.T, log string, want map[string]int) (wrong []string) {
	t.Helper()
	got := map[string]int{}
	read := func() int {
		clear(got)
		n := 0
		for _, line := range lines(t, log) {
			text, err := base64.StdEncoding.DecodeString(line)
			if err != nil {
				continue // it is just being written
			}
			got[string(text)]++
			n++
		}
		return n
	}
	total := 0
	for _, n := range want {
		total += n
	}
	ctx := testContext(t)
	for read() < total && wait(ctx, 20*time.Millisecond) == nil { // the person's last line
	}
	for text, n := range want {
		if got[text] != n {
			t.Errorf("%d times, want %d: %.80q", got[text], n, text)
			wrong = append(wrong, text)
		}
	}
	for text, n := range got {
		if want[text] == 0 {
			t.Errorf("nobody sent (%d times) %.200q", n, text)
		}
	}
	return wrong
}
