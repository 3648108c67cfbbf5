package delayq

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

type outcomeKind int

const (
	ack outcomeKind = iota
	nack
	release // given back; the attempt does not count
)

// outcome is what the server is told about a job.
type outcome struct {
	kind   outcomeKind
	isDead bool
	delay  *time.Duration
	reason string
}

const (
	reasonBytes    = 1000
	settleAtOnce   = 500
	ackPause       = 10 * time.Millisecond // an ack waits for others at most this long
	settleBacklog  = 2000                  // no more pops while so many results wait
	settleAttempts = 60                    // of one result; its lease is over by then
	releaseReason  = "worker stopped"
)

type settlement struct {
	run *run
	outcome
	failures int
}

// settler sends results to the server: those that come while a request is under way go together in the next one.
type settler struct {
	session *session
	wake    chan struct{}
	now     chan struct{} // acks are to go out now
	ended   chan struct{} // closed by stop: end when all is sent
	gone    chan struct{} // closed when run has returned

	mu      sync.Mutex
	waiting []settlement
	room    chan struct{} // closed when there is room again; nil while there is
}

func newSettler(s *session) *settler {
	return &settler{session: s, wake: make(chan struct{}, 1), now: make(chan struct{}, 1), ended: make(chan struct{}), gone: make(chan struct{})}
}

func (t *settler) add(r *run, o outcome) {
	t.mu.Lock()
	t.waiting = append(t.waiting, settlement{run: r, outcome: o})
	if len(t.waiting) >= settleBacklog && t.room == nil {
		t.room = make(chan struct{})
	}
	isMany := len(t.waiting) >= settleAtOnce
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	if o.kind != ack || isMany {
		t.hurry()
	}
}

// hurry ends the waiting of acks for each other.
func (t *settler) hurry() {
	select {
	case t.now <- struct{}{}:
	default:
	}
}

// gather lets acks wait for each other while all handlers are busy and short: they go out with the next pop, or soon.
func (t *settler) gather(ended <-chan struct{}) {
	if !t.session.hand.isHurried() {
		return
	}
	timer := time.NewTimer(ackPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.now:
	case <-ended:
	}
}

// waitForRoom waits until the backlog is short. It returns false if the worker is stopped meanwhile.
func (t *settler) waitForRoom(stopping <-chan struct{}) bool {
	t.mu.Lock()
	room := t.room
	t.mu.Unlock()
	if room == nil {
		return true
	}
	select {
	case <-room:
		return true
	case <-stopping:
		return false
	}
}

func (t *settler) take() []settlement {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := least(len(t.waiting), settleAtOnce)
	batch := append([]settlement(nil), t.waiting[:count]...)
	t.waiting = append(t.waiting[:0], t.waiting[count:]...)
	if t.room != nil && len(t.waiting) < settleBacklog {
		close(t.room)
		t.room = nil
	}
	return batch
}

// stop waits until all results have reached the server, but not for ever.
func (t *settler) stop() {
	close(t.ended)
	<-t.gone
}

func (t *settler) run() {
	defer close(t.gone)
	ended := t.ended
	giveUp := make(<-chan time.Time)
	for failures := 0; ; {
		batch := t.take()
		if len(batch) == 0 {
			if ended == nil {
				return
			}
			select {
			case <-t.wake:
				t.gather(ended)
			case <-ended:
				ended, giveUp = nil, time.After(lastChance)
			}
			continue
		}
		again := t.send(batch)
		if len(again) == 0 {
			failures = 0
			continue
		}
		t.putBack(again)
		pause := time.NewTimer(backoff(failures, longBackoff))
		failures++
		select {
		case <-pause.C:
		case <-ended:
			ended, giveUp = nil, time.After(lastChance)
		case <-giveUp:
			t.session.config.Logger.Printf("delayq: %d results did not reach the server; their jobs will be handed over again", len(again))
			return
		}
		pause.Stop()
	}
}

func (t *settler) putBack(again []settlement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(again, t.waiting...)
}

