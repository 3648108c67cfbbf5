package delayq

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	minLease   = 100 * time.Millisecond
	maxLease   = 24 * time.Hour
	jobsInPop  = 256
	longPause  = 5 * time.Second  // between attempts to pop while the server is away
	afterGrace = time.Second      // for handlers that were told to stop
	lastChance = 10 * time.Second // for results to reach the server
)

// session is one Run of a worker: a connection that pops, a client for everything else, and the jobs that it holds.
type session struct {
	worker  *Worker
	config  *Config
	values  context.Context // for handlers
	client  *Client
	hand    *hand
	keeper  *keeper
	settler *settler

	handlers sync.WaitGroup
	refused  atomic.Bool // the server does not know RELEASE
}

// run is a job that the worker holds.
type run struct {
	session *session
	job     *Job
	lease   string
	ctx     *handlerContext
	leaseTime
}

func newSession(w *Worker, values context.Context) *session {
	quiet := *w.config
	quiet.RetryFor = -1 // the worker has its own ways of trying again
	s := &session{
		worker: w, config: w.config, values: values, client: NewClient(quiet),
	}
	s.keeper = newKeeper(s)
	s.settler = newSettler(s)
	s.hand = newHand(w.options.concurrency, w.stopping, s.release, s.settler.hurry)
	return s
}

// run works until the worker is stopped, and then ends what was begun.
func (s *session) run() error {
	var helpers sync.WaitGroup
	for _, helper := range []func(){s.keeper.run, s.settler.run} {
		helpers.Add(1)
		go func(f func()) {
			defer helpers.Done()
			f()
		}(helper)
	}
	err := s.popUntilStopped()
	s.hand.stop()
	s.finishHandlers()
	s.settler.stop()
	s.keeper.stop()
	helpers.Wait()
	s.client.Close()
	return err
}

// ---- taking jobs

func (s *session) popUntilStopped() error {
	var current *conn
	defer func() {
		if current != nil {
			current.close(ErrClosed)
		}
	}()
	for failures := 0; ; {
		count := s.waitForWant()
		if count == 0 {
			return nil
		}
		err := s.popOnce(&current, count)
		if err == nil {
			if failures > 0 {
				s.config.Logger.Printf("delayq: the worker goes on")
			}
			failures = 0
			continue
		}
		if isClosed(s.worker.stopping) {
			return nil
		}
		if !isRetryable(err) {
			return err
		}
		if failures == 0 {
			s.config.Logger.Printf("delayq: the worker waits for the server: %v", err)
		}
		if !s.pause(backoff(failures, longPause), err) {
			return nil
		}
		failures++
	}
}

// waitForWant waits until jobs are wanted and returns how many. It returns 0 when the worker stops.
func (s *session) waitForWant() int {
	if !s.settler.waitForRoom(s.worker.stopping) {
		return 0
	}
	for !isClosed(s.worker.stopping) {
		runtime.Gosched() // handlers that are about to end are counted
		if count := s.hand.wanted(); count > 0 {
			return count
		}
		select {
		case <-s.worker.stopping:
		case <-s.hand.changed:
		}
	}
	return 0
}

// popOnce waits for jobs and takes them.
func (s *session) popOnce(current **conn, count int) error {
	var knows *request
	if *current == nil || (*current).isClosed() {
		fresh, err := s.dialUntilStopped()
		if err != nil {
			return err
		}
		*current = fresh
		knows = newRequest(newCommand("COMMAND", "INFO", "RELEASE").appendTo(nil), 1) // its reply comes before that of the pop
		if err := fresh.send(context.Background(), knows); err != nil {
			return err
		}
	}
	r := newRequest(s.popCommand(count).appendTo(nil), 1)
	r.wait = s.worker.options.wait
	if err := (*current).send(context.Background(), r); err != nil {
		return err
	}
	s.settler.hurry()
	select {
	case <-r.done:
	case <-s.worker.stopping:
		s.endPop(*current, r)
		return nil
	}
	if err := r.result(); err != nil {
		return err
	}
	if knows != nil {
		items := knows.replies[0].items
		s.hand.setMayHold(len(items) == 1 && !items[0].isNull())
	}
	reply := r.replies[0]
	if err := reply.failure(); err != nil {
		return err
	}
	jobs, err := s.readJobs(reply)
	if err != nil {
		(*current).close(err)
		return lostError(err, true)
	}
	for _, job := range jobs {
		s.keeper.add(job)
	}
	for _, job := range s.hand.take(jobs) {
		s.handlers.Add(1)
		go s.serve(job)
	}
	return nil
}

func (s *session) dialUntilStopped() (*conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.worker.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return dial(ctx, s.config)
}

