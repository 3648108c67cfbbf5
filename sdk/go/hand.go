package delayq

import (
	"sync"
	"time"
)

const (
	workAhead = 20 * time.Millisecond  // as many jobs are taken ahead as handlers begin in this time
	usualHold = 200 * time.Millisecond // a job that was taken ahead and has not begun by then is given back
	usualWork = time.Second            // how long a handler takes, as long as nothing is known
)

// hand has the jobs that the worker holds: those that run, and a few that were taken ahead while handlers are short, so that a
// handler that ends does not wait for the next pop. A job taken ahead is invisible to other workers, so there are few of them,
// and none for long.
type hand struct {
	most     int           // handlers at once
	giveBack func(...*run) // what becomes of jobs that were held for too long
	stopping <-chan struct{}
	idle     func()        // called when a handler has nothing to do; it must not block
	changed  chan struct{} // wanted may be another number now

	mu      sync.Mutex
	running int
	held    []*run        // taken ahead, oldest first
	typical time.Duration // how long a handler takes: a moving average
	mayHold bool          // the server can take jobs back
	longest time.Duration // for which a job is held
	timer   *time.Timer   // calls giveBackOld; nil while nothing is held
}

func newHand(most int, stopping <-chan struct{}, giveBack func(...*run), idle func()) *hand {
	return &hand{most: most, stopping: stopping, giveBack: giveBack, idle: idle, changed: make(chan struct{}, 1), longest: usualHold, typical: usualWork}
}

// setMayHold says whether jobs can be given back uncounted. Without that, none is taken ahead.
func (h *hand) setMayHold(may bool) {
	h.mu.Lock()
	h.mayHold = may
	h.mu.Unlock()
}

// wanted returns how many jobs to ask for now. Nothing is taken ahead by a worker that has handlers to spare.
func (h *hand) wanted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running < h.most {
		return least(h.most-h.running, jobsInPop)
	}
	if !h.mayHold {
		return 0
	}
	ahead := least(2*h.most, int(time.Duration(h.most)*workAhead/(h.typical+1)))
	if 2*len(h.held) >= ahead { // a round trip for a few jobs is not worth it yet
		return 0
	}
	return least(ahead-len(h.held), jobsInPop)
}

// isHurried returns whether all handlers are busy, and short.
func (h *hand) isHurried() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running == h.most && h.typical < workAhead
}

// take gets jobs from a pop, and returns those whose handlers are to be started now.
func (h *hand) take(jobs []*run) (start []*run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := least(len(jobs), h.most-h.running)
	h.running += count
	if h.held = append(h.held, jobs[count:]...); len(h.held) > 0 && h.timer == nil {
		h.timer = time.AfterFunc(h.longest, h.giveBackOld)
	}
	return jobs[:count]
}

// next tells that a handler has ended, after this time, and returns the job that is to be handled in its place; or nil.
func (h *hand) next(took time.Duration) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.typical += (took - h.typical) / 16
	defer h.tell()
	for len(h.held) > 0 && !isClosed(h.stopping) {
		r := h.held[0]
		h.held[0] = nil
		h.held = h.held[1:]
		if !r.lost() {
			return r
		}
	}
	h.running--
	h.idle()
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (h *hand) tell() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// giveBackOld gives back what was held for too long: handlers have become slow, so no more is taken ahead for a while.
func (h *hand) giveBackOld() {
	h.mu.Lock()
	now, count := time.Now(), 0
	for count < len(h.held) && now.Sub(h.held[count].received) >= h.longest {
		count++
	}
	old := h.held[:count:count]
	h.held = h.held[count:]
	if count > 0 {
		h.typical = usualWork
	}
	h.timer = nil
	if len(h.held) > 0 {
		h.timer = time.AfterFunc(h.longest-now.Sub(h.held[0].received), h.giveBackOld)
	}
	h.mu.Unlock()
	h.giveBack(old...)
	h.tell()
}

// stop gives back all that has not begun.
func (h *hand) stop() {
	h.mu.Lock()
	held := h.held
	h.held = nil
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	h.giveBack(held...)
}
