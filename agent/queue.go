package agent

import "muntin/agent/llm"

// A QueueMode says how many waiting messages are delivered at once.
type QueueMode string

// The modes of a queue.
const (
	OneAtATime QueueMode = "one-at-a-time" // the default
	All        QueueMode = "all"
)

// a queue holds messages until the loop takes them. The agent's mutex guards it.
type queue struct {
	mode     QueueMode
	messages []llm.Message
}

func (q *queue) push(m llm.Message) { q.messages = append(q.messages, m) }

// unshift puts messages back at the front.
func (q *queue) unshift(ms []llm.Message) {
	q.messages = append(append([]llm.Message(nil), ms...), q.messages...)
}

func (q *queue) take() []llm.Message {
	n := len(q.messages)
	if n > 1 && q.mode != All {
		n = 1
	}
	taken := q.messages[:n:n]
	q.messages = q.messages[n:]
	return taken
}

func (q *queue) clear() []llm.Message {
	all := q.messages
	q.messages = nil
	return all
}

func (q *queue) texts() []string {
	var texts []string
	for _, m := range q.messages {
		texts = append(texts, m.Text())
	}
	return texts
}

// Steer queues a message for the next request of the run: after the present
// response and all of its tool calls. While no run goes on it waits for the next
// one. A message that comes too late for a run stays queued; whoever waits for
// Prompt to return looks at Queued and calls Continue.
func (a *Agent) Steer(m llm.Message) { a.enqueue(&a.steering, m) }

// FollowUp queues a message for the moment when the run would otherwise end.
// See Steer for one that comes too late.
func (a *Agent) FollowUp(m llm.Message) { a.enqueue(&a.followUp, m) }

func (a *Agent) enqueue(q *queue, m llm.Message) {
	a.mu.Lock()
	q.push(a.stamp(m))
	a.mu.Unlock()
	a.notify()
}

// Queued gives the messages that wait, in their order.
func (a *Agent) Queued() (steering, followUp []llm.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(steering, a.steering.messages...), append(followUp, a.followUp.messages...)
}

// ClearQueue empties both queues and gives what was in them, in its order.
func (a *Agent) ClearQueue() (steering, followUp []llm.Message) {
	a.mu.Lock()
	steering, followUp = a.steering.clear(), a.followUp.clear()
	a.mu.Unlock()
	a.notify()
	return steering, followUp
}

// SetQueueModes changes how many messages are delivered at once. "" keeps a mode.
func (a *Agent) SetQueueModes(steering, followUp QueueMode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if steering != "" {
		a.steering.mode = steering
	}
	if followUp != "" {
		a.followUp.mode = followUp
	}
}

// notify makes a run tell of a change in the queues, soon.
func (a *Agent) notify() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

func (a *Agent) take(q *queue) []pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	var taken []pending
	for _, m := range q.take() {
		taken = append(taken, pending{message: m, from: q})
	}
	return taken
}

// a pending message has left its queue and is not in the transcript yet.
type pending struct {
	message llm.Message
	from    *queue // nil: given to Prompt
}

// giveBack returns messages that could not be delivered to their queues.
func (a *Agent) giveBack(ps []pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(ps) - 1; i >= 0; i-- {
		if q := ps[i].from; q != nil {
			q.unshift([]llm.Message{ps[i].message})
		}
	}
}
