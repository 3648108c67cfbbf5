package delayq

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The scenarios of sdk/spec, which every library passes. This file carries them out; spec_values_test.go has the values.

type scenarioFile struct {
	About     string          `json:"about"`
	Server    string          `json:"server"`
	Scenarios []scenario      `json:"scenarios"`
	Replies   json.RawMessage `json:"replies"`
	Calls     []wireCall      `json:"calls"`
}

// wireCall is a row of wire.json.
type wireCall struct {
	Name   string                     `json:"name"`
	Client map[string]any             `json:"client"`
	Server map[string]json.RawMessage `json:"server"`
	Step   step                       `json:"step"`
	Sent   map[string]int             `json:"sent"`
}

type scenario struct {
	Name    string                    `json:"name"`
	Clients map[string]map[string]any `json:"clients"`
	Steps   []step                    `json:"steps"`
}

type step map[string]any

func TestSpec(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "spec", "*.json"))
	must(t, err)
	if len(files) < 8 {
		t.Fatalf("%d files with scenarios", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		var content scenarioFile
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if content.Replies != nil {
			continue // TestErrorReplies
		}
		if len(content.Calls) > 0 {
			t.Run("wire", func(t *testing.T) { runCalls(t, content.Calls) })
			continue
		}
		if len(content.Scenarios) == 0 {
			t.Fatalf("%s has no scenarios", file)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			s := newServer(t, content.Server)
			for _, one := range content.Scenarios {
				t.Run(one.Name, func(t *testing.T) { runScenario(t, s, one) })
			}
		})
	}
}

// play is a scenario that is carried out.
type play struct {
	configs map[string]Config
	clients map[string]*Client

	mu    sync.Mutex
	saved map[string]any
}

func runScenario(t *testing.T, s *server, one scenario) {
	p := &play{configs: map[string]Config{"": s.config()}, clients: map[string]*Client{}, saved: map[string]any{}}
	for name, options := range one.Clients {
		p.configs[name] = withOptions(t, s.config(), options)
	}
	for name, config := range p.configs {
		c := NewClient(config)
		p.clients[name] = c
		t.Cleanup(func() { c.Close() })
	}
	for i, next := range one.Steps {
		if err := p.step(testContext(t), next, nil); err != nil {
			text, _ := json.Marshal(next)
			t.Fatalf("step %d: %v\n%.1000s", i+1, err, text)
		}
	}
}

func withOptions(t *testing.T, config Config, options map[string]any) Config {
	for option, given := range options {
		switch option {
		case "token":
			config.Token = given.(string)
		case "token_name":
			config.TokenName = given.(string)
		case "retry_for":
			if config.RetryFor = millis(given); config.RetryFor == 0 {
				config.RetryFor = -1
			}
		case "timeout":
			config.Timeout = millis(given)
		case "connect_timeout":
			config.ConnectTimeout = millis(given)
		case "tls":
			config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		default:
			t.Fatalf("unknown option of a client: %s", option)
		}
	}
	return config
}

func runCalls(t *testing.T, calls []wireCall) {
	for _, call := range calls {
		t.Run(call.Name, func(t *testing.T) {
			peer := exec.Command("python3", "-B", filepath.Join("..", "spec", "wire.py"), call.Name)
			peer.Stderr = os.Stderr
			in, err := peer.StdinPipe()
			must(t, err)
			out, err := peer.StdoutPipe()
			must(t, err)
			must(t, peer.Start())
			defer func() { _ = peer.Process.Kill() }()
			said := bufio.NewReader(out)
			port, err := said.ReadString('\n')
			must(t, err)
			config := withOptions(t, Config{Port: strings.TrimSpace(port), Logger: testLogger(t)}, call.Client)
			p := &play{configs: map[string]Config{"": config}, clients: map[string]*Client{"": NewClient(config)}, saved: map[string]any{}}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := p.step(ctx, call.Step, nil); err != nil {
				t.Error(err)
			}
			must(t, p.clients[""].Close())
			must(t, in.Close())
			difference, err := io.ReadAll(said)
			must(t, err)
			if err := peer.Wait(); err != nil {
				t.Errorf("%v: %s", err, difference)
			}
		})
	}
}

// goesOn is the context of a handler that does more after it was told to stop.
type goesOn struct{ context.Context }

func (goesOn) Done() <-chan struct{} { return nil }
func (goesOn) Err() error            { return nil }

