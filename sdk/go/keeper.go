package delayq

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	firstLook  = 30 * time.Millisecond // a handler that runs longer than this has its lease looked up and kept
	keepPause  = 10 * time.Millisecond // at least, between two looks at the jobs
	keepAgain  = 200 * time.Millisecond
	firstGuess = 10 * time.Second // at least, for the first extension of a lease
	clockSlack = 50 * time.Millisecond
)

// leaseTime is what is known of a lease. How long it is, the server tells only when it is asked. Until then length is 0.
type leaseTime struct {
	mu       sync.Mutex
	received time.Time     // when the job came
	length   time.Duration // 0: not known yet
	until    time.Time     // its end by the server's clock; zero: not known yet
	next     time.Time     // when to extend it, or to ask how long it is
	end      time.Time     // by this machine's clock; zero: not known yet
	isGuess  bool          // length is to be corrected
	isLost   bool
}

func (l *leaseTime) begin(now time.Time, length time.Duration) {
	l.received, l.next = now, now.Add(firstLook)
	if length > 0 {
		l.setLength(now, length)
		l.until = now.Add(length)
	}
}

func (l *leaseTime) setLength(from time.Time, length time.Duration) {
	l.length = length
	l.next = from.Add(length / 3)
	l.end = from.Add(length)
}

// keeper extends the leases of the jobs whose handlers run, and tells handlers that their job was cancelled or their lease is
// lost. It asks for both at a third of the lease.
type keeper struct {
	session *session
	wake    chan struct{}
	ended   chan struct{}

	mu    sync.Mutex
	runs  map[*run]struct{}
	sleep time.Time // when run looks again

	skew      time.Duration // the server's clock minus this machine's; only run uses it
	knowsSkew bool
}

func newKeeper(s *session) *keeper {
	return &keeper{session: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), runs: map[*run]struct{}{}}
}

func (k *keeper) add(r *run) {
	k.mu.Lock()
	k.runs[r] = struct{}{}
	isEarlier := k.sleep.IsZero() || r.next.Before(k.sleep)
	k.mu.Unlock()
	if isEarlier {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// remove returns false if nothing is to be sent for this job any more.
func (k *keeper) remove(r *run) bool {
	k.mu.Lock()
	_, isThere := k.runs[r]
	delete(k.runs, r)
	k.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return isThere && !r.isLost
}

func (k *keeper) all() []*run {
	k.mu.Lock()
	defer k.mu.Unlock()
	runs := make([]*run, 0, len(k.runs))
	for r := range k.runs {
		runs = append(runs, r)
	}
	return runs
}

func (k *keeper) stop() { close(k.ended) }

func (k *keeper) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, pause := k.look()
		if len(due) > 0 {
			k.keep(due)
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-k.wake:
			if !timer.Stop() {
				select {
				case <-timer.C:
				default:
				}
			}
		case <-k.ended:
			return
		}
	}
}

// look returns the jobs about which the server is to be asked now; or, if there are none, when to look again.
func (k *keeper) look() (due []*run, pause time.Duration) {
	now := time.Now()
	earliest := now.Add(time.Minute)
	for _, r := range k.all() {
		r.mu.Lock()
		isOver := !r.end.IsZero() && now.After(r.end)
		next := r.next
		r.mu.Unlock()
		switch {
		case isOver:
			// The server could not be asked for too long: others may have the job by now.
			r.ctx.end(ErrLeaseLost)
			r.postpone(now.Add(time.Minute))
		case !next.After(now):
			due = append(due, r)
		case next.Before(earliest):
			earliest = next
		}
	}
	if least := now.Add(keepPause); earliest.Before(least) {
		earliest = least
	}
	k.mu.Lock()
	k.sleep = earliest
	k.mu.Unlock()
	return due, earliest.Sub(now)
}

// postpone is for a lease that is over by this machine's clock. A result is still sent: the server knows better.
func (l *leaseTime) postpone(next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.end = next, time.Time{}
}