// endPop ends a pop that waits. Jobs that were handed over at this moment are given back.
func (s *session) endPop(current *conn, r *request) {
	s.hand.stop()
	current.closeWrite()
	timer := time.NewTimer(s.config.ConnectTimeout)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		current.close(io.ErrUnexpectedEOF)
		<-r.done
	}
	if r.result() != nil || r.replies[0].kind != '*' {
		return
	}
	jobs, err := s.readJobs(r.replies[0])
	if err != nil {
		return
	}
	for _, job := range jobs {
		s.settler.add(job, outcome{kind: release})
	}
}

func (s *session) popCommand(count int) *command {
	words := newCommand("POP")
	for _, topic := range s.worker.topics() {
		words.text(topic)
	}
	words.text("COUNT")
	words.number(int64(count))
	words.text("WAIT")
	words.duration(s.worker.options.wait)
	if s.worker.options.lease > 0 {
		words.text("LEASE")
		words.duration(s.worker.options.lease)
	}
	words.text("HEADERS")
	return words
}

func (s *session) readJobs(reply value) ([]*run, error) {
	if reply.isNull() {
		return nil, nil
	}
	now := time.Now()
	jobs := make([]*run, 0, len(reply.items))
	for _, item := range reply.items {
		f := item.items
		if len(f) < 6 {
			return nil, unexpected(item)
		}
		job := &Job{
			Topic: f[1].text(), ID: f[2].text(), Payload: f[3].data, Boday: f[3].data, Attempt: int(f[4].number),
			DueAt: fromMillis(f[5].number),
		}
		if len(f) > 6 {
			job.Headers = readHeaders(f[6])
		}
		job.run = &run{session: s, job: job, lease: f[0].text(), ctx: newHandlerContext(s.values, job)}
		job.run.begin(now, s.worker.options.lease)
		jobs = append(jobs, job.run)
	}
	return jobs, nil
}

// pause returns false if the worker is stopped meanwhile.
func (s *session) pause(length time.Duration, because error) bool {
	var known *Error
	if errors.As(because, &known) && known.RetryAfter > length {
		length = known.RetryAfter
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.worker.stopping:
		return false
	}
}

// ---- running handlers

var errExited = errors.New("the handler ended its goroutine")

// serve handles a job, and then those that were taken ahead.
func (s *session) serve(r *run) {
	began := time.Now()
	next := func() *run {
		now := time.Now()
		took := now.Sub(began)
		began = now
		return s.hand.next(took)
	}
	defer func() {
		if r != nil { // a handler has ended this goroutine
			if r = next(); r != nil {
				s.handlers.Add(1)
				go s.serve(r)
			}
		}
		s.handlers.Done()
	}()
	for r != nil {
		s.handle(r)
		r = next()
	}
}

func (s *session) handle(r *run) {
	err := errExited
	defer func() { s.finish(r, err) }() // also when the handler ends its goroutine
	err = s.worker.call(r.ctx, r.job)
}

// finish reports what a handler returned.
func (s *session) finish(r *run, err error) {
	if !s.keeper.remove(r) {
		return // the lease is lost, or the job was given back
	}
	s.settler.add(r, s.judge(r, err))
}

// release gives jobs back that have not begun.
func (s *session) release(jobs ...*run) {
	for _, r := range jobs {
		if s.keeper.remove(r) {
			s.settler.add(r, outcome{kind: release})
		}
	}
}

func (s *session) judge(r *run, err error) outcome {
	if err == nil {
		return outcome{kind: ack}
	}
	if r.ctx.cause() == ErrStopping {
		return outcome{kind: release}
	}
	failed := outcome{kind: nack, reason: cleanReason(err.Error())}
	var (
		noMore *dead
		later  *retryIn
	)
	if errors.As(err, &noMore) {
		failed.isDead = true
	} else if errors.As(err, &later) {
		failed.delay = &later.delay
	}
	return failed
}

// finishHandlers waits for the handlers that run, for as long as the grace allows, and gives the jobs of the others back.
func (s *session) finishHandlers() {
	done := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(done)
	}()
	if waitFor(done, s.worker.options.grace) {
		return
	}
	for _, r := range s.keeper.all() {
		r.ctx.end(ErrStopping)
	}
	if waitFor(done, afterGrace) {
		return
	}
	for _, r := range s.keeper.all() {
		if s.keeper.remove(r) {
			s.config.Logger.Printf("delayq: job %s of %s is given back: its handler did not stop", r.job.ID, r.job.Topic)
			s.settler.add(r, outcome{kind: release})
		}
	}
}

func waitFor(done <-chan struct{}, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
