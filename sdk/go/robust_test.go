package delayq

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// What must hold when processes die and connections are cut: no job is lost, none runs twice at the same time, and the worker
// goes on by itself.

// ledger knows which jobs were accepted, which are running, and which were finished.
type ledger struct {
	t        testing.TB
	mu       sync.Mutex
	accepted map[string]bool
	running  map[string]bool
	done     map[string]int
	twice    []string // ran at two places at once
	changed  chan struct{}
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, accepted: map[string]bool{}, running: map[string]bool{}, done: map[string]int{}, changed: make(chan struct{}, 1)}
}

func (l *ledger) accept(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted[id] = true
}

// run is a handler that takes some time.
func (l *ledger) run(length time.Duration) Func {
	return func(ctx context.Context, job *Job) error {
		l.mu.Lock()
		if l.running[job.ID] {
			l.twice = append(l.twice, job.ID)
		}
		l.running[job.ID] = true
		l.mu.Unlock()
		select {
		case <-time.After(length):
		case <-ctx.Done():
		}
		l.mu.Lock()
		delete(l.running, job.ID)
		l.done[job.ID]++
		l.mu.Unlock()
		select {
		case l.changed <- struct{}{}:
		default:
		}
		return nil
	}
}

// missing returns how many of the accepted jobs have not run.
func (l *ledger) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for id := range l.accepted {
		if l.done[id] == 0 {
			count++
		}
	}
	return count
}

func (l *ledger) waitForAll() {
	l.t.Helper()
	for limit := time.After(deadline); l.missing() > 0; {
		select {
		case <-l.changed:
		case <-limit:
			l.t.Fatalf("%d of %d accepted jobs did not run", l.missing(), len(l.accepted))
		}
	}
}

func (l *ledger) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := 0
	for _, count := range l.done {
		runs += count
	}
	l.t.Logf("%d jobs were accepted, %d ran, %d times", len(l.accepted), len(l.done), runs)
	if len(l.twice) > 0 {
		l.t.Errorf("at two places at once: %v", l.twice)
	}
	if len(l.accepted) == 0 {
		l.t.Error("no job was accepted")
	}
}

// mostLeft is how many accepted jobs may wait for their run. Without it a slow machine has more to do at the end than it can.
const mostLeft = 300

func (l *ledger) isFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)-len(l.done) > mostLeft
}

// produce enqueues until it is told to stop, as long as the handlers keep up. Every tenth call is a batch.
func (l *ledger) produce(c *Client, topic string, random *rand.Rand, stop <-chan struct{}) {
	for number := 0; ; number++ {
		for l.isFull() {
			select {
			case <-stop:
				return
			case <-l.changed:
			}
		}
		select {
		case <-stop:
			return
		default:
		}
		delay := ProcessIn(time.Duration(random.Intn(300)) * time.Millisecond)
		if number%10 != 0 {
			if id, err := c.EnqueueContext(context.Background(), topic, "", []byte("x"), delay); err == nil {
				l.accept(id)
			}
			continue
		}
		batch := make([]NewJob, 20)
		for i := range batch {
			batch[i] = NewJob{Topic: topic, Options: []Option{delay}}
		}
		results, _ := c.EnqueueMany(context.Background(), batch)
		for _, result := range results {
			if result.Err == nil {
				l.accept(result.ID)
			}
		}
	}
}

// cutter forwards connections to a server and cuts one in a hundred of the pieces that pass through it, together with their
// connection.
type cutter struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	random   *rand.Rand
	cuts     int
}

func newCutter(t testing.TB, s *server, random *rand.Rand) *cutter {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{listener: listener, target: net.JoinHostPort("127.0.0.1", s.port), random: random}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", c.target)
			if err != nil {
				in.Close()
				continue
			}
			go c.forward(in, out)
			go c.forward(out, in)
		}
	}()
	return c
}

func (c *cutter) config(s *server) Config {
	config := s.config()
	_, config.Port, _ = net.SplitHostPort(c.listener.Addr().String())
	return config
}

func (c *cutter) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || c.cutsNow() {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (c *cutter) cutsNow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.random.Intn(100) != 0 {
		return false
	}
	c.cuts++
	return true
}

func testLength() time.Duration {
	if os.Getenv("DELAYQ_SDK_DEEP") == "1" {
		return time.Minute
	}
	return 10 * time.Second
}