// step carries out one step, in a handler if inside is given, and compares what came of it.
func (p *play) step(ctx context.Context, given step, inside *inHandler) error {
	now := time.Now()
	a := &arguments{given: map[string]any{}, now: now, play: p}
	for key, v := range given {
		a.given[key] = v
	}
	do := a.text("do")
	wanted, hasResult := a.take("result")
	code, message, save := a.text("error"), a.text("message"), a.text("save")
	retryable, hasRetryable := a.take("retryable")
	client := a.text("client")
	if p.clients[client] == nil {
		return fmt.Errorf("there is no client %q", client)
	}
	var result any
	var err error
	if inside != nil && inside.knows(do) {
		result, err = inside.do(do, a)
	} else if do == "work" {
		err = p.work(ctx, p.configs[client], a)
	} else if do == "together" {
		err = p.together(ctx, a)
	} else {
		result, err = p.verb(goesOn{ctx}, p.clients[client], do, a)
	}
	if wrong := a.finish(); wrong != nil {
		return wrong
	}
	var ending *handlerEnd
	if errors.As(err, &ending) {
		return ending
	}
	if code != "" {
		return compareError(err, code, message, retryable, hasRetryable)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	if save != "" {
		p.mu.Lock()
		p.saved["$"+save] = result
		p.mu.Unlock()
	}
	if hasResult {
		return p.compare(do, wanted, result, now)
	}
	return nil
}

func compareError(err error, code, message string, retryable any, hasRetryable bool) error {
	var known *Error
	if !errors.As(err, &known) {
		return fmt.Errorf("expected the error %s, got: %v", code, err)
	}
	if known.Code != code || !strings.Contains(known.Message, message) {
		return fmt.Errorf("expected the error %s with %q, got %s: %s", code, message, known.Code, known.Message)
	}
	if hasRetryable && known.Retryable != retryable.(bool) {
		return fmt.Errorf("retryable is %v", known.Retryable)
	}
	return nil
}

func (p *play) together(ctx context.Context, a *arguments) error {
	steps := a.list("steps")
	results := make(chan error, len(steps))
	for _, one := range steps {
		go func(one step) { results <- p.step(ctx, one, nil) }(one)
	}
	var first error
	for range steps {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (p *play) verb(ctx context.Context, c *Client, do string, a *arguments) (any, error) {
	switch do {
	case "enqueue":
		job := a.job()
		if job.ID == "" || len(job.Options) > 0 {
			return c.EnqueueContext(ctx, job.Topic, job.ID, job.Payload, job.Options...)
		}
		if err := c.Enqueue(job.Topic, job.ID, job.Payload); err != nil {
			return nil, err
		}
		return job.ID, nil
	case "enqueue_many":
		return enqueueMany(ctx, c, a)
	case "dequeue":
		return c.Dequeue(a.text("topic"), a.text("id"))
	case "cancel_group":
		return c.CancelGroup(ctx, a.text("group"))
	case "reschedule":
		return nil, c.Reschedule(ctx, a.text("topic"), a.text("id"), a.times()...)
	case "get":
		return jobResult(c.Get(ctx, a.text("topic"), a.text("id")))
	}
	return scheduleVerb(ctx, c, do, a)
}

func enqueueMany(ctx context.Context, c *Client, a *arguments) (any, error) {
	var jobs []NewJob
	for _, one := range a.list("jobs") {
		inner := &arguments{given: one, now: a.now, play: a.play}
		jobs = append(jobs, inner.job())
		if err := inner.finish(); err != nil {
			return nil, err
		}
	}
	results, err := c.EnqueueMany(ctx, jobs)
	shown := []any{}
	failed := false
	for _, one := range results {
		var known *Error
		if errors.As(one.Err, &known) {
			failed = true
			shown = append(shown, map[string]any{"error": known.Code})
		} else {
			shown = append(shown, one.ID)
		}
	}
	if failed != (err != nil) {
		return nil, fmt.Errorf("the error of the whole is %v", err)
	}
	return shown, nil
}

func scheduleVerb(ctx context.Context, c *Client, do string, a *arguments) (any, error) {
	switch do {
	case "every":
		name, interval, topic, payload := a.text("name"), a.duration("interval"), a.text("topic"), a.payload()
		return scheduleResult(c.Every(ctx, name, interval, topic, payload, a.scheduleOptions()...))
	case "cron":
		name, rule, topic, payload := a.text("name"), a.text("rule"), a.text("topic"), a.payload()
		return scheduleResult(c.Cron(ctx, name, rule, topic, payload, a.scheduleOptions()...))
	case "get_schedule":
		return scheduleResult(c.GetSchedule(ctx, a.text("name")))
	case "remove_schedule":
		return nil, c.RemoveSchedule(ctx, a.text("name"))
	case "pause_schedule":
		found, err := scheduleResult(c.PauseSchedule(ctx, a.text("name")))
		return found, notNull(found, err)
	case "resume_schedule":
		found, err := scheduleResult(c.ResumeSchedule(ctx, a.text("name")))
		return found, notNull(found, err)
	case "run_schedule":
		job, err := c.RunSchedule(ctx, a.text("name"))
		if err != nil {
			return nil, err
		}
		return map[string]any{"topic": job.Topic, "id": job.ID, "state": job.State, "due_at": job.DueAt}, nil
	case "next":
		found, err := c.Next(ctx, a.nextOf())
		shown := []any{}
		for _, one := range found {
			shown = append(shown, map[string]any{"at": one.At, "local": one.Local})
		}
		return shown, err
	}
	return nil, fmt.Errorf("unknown step %q", do)
}

// ---- work

// inHandler is where the steps of a handler are carried out.
type inHandler struct {
	ctx     context.Context
	job     *Job
	worker  *Worker
	signals *signals
}

// handlerEnd is how a handler ends, if it does not just return.
type handlerEnd struct{ err error }

func (h *handlerEnd) Error() string { return "the handler ends with: " + h.err.Error() }

type signals struct {
	mu    sync.Mutex
	named map[string]chan struct{}
	sent  map[string]bool
}

func (s *signals) channel(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named[name] == nil {
		s.named[name] = make(chan struct{})
	}
	return s.named[name]
}

func (s *signals) send(name string) {
	c := s.channel(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sent[name] {
		s.sent[name] = true
		close(c)
	}
}

func (h *inHandler) knows(do string) bool {
	switch do {
	case "job", "signal", "wait", "wait_cancelled", "stop", "fail", "retry_in", "dead":
		return true
	}
	return false
}

func (h *inHandler) do(do string, a *arguments) (any, error) {
	switch do {
	case "job":
		return map[string]any{"topic": h.job.Topic, "id": h.job.ID, "payload": h.job.Payload, "attempt": h.job.Attempt,
			"due_at": h.job.DueAt, "lease_until": h.job.LeaseUntil(), "headers": h.job.Headers}, nil
	case "signal":
		h.signals.send(a.text("name"))
	case "wait":
		select {
		case <-h.signals.channel(a.text("name")):
		case <-time.After(deadline):
			return nil, errors.New("there was no signal")
		}
	case "wait_cancelled":
		reasons := map[error]string{ErrCancelled: "cancelled", ErrLeaseLost: "lease_lost", ErrStopping: "stopping"}
		wanted := a.text("reason")
		select {
		case <-h.ctx.Done():
		case <-time.After(deadline):
			return nil, errors.New("the handler was not told")
		}
		if got := reasons[Cause(h.ctx)]; got != wanted {
			return nil, fmt.Errorf("the reason is %q, expected %q", got, wanted)
		}
	case "stop":
		h.worker.Stop()
	case "fail":
		return nil, &handlerEnd{errors.New(a.text("text"))}
	case "retry_in":
		var cause []error
		if text := a.text("text"); text != "" {
			cause = append(cause, errors.New(text))
		}
		return nil, &handlerEnd{RetryIn(a.duration("delay"), cause...)}
	case "dead":
		return nil, &handlerEnd{Dead(a.text("reason"))}
	}
	return nil, nil
}

// show is one work step: which lists were begun, and what went wrong.
type show struct {
	mu      sync.Mutex
	begun   map[string]int
	left    int // lists that were not carried out yet
	problem error
}

func (p *play) work(ctx context.Context, config Config, a *arguments) error {
	worker := NewWorker(config, a.workerOptions()...)
	state := &show{begun: map[string]int{}}
	shared := &signals{named: map[string]chan struct{}{}, sent: map[string]bool{}}
	handlers, _ := a.take("handlers")
	for topic, lists := range handlers.(map[string]any) {
		topic, lists := topic, lists.([]any)
		state.left += len(lists)
		worker.Handle(topic, func(ctx context.Context, job *Job) error {
			return p.handle(&inHandler{ctx, job, worker, shared}, state, topic, lists)
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	select {
	case err := <-ended:
		if err != nil {
			return err
		}
	case <-time.After(deadline):
		worker.Stop()
		return errors.New("the worker did not end")
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.problem == nil && state.left > 0 {
		return fmt.Errorf("%d runs did not happen", state.left)
	}
	return state.problem
}

func (p *play) handle(h *inHandler, state *show, topic string, lists []any) error {
	fail := func(problem error) error {
		state.mu.Lock()
		defer state.mu.Unlock()
		if state.problem == nil {
			state.problem = problem
		}
		h.worker.Stop()
		return problem
	}
	state.mu.Lock()
	number := state.begun[topic]
	state.begun[topic]++
	state.mu.Unlock()
	if number >= len(lists) {
		return fail(fmt.Errorf("one run too many of %s", topic))
	}
	defer func() {
		state.mu.Lock()
		defer state.mu.Unlock()
		if state.left--; state.left == 0 {
			h.worker.Stop()
		}
	}()
	for _, one := range asSteps(lists[number]) {
		err := p.step(h.ctx, one, h)
		var ending *handlerEnd
		if errors.As(err, &ending) {
			return ending.err
		}
		if err != nil {
			text, _ := json.Marshal(one)
			return fail(fmt.Errorf("in the handler of %s: %w\n%.500s", topic, err, text))
		}
	}
	return nil
}