// keep asks the server about these jobs, in one pipeline: EXTEND and GET for each, or only GET while the length of the lease
// is not known.
func (k *keeper) keep(due []*run) {
	var wire []byte
	count, shortest := 0, time.Duration(0)
	lengths := make([]time.Duration, len(due))
	for i, r := range due {
		r.mu.Lock()
		lengths[i] = r.length
		r.mu.Unlock()
		if length := lengths[i]; length > 0 {
			if shortest == 0 || length < shortest {
				shortest = length
			}
			words := newCommand("EXTEND", r.lease)
			words.duration(length)
			wire = words.appendTo(wire)
			count++
		}
		wire = newCommand("GET", r.job.Topic, r.job.ID).appendTo(wire)
		count++
	}
	limit := k.session.config.Timeout
	if third := shortest/3 + keepAgain; shortest > 0 && third < limit {
		limit = third
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r := newRequest(wire, count)
	asked := time.Now()
	if err := k.session.client.send(ctx, r); err != nil {
		again := time.Now().Add(keepAgain)
		for _, one := range due {
			one.mu.Lock()
			one.next = again
			one.mu.Unlock()
		}
		return
	}
	replies := r.replies
	for i, one := range due {
		if lengths[i] == 0 {
			k.learn(one, replies[0])
		} else {
			k.extended(one, lengths[i], asked, replies[0])
			replies = replies[1:]
			if readFields(replies[0]).number("cancel_requested") != 0 {
				one.ctx.end(ErrCancelled)
			}
		}
		replies = replies[1:]
	}
}

// learn takes the length of a lease from what GET said. As long as the difference of the clocks is not known the length is a
// guess, and extended corrects it at once.
func (k *keeper) learn(r *run, reply value) {
	until := readFields(reply).moment("until_ms")
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.IsZero() || reply.kind != '%' { // gone, or another state: the next EXTEND says so
		r.setLength(time.Now(), minLease)
		r.next = time.Now()
		return
	}
	r.until = until
	r.setLength(r.received, k.lengthOf(r))
	if !k.knowsSkew {
		if r.length < firstGuess {
			r.length = firstGuess
		}
		r.isGuess, r.next, r.end = true, time.Now(), time.Time{}
	}
}

// REQUIRES: r.mu is held.
func (k *keeper) lengthOf(r *run) time.Duration {
	length := r.until.Sub(r.received.Add(k.skew)).Round(time.Millisecond)
	if length < minLease {
		return minLease
	}
	if length > maxLease {
		return maxLease
	}
	return length
}

func (k *keeper) extended(r *run, length time.Duration, asked time.Time, reply value) {
	if err := reply.failure(); err != nil {
		if errors.Is(err, errStaleLease) {
			r.lose()
			return
		}
		r.mu.Lock()
		r.next = time.Now().Add(keepAgain)
		r.mu.Unlock()
		return
	}
	until := fromMillis(reply.number)
	k.skew = until.Add(-length).Sub(asked)
	r.mu.Lock()
	defer r.mu.Unlock()
	k.knowsSkew = true
	if r.isGuess {
		r.isGuess = false
		if right := k.lengthOf(r); right-length > clockSlack || length-right > clockSlack {
			r.setLength(asked, right)
			r.next = time.Now()
			return
		}
	}
	r.until = until
	r.setLength(asked, length)
}

// lose is called when the server says that the lease is not the current one.
func (r *run) lose() {
	r.mu.Lock()
	r.isLost = true
	r.mu.Unlock()
	r.session.keeper.remove(r)
	r.ctx.end(ErrLeaseLost)
}

// lost returns whether the server said that the lease is not the current one.
func (r *run) lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLost
}

// leaseUntil asks the server if the end is not known yet.
func (r *run) leaseUntil() time.Time {
	r.mu.Lock()
	until := r.until
	r.mu.Unlock()
	if !until.IsZero() {
		return until
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.session.config.Timeout)
	defer cancel()
	job, err := r.session.client.Get(ctx, r.job.Topic, r.job.ID)
	if err != nil {
		return time.Time{}
	}
	return job.Until
}