func TestConnectionsAreCut(t *testing.T) {
	random := newRandom(t)
	s := newServer(t, "")
	proxy := newCutter(t, s, rand.New(rand.NewSource(random.Int63())))
	l := newLedger(t)
	config := proxy.config(s)
	for i := 0; i < 2; i++ {
		w := NewWorker(config, Concurrency(8), Lease(2*time.Second), Wait(time.Second))
		w.Handle("cut", l.run(time.Duration(random.Intn(20))*time.Millisecond))
		startWorker(t, w)
	}
	stop := make(chan struct{})
	var producers sync.WaitGroup
	for i := 0; i < 3; i++ {
		producers.Add(1)
		go func(random *rand.Rand) {
			defer producers.Done()
			c := NewClient(config)
			defer c.Close()
			l.produce(c, "cut", random, stop)
		}(rand.New(rand.NewSource(random.Int63())))
	}
	time.Sleep(testLength()) // how long the trouble lasts
	close(stop)
	producers.Wait()
	l.waitForAll()
	l.check()
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	t.Logf("%d connections were cut", proxy.cuts)
	if proxy.cuts < 10 {
		t.Error("too few connections were cut")
	}
}

func TestTheServerIsKilledAndRestarted(t *testing.T) {
	random := newRandom(t)
	s := newServer(t, "")
	l := newLedger(t)
	w := NewWorker(s.config(), Concurrency(8), Lease(2*time.Second))
	w.Handle("kill", l.run(50*time.Millisecond))
	ended := startWorker(t, w)
	stop := make(chan struct{})
	var producers sync.WaitGroup
	producers.Add(1)
	go func(random *rand.Rand) {
		defer producers.Done()
		l.produce(s.client(), "kill", random, stop)
	}(rand.New(rand.NewSource(random.Int63())))
	for i := 0; i < 3; i++ {
		time.Sleep(time.Duration(300+random.Intn(700)) * time.Millisecond) // when the server dies
		s.restart()
	}
	before := l.missing()
	close(stop)
	producers.Wait()
	l.waitForAll()
	l.check()
	t.Logf("%d jobs were still to run after the last start", before)
	w.Stop()
	must(t, awaitEvent(t, ended, "the end of the worker"))
}

// TestHelperWorker is not a test: it is the process that TestAWorkerIsKilled kills.
func TestHelperWorker(t *testing.T) {
	port := os.Getenv("DELAYQ_HELPER_PORT")
	if port == "" {
		t.Skip("only started by another test")
	}
	w := NewWorker(Config{Port: port}, Lease(time.Second))
	w.Handle("die", func(ctx context.Context, job *Job) error {
		fmt.Println("begun", job.ID)
		<-ctx.Done()
		return nil
	})
	must(t, w.Run(context.Background()))
}

func TestAWorkerIsKilled(t *testing.T) {
	s := newServer(t, "")
	c := s.client()
	must(t, c.Enqueue("die", "1", []byte("x"), Backoff("100ms")))
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperWorker$", "-test.v")
	helper.Env = append(os.Environ(), "DELAYQ_HELPER_PORT="+s.port)
	out, err := helper.StdoutPipe()
	must(t, err)
	must(t, helper.Start())
	begun := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "begun 1") {
				close(begun)
				return
			}
		}
	}()
	awaitEvent(t, begun, "the start of the handler")
	must(t, helper.Process.Kill()) // kill -9
	_ = helper.Wait()
	attempts := make(chan int, 1)
	w := NewWorker(s.config())
	w.Handle("die", func(ctx context.Context, job *Job) error {
		attempts <- job.Attempt
		return nil
	})
	ended := startWorker(t, w)
	if attempt := awaitEvent(t, attempts, "the second attempt"); attempt != 2 {
		t.Errorf("it is attempt %d", attempt)
	}
	w.Stop()
	must(t, awaitEvent(t, ended, "the end of the worker"))
	if job := mustGet(t, c, "die", "1"); job.State != "done" || job.Attempts != 2 {
		t.Errorf("%+v", job)
	}
}

// A server that is away for longer than the lease: the handler is told, since another worker may get the job.
func TestAHandlerIsToldWhenTheServerIsAwayForTooLong(t *testing.T) {
	s := newServer(t, "")
	must(t, s.client().Enqueue("away", "1", nil))
	begun, told := make(chan struct{}), make(chan error, 1)
	w := NewWorker(s.config(), Lease(500*time.Millisecond), Grace(0))
	w.Handle("away", func(ctx context.Context, job *Job) error {
		close(begun)
		<-ctx.Done()
		told <- Cause(ctx)
		w.Stop()
		return Cause(ctx)
	})
	startWorker(t, w)
	awaitEvent(t, begun, "the start of the handler")
	s.kill()
	if cause := awaitEvent(t, told, "the end of its context"); cause != ErrLeaseLost {
		t.Errorf("the cause is %v", cause)
	}
	s.resp = net.JoinHostPort("127.0.0.1", s.port)
	s.start()
}