// send sends a batch once and returns what has to be sent again. All of it may be: what took effect makes the lease stale.
func (t *settler) send(batch []settlement) (again []settlement) {
	groups := t.group(batch)
	var wire []byte
	for _, g := range groups {
		wire = g.words.appendTo(wire)
	}
	r := newRequest(wire, len(groups))
	ctx, cancel := context.WithTimeout(context.Background(), lastChance)
	defer cancel()
	err := t.session.client.send(ctx, r)
	if err != nil {
		for i := range batch {
			again = t.retry(again, batch[i], err)
		}
		return again
	}
	for i, g := range groups {
		err := r.replies[i].failure()
		if err == nil {
			t.checkCount(g, r.replies[i])
			continue
		}
		if g.kind == release && strings.Contains(err.Error(), "unknown command") {
			t.session.refused.Store(true)
			again = append(again, g.members...)
			continue
		}
		for _, one := range g.members {
			again = t.retry(again, one, err)
		}
	}
	return again
}

// retry decides about a result that the server did not take.
func (t *settler) retry(again []settlement, one settlement, err error) []settlement {
	job := one.run.job
	if known, ok := err.(*Error); ok && known.Code == errStaleLease.Code {
		t.session.config.Logger.Printf("delayq: the lease of job %s of %s had ended before its result came", job.ID, job.Topic)
		return again
	}
	one.failures++
	if (isRetryable(err) || err == context.DeadlineExceeded) && one.failures < settleAttempts {
		return append(again, one)
	}
	t.session.config.Logger.Printf("delayq: the result of job %s of %s is lost, it will be handed over again: %v", job.ID, job.Topic, err)
	return again
}

func (t *settler) checkCount(g *commandGroup, reply value) {
	if g.kind == nack || reply.kind != ':' || reply.number >= int64(len(g.members)) || g.wasSentBefore() {
		return
	}
	t.session.config.Logger.Printf("delayq: %d of %d leases had ended before the results of their jobs came",
		int64(len(g.members))-reply.number, len(g.members))
}

// commandGroup is a command and the results that it carries.
type commandGroup struct {
	kind    outcomeKind
	words   *command
	members []settlement
}

func (g *commandGroup) wasSentBefore() bool {
	for _, one := range g.members {
		if one.failures > 0 {
			return true
		}
	}
	return false
}

func (g *commandGroup) add(one settlement) {
	g.words.text(one.run.lease)
	g.members = append(g.members, one)
}

// group makes one ACK, one RELEASE, and a NACK for each failure.
func (t *settler) group(batch []settlement) []*commandGroup {
	acks := &commandGroup{kind: ack, words: newCommand("ACK")}
	releases := &commandGroup{kind: release, words: newCommand("RELEASE")}
	var all []*commandGroup
	for _, one := range batch {
		switch {
		case one.kind == ack:
			acks.add(one)
		case one.kind == release && !t.session.refused.Load():
			releases.add(one)
		default:
			all = append(all, nackGroup(one))
		}
	}
	for _, g := range []*commandGroup{acks, releases} {
		if len(g.members) > 0 {
			all = append(all, g)
		}
	}
	return all
}

func nackGroup(one settlement) *commandGroup {
	g := &commandGroup{kind: nack, words: newCommand("NACK")}
	g.add(one)
	delay, reason := one.delay, one.reason
	if one.kind == release { // the server is of a version without RELEASE
		delay, reason = new(time.Duration), releaseReason
	}
	if delay != nil && !one.isDead {
		g.words.text("DELAY")
		g.words.duration(*delay)
	}
	g.words.text("REASON")
	g.words.text(reason)
	if one.isDead {
		g.words.text("DEAD")
	}
	return g
}

// cleanReason makes a text that the server stores as the reason of a failure.
func cleanReason(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && (r < ' ' || (r >= 0x7f && r < 0xa0)) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= reasonBytes {
		return text
	}
	end := reasonBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
