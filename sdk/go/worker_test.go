package delayq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMiddlewareSurroundsHandlersInOrder(t *testing.T) {
	s := newServer(t, "")
	must(t, s.client().Enqueue("m", "1", []byte("x")))
	var order []string
	name := func(text string) Middleware {
		return func(next Func) Func {
			return func(ctx context.Context, job *Job) error {
				order = append(order, text)
				err := next(context.WithValue(ctx, handlerValue{}, text), job)
				order = append(order, "/"+text)
				return err
			}
		}
	}
	w := NewWorker(s.config())
	w.Use(name("outer"), name("inner"))
	w.Handle("m", func(ctx context.Context, job *Job) error {
		order = append(order, job.ID, fmt.Sprint(ctx.Value(handlerValue{})))
		w.Stop()
		return nil
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	if got := strings.Join(order, " "); got != "outer inner 1 inner /inner /outer" {
		t.Error(got)
	}
}

type handlerValue struct{}

func TestAPanicIsAFailure(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	must(t, c.Enqueue("p", "1", nil, Retry(1)))
	must(t, c.Enqueue("p", "2", nil, Retry(1)))
	w := NewWorker(s.config(), Concurrency(1))
	w.Handle("p", func(ctx context.Context, job *Job) error {
		if job.ID == "2" {
			w.Stop()
		}
		var nothing *Job
		return errors.New(nothing.ID)
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	for _, id := range []string{"1", "2"} {
		if job := mustGet(t, c, "p", id); job.State != "dead" || !strings.Contains(job.Outcome, "panic: runtime error") {
			t.Errorf("%+v", job)
		}
	}
}

func TestAWrappedRetryInAndDeadCount(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	must(t, c.Enqueue("w", "later", nil))
	must(t, c.Enqueue("w", "never", nil))
	w := NewWorker(s.config())
	var left atomic.Int32
	left.Store(2)
	w.Handle("w", func(ctx context.Context, job *Job) error {
		defer func() {
			if left.Add(-1) == 0 {
				w.Stop()
			}
		}()
		if job.ID == "later" {
			return fmt.Errorf("mail: %w", RetryIn(time.Hour, errors.New("busy")))
		}
		return fmt.Errorf("mail: %w", Dead("no such user"))
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	if job := mustGet(t, c, "w", "later"); job.State != "delayed" || job.Outcome != "mail: busy" || time.Until(job.DueAt) < 50*time.Minute {
		t.Errorf("%+v", job)
	}
	if job := mustGet(t, c, "w", "never"); job.State != "dead" || job.Outcome != "mail: no such user" {
		t.Errorf("%+v", job)
	}
}

func TestOptionsOfAWorkerAreChecked(t *testing.T) {
	for name, options := range map[string][]WorkerOption{
		"concurrency": {Concurrency(0)}, "lease": {Lease(time.Millisecond)}, "wait": {Wait(2 * time.Hour)}, "grace": {Grace(-1)},
	} {
		w := NewWorker(Config{}, options...)
		w.Handle("t", func(ctx context.Context, job *Job) error { return nil })
		if err := w.Run(context.Background()); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NewWorker(Config{}).Run(context.Background()); !errors.Is(err, ErrInvalid) {
		t.Errorf("no handler: %v", err)
	}
}

// A topic may have the name of an option, since the first word of a POP is always a topic.
func TestATopicMayBeCalledWait(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	var group sync.WaitGroup
	w := NewWorker(s.config())
	for _, topic := range []string{"wait", "b", "c"} {
		group.Add(1)
		w.Handle(topic, func(ctx context.Context, job *Job) error { group.Done(); return nil })
		must(t, c.Enqueue(topic, "1", nil))
	}
	ended := startWorker(t, w)
	group.Wait()
	w.Stop()
	must(t, awaitEvent(t, ended, "the end of the worker"))
}

// A pop of several topics prefers the first one. A topic that always has jobs must not keep the others waiting.
func TestNoTopicStarves(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	for i := 0; i < 200; i++ {
		must(t, c.Enqueue("busy", fmt.Sprint(i), nil))
	}
	must(t, c.Enqueue("rare", "1", nil))
	busy, after := 0, -1
	w := NewWorker(s.config(), Concurrency(1))
	w.Handle("busy", func(ctx context.Context, job *Job) error {
		if busy++; busy == 200 {
			w.Stop()
		}
		return nil
	})
	w.Handle("rare", func(ctx context.Context, job *Job) error { after = busy; return nil })
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	if after < 0 || after > 100 { // it would be 200; by chance above 100 once in 2^100
		t.Errorf("the other topic came after %d jobs", after)
	}
}

// The end of the context of Run is a stop: handlers are not told at once.
func TestTheContextOfRunStopsTheWorkerGracefully(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	must(t, c.Enqueue("g", "1", nil))
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), handlerValue{}, "outer"))
	defer cancel()
	w := NewWorker(s.config())
	w.Handle("g", func(inner context.Context, job *Job) error {
		cancel()
		<-ctx.Done()
		if inner.Err() != nil || Cause(inner) != nil || inner.Value(handlerValue{}) != "outer" {
			t.Error("the handler was told")
		}
		return nil
	})
	must(t, w.Run(ctx))
	if job := mustGet(t, c, "g", "1"); job.State != "done" {
		t.Errorf("%+v", job)
	}
	if err := w.Run(context.Background()); err == nil {
		t.Error("a worker runs twice")
	}
}

// A handler that does not listen: its job is given back a second after the grace, and what it returns is dropped.
func TestAJobOfAHandlerThatDoesNotStopIsGivenBack(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	must(t, c.Enqueue("deaf", "1", nil))
	w := NewWorker(s.config(), Grace(50*time.Millisecond))
	hang, left := make(chan struct{}), make(chan struct{})
	w.Handle("deaf", func(ctx context.Context, job *Job) error {
		w.Stop()
		<-hang
		close(left)
		return nil
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	if job := mustGet(t, c, "deaf", "1"); job.State != "ready" {
		t.Errorf("%+v", job)
	}
	close(hang)
	awaitEvent(t, left, "the end of the handler")
	if job := mustGet(t, c, "deaf", "1"); job.State != "ready" {
		t.Errorf("%+v", job)
	}
}

// Workers that stop while jobs are handed over leave nothing reserved: what they have not begun is ready again at once.
func TestAStopLosesNoJobs(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	random := newRandom(t)
	const all = 300
	var mu sync.Mutex
	done := map[string]int{}
	finished := make(chan struct{})
	handler := func(ctx context.Context, job *Job) error {
		mu.Lock()
		defer mu.Unlock()
		if done[job.ID]++; len(done) == all {
			close(finished)
		}
		return nil
	}
	go func() {
		for i := 0; i < all; i++ {
			_ = c.Enqueue("s", fmt.Sprint(i), nil, Timeout(24*time.Hour)) // not handed over again within the test
		}
	}()
	for stops := 0; ; stops++ {
		w := NewWorker(s.config(), Concurrency(4))
		w.Handle("s", handler)
		ended := startWorker(t, w)
		select {
		case <-finished:
			w.Stop()
			must(t, awaitEvent(t, ended, "the end of the worker"))
			for id, count := range done {
				if count != 1 {
					t.Errorf("%s ran %d times", id, count)
				}
			}
			t.Logf("%d stops", stops)
			return
		case <-time.After(time.Duration(random.Intn(3000)) * time.Microsecond):
		}
		w.Stop()
		must(t, awaitEvent(t, ended, "the end of the worker"))
		if stops > 20000 {
			t.Fatalf("%d of %d jobs were handled", len(done), all)
		}
	}
}

// A server of a version that does not know RELEASE gets a NACK with DELAY 0.
func TestGivingBackWithoutRelease(t *testing.T) {
	sent := make(chan string, 100)
	stop := make(chan struct{})
	config := fakeServer(t, func(e exchange) string {
		switch e.words[0] {
		case "POP":
			if e.count > 1 {
				<-stop
				return "*0\r\n"
			}
			return "*1\r\n*7\r\n$3\r\nl/1\r\n$1\r\nt\r\n$1\r\n1\r\n$1\r\nx\r\n:1\r\n:1000\r\n%0\r\n"
		case "RELEASE":
			sent <- strings.Join(e.words, " ")
			return "-INVALID unknown command \"RELEASE\"; COMMAND LIST lists all commands\r\n"
		case "NACK":
			sent <- strings.Join(e.words, " ")
			return "+OK\r\n"
		}
		return "_\r\n"
	})
	t.Cleanup(func() { close(stop) })
	config.ConnectTimeout = 100 * time.Millisecond // how long the pop is waited for at a stop
	w := NewWorker(config, Grace(0))
	w.Handle("t", func(ctx context.Context, job *Job) error {
		w.Stop()
		<-ctx.Done()
		return Cause(ctx)
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	if first, second := <-sent, <-sent; first != "RELEASE l/1" || second != "NACK l/1 DELAY 0ms REASON worker stopped" {
		t.Errorf("%q, %q", first, second)
	}
}

// The length of a lease is known only as a moment of the server's clock, which may be hours away from ours. It is extended in
// time nevertheless.
func TestTheClocksMayDiffer(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -3 * time.Hour, "equal": 0} {
		t.Run(name, func(t *testing.T) { keepWithSkew(t, skew) })
	}
}

func keepWithSkew(t *testing.T, skew time.Duration) {
	const length = 1200 * time.Millisecond
	var mu sync.Mutex
	var until time.Time // by the clock of the server
	popped := make(chan struct{})
	stop := make(chan struct{})
	extends := 0
	enough := make(chan struct{})
	config := fakeServer(t, func(e exchange) string {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now().Add(skew)
		switch e.words[0] {
		case "POP":
			if e.count > 1 {
				mu.Unlock()
				<-stop
				mu.Lock()
				return "*0\r\n"
			}
			until = now.Add(length)
			defer close(popped)
			return "*1\r\n*7\r\n$3\r\nl/1\r\n$1\r\nt\r\n$1\r\n1\r\n$1\r\nx\r\n:1\r\n:1000\r\n%0\r\n"
		case "GET":
			return fmt.Sprintf("%%1\r\n$8\r\nuntil_ms\r\n:%d\r\n", until.UnixMilli())
		case "EXTEND":
			if now.After(until) {
				return "-STALELEASE too late\r\n"
			}
			given, _ := parseDuration(e.words[2])
			until = now.Add(given)
			if extends++; extends == 5 {
				close(enough)
			}
			return fmt.Sprintf(":%d\r\n", until.UnixMilli())
		}
		return ":1\r\n"
	})
	t.Cleanup(func() { close(stop) })
	config.ConnectTimeout = 100 * time.Millisecond
	w := NewWorker(config)
	w.Handle("t", func(ctx context.Context, job *Job) error {
		select {
		case <-enough:
		case <-ctx.Done():
			t.Errorf("told: %v", Cause(ctx))
		case <-time.After(deadline):
			t.Error("the lease is not extended")
		}
		mu.Lock()
		if left := until.Sub(time.Now().Add(skew)); left > 2*length {
			t.Errorf("the lease has become %v", left)
		}
		mu.Unlock()
		w.Stop()
		return nil
	})
	must(t, awaitEvent(t, startWorker(t, w), "the end of the worker"))
	<-popped
}

// While results do not reach the server, no more jobs are taken than the backlog allows.
func TestTheBacklogOfResultsIsBounded(t *testing.T) {
	s := newSession(NewWorker(Config{Logger: testLogger(t)}, Concurrency(1)), context.Background())
	for i := 0; i < settleBacklog; i++ {
		s.settler.add(&run{job: &Job{}}, outcome{kind: ack})
	}
	stopped := make(chan struct{})
	close(stopped)
	if s.settler.waitForRoom(stopped) {
		t.Error("there is room")
	}
	for taken := 0; taken <= settleAtOnce; taken += settleAtOnce {
		if batch := s.settler.take(); len(batch) != settleAtOnce {
			t.Fatalf("%d taken", len(batch))
		}
	}
	if !s.settler.waitForRoom(stopped) {
		t.Error("there is no room")
	}
}

// holdJobs runs a worker whose handlers are short at first, so that jobs are taken ahead, and then block. It returns when all
// handlers block and jobs are held, with those jobs. The handlers end when the test does.
func holdJobs(t *testing.T, s *server, longest time.Duration) (w *Worker, h *hand, held []string) {
	c := s.client()
	jobs := make([]NewJob, 200)
	for i := range jobs { // a second attempt would not be allowed
		jobs[i] = NewJob{Topic: "h", ID: fmt.Sprint(i), Options: []Option{Retry(1), Timeout(24 * time.Hour)}}
	}
	_, err := c.EnqueueMany(testContext(t), jobs)
	must(t, err)
	w = NewWorker(s.config(), Concurrency(2))
	var begun atomic.Int32
	hands := make(chan *hand, 1)
	block := make(chan struct{})
	w.Handle("h", func(ctx context.Context, job *Job) error {
		h := job.run.session.hand
		switch count := begun.Add(1); {
		case count == 1:
			h.mu.Lock()
			h.longest = longest
			h.mu.Unlock()
			hands <- h
		case count > 100:
			<-block
		}
		return nil
	})
	startWorker(t, w)
	t.Cleanup(func() { close(block) })
	h = awaitEvent(t, hands, "the first job")
	for limit := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		if begun.Load() == 102 && len(h.held) > 0 {
			for _, r := range h.held {
				held = append(held, r.job.ID)
			}
		}
		h.mu.Unlock()
		if held != nil {
			return w, h, held
		}
		if time.Now().After(limit) {
			t.Fatalf("%d have begun, and none are held", begun.Load())
		}
	}
}

func TestWhatWasTakenAheadIsGivenBackAtAStop(t *testing.T) {
	s := newServer(t, "")
	w, _, held := holdJobs(t, s, time.Hour)
	w.Stop()
	c := s.client()
	for limit := time.Now().Add(deadline); len(held) > 0; time.Sleep(time.Millisecond) {
		if job := mustGet(t, c, "h", held[0]); job.State == "ready" && job.Attempts == 0 {
			held = held[1:] // although the handlers still run
		} else if time.Now().After(limit) {
			t.Fatalf("%+v", job)
		}
	}
}

func TestASlowHandlerDoesNotKeepWhatWasTakenAhead(t *testing.T) {
	s := newServer(t, "")
	_, h, held := holdJobs(t, s, 300*time.Millisecond)
	left := map[string]bool{}
	for _, id := range held {
		left[id] = true
	}
	other := NewWorker(s.config(), Concurrency(1))
	done := make(chan string, 200)
	other.Handle("h", func(ctx context.Context, job *Job) error {
		if job.Attempt != 1 {
			t.Errorf("attempt %d", job.Attempt)
		}
		done <- job.ID
		return nil
	})
	startWorker(t, other)
	for len(left) > 0 {
		delete(left, awaitEvent(t, done, "a job that was held"))
	}
	if count := h.wanted(); count != 0 {
		t.Errorf("%d are taken ahead again", count)
	}
}
