package delayq

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// deadline is how long a test waits for anything.
const deadline = 60 * time.Second

// server is a real server with a data directory of its own.
type server struct {
	t       testing.TB
	program string
	data    string
	options []string
	resp    string // the address that it listens on
	port    string
	process *exec.Cmd
}

// newServer starts a server; with text, that is its configuration file.
func newServer(t testing.TB, configuration string, options ...string) *server {
	t.Helper()
	program := os.Getenv("DELAYQ")
	if program == "" {
		program = filepath.Join("..", "..", "build", "release", "delayq")
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("there is no server: set DELAYQ to the path of the program (%v)", err)
	}
	s := &server{t: t, program: program, data: t.TempDir(), options: options, resp: "127.0.0.1:0"}
	if configuration != "" {
		file := filepath.Join(t.TempDir(), "delayq.toml")
		if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		s.options = append(s.options, "--config", file)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

var readyLine = regexp.MustCompile(`redis-cli (?:--tls )?-p (\d+) `)

func (s *server) start() {
	s.t.Helper()
	arguments := append([]string{"serve", "--resp", s.resp, "--http", "127.0.0.1:0", "--data", s.data, "--log-level", "warn"}, s.options...)
	s.process = exec.Command(s.program, arguments...)
	// The server dies with the test, whatever happens to the test.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
				select {
				case ready <- found[1]:
				default:
				}
			}
		}
		close(ready)
	}()
	select {
	case s.port = <-ready:
	case <-time.After(deadline):
	}
	if s.port == "" {
		s.kill()
		s.t.Fatal("the server did not start")
	}
}

// kill is kill -9.
func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// restart kills it and starts it again at the same port.
func (s *server) restart() {
	s.kill()
	s.resp = net.JoinHostPort("127.0.0.1", s.port)
	s.start()
}

func (s *server) config() Config {
	return Config{Port: s.port, Logger: testLogger(s.t)}
}

func (s *server) client() *Client {
	c := NewClient(s.config())
	s.t.Cleanup(func() { c.Close() })
	return c
}

func testLogger(t testing.TB) Logger {
	if testing.Verbose() {
		return log.New(os.Stderr, t.Name()+": ", log.Lmicroseconds)
	}
	return log.New(io.Discard, "", 0)
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// awaitEvent waits for a channel.
func awaitEvent[T any](t testing.TB, events <-chan T, what string) T {
	t.Helper()
	select {
	case event := <-events:
		return event
	case <-time.After(deadline):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

// startWorker runs a worker until the test ends, and returns what Run will return.
func startWorker(t testing.TB, w *Worker) <-chan error {
	ended := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		ended <- w.Run(context.Background())
		close(finished)
	}()
	t.Cleanup(func() {
		w.Stop()
		awaitEvent(t, finished, "the end of the worker")
	})
	return ended
}

func mustGet(t testing.TB, c *Client, topic, id string) *JobInfo {
	t.Helper()
	job, err := c.Get(testContext(t), topic, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
