package simulate

import (
	"container/heap"
	"time"
)

// A happening is something that is played at its time.
type happening struct {
	at    time.Time
	order int // of those at the same time
	do    func()
}

// A queue holds what will happen, the soonest first.
type queue struct {
	list  happenings
	count int
}

func (q *queue) push(h happening) {
	q.count++
	h.order = q.count
	heap.Push(&q.list, h)
}

func (q *queue) first() (happening, bool) {
	if len(q.list) == 0 {
		return happening{}, false
	}
	return q.list[0], true
}

func (q *queue) pop() { heap.Pop(&q.list) }

type happenings []happening

func (l happenings) Len() int { return len(l) }
func (l happenings) Less(i, j int) bool {
	if l[i].at.Equal(l[j].at) {
		return l[i].order < l[j].order
	}
	return l[i].at.Before(l[j].at)
}
func (l happenings) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *happenings) Push(x any)   { *l = append(*l, x.(happening)) }
func (l *happenings) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
