package delayq

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// The arguments and results of the scenarios' steps.

type arguments struct {
	given   map[string]any
	now     time.Time
	play    *play
	problem error
}

func (a *arguments) take(key string) (any, bool) {
	found, ok := a.given[key]
	delete(a.given, key)
	return found, ok
}

func (a *arguments) finish() error {
	for key := range a.given {
		return fmt.Errorf("unknown key %q", key)
	}
	return a.problem
}

func (a *arguments) text(key string) string {
	found, ok := a.take(key)
	if !ok {
		return ""
	}
	return string(a.bytes(found))
}

func (a *arguments) payload() []byte {
	found, _ := a.take("payload")
	return a.bytes(found)
}

// bytes makes the bytes that a value stands for.
func (a *arguments) bytes(given any) []byte {
	data, err := a.play.valueBytes(given)
	if err != nil && a.problem == nil {
		a.problem = err
	}
	return data
}

func (p *play) valueBytes(given any) ([]byte, error) {
	switch v := given.(type) {
	case string:
		p.mu.Lock()
		defer p.mu.Unlock()
		if saved, ok := p.saved[v]; ok {
			return []byte(saved.(string)), nil
		}
		return []byte(v), nil
	case map[string]any:
		if encoded, ok := v["base64"].(string); ok && len(v) == 1 {
			return base64.StdEncoding.DecodeString(encoded)
		}
		if part, ok := v["repeat"].(string); ok && len(v) == 2 {
			return []byte(strings.Repeat(part, int(v["times"].(float64)))), nil
		}
		if inner, ok := v["json"]; ok && len(v) == 1 {
			return json.Marshal(inner)
		}
	}
	return nil, fmt.Errorf("unknown value %v", given)
}

func millis(given any) time.Duration {
	return time.Duration(given.(float64)) * time.Millisecond
}

func (a *arguments) duration(key string) time.Duration {
	found, ok := a.take(key)
	if !ok {
		return 0
	}
	return millis(found)
}

func (a *arguments) moment(key string) (time.Time, bool) {
	found, ok := a.take(key)
	if !ok {
		return time.Time{}, false
	}
	return a.now.Add(millis(found)), true
}

func asSteps(given any) []step {
	var steps []step
	for _, one := range given.([]any) {
		steps = append(steps, one.(map[string]any))
	}
	return steps
}

func (a *arguments) list(key string) []step {
	found, _ := a.take(key)
	return asSteps(found)
}

func (a *arguments) job() NewJob {
	job := NewJob{Topic: a.text("topic"), ID: a.text("id"), Payload: a.payload()}
	for _, when := range a.times() {
		job.Options = append(job.Options, when)
	}
	for _, option := range a.jobOptions() {
		job.Options = append(job.Options, option)
	}
	if what := a.text("on_conflict"); what != "" {
		job.Options = append(job.Options, OnConflict(ConflictOption(what)))
	}
	return job
}

func (a *arguments) times() (times []TimeOption) {
	if in, ok := a.take("process_in"); ok {
		times = append(times, ProcessIn(millis(in)))
	}
	if at, ok := a.moment("process_at"); ok {
		times = append(times, ProcessAt(at))
	}
	return times
}

func (a *arguments) jobOptions() (options []JobOption) {
	if v, ok := a.take("priority"); ok {
		options = append(options, Priority(int64(v.(float64))))
	}
	if v, ok := a.take("retry"); ok {
		options = append(options, Retry(int64(v.(float64))))
	}
	if v, ok := a.take("timeout"); ok {
		options = append(options, Timeout(millis(v)))
	}
	if v := a.text("backoff"); v != "" {
		options = append(options, Backoff(v))
	}
	if v := a.text("group"); v != "" {
		options = append(options, Group(v))
	}
	if v := a.text("callback"); v != "" {
		options = append(options, Callback(v))
	}
	if v, ok := a.take("headers"); ok {
		headers := map[string]string{}
		for name, value := range v.(map[string]any) {
			headers[name] = string(a.bytes(value))
		}
		options = append(options, Headers(headers))
	}
	return options
}

func (a *arguments) scheduleOptions() (options []ScheduleOption) {
	for _, option := range a.jobOptions() {
		options = append(options, option)
	}
	if v := a.text("zone"); v != "" {
		options = append(options, Zone(v))
	}
	if v, ok := a.moment("start"); ok {
		options = append(options, StartAt(v))
	}
	if v, ok := a.moment("end"); ok {
		options = append(options, EndAt(v))
	}
	if v, ok := a.take("runs"); ok {
		options = append(options, Runs(int64(v.(float64))))
	}
	if v, ok := a.take("jitter"); ok {
		options = append(options, Jitter(millis(v)))
	}
	if v := a.text("overlap"); v != "" {
		options = append(options, Overlap(v))
	}
	if v := a.text("missed"); v != "" {
		options = append(options, Missed(v))
	}
	return options
}

func (a *arguments) nextOf() NextOf {
	of := NextOf{Name: a.text("name"), Rule: a.text("rule"), Zone: a.text("zone"), Every: a.duration("interval")}
	if from, ok := a.moment("from"); ok {
		of.From = from
	}
	if text := a.text("from_at"); text != "" {
		from, err := time.Parse(time.RFC3339, text)
		if err != nil {
			a.problem = err
		}
		of.From = from
	}
	if count, ok := a.take("count"); ok {
		of.Count = int(count.(float64))
	}
	return of
}

func (a *arguments) workerOptions() (options []WorkerOption) {
	given, _ := a.take("options")
	all, _ := given.(map[string]any)
	for option, v := range all {
		switch option {
		case "concurrency":
			options = append(options, Concurrency(int(v.(float64))))
		case "lease":
			options = append(options, Lease(millis(v)))
		case "wait":
			options = append(options, Wait(millis(v)))
		case "grace":
			options = append(options, Grace(millis(v)))
		default:
			a.problem = fmt.Errorf("unknown option of a worker: %s", option)
		}
	}
	return options
}

// ---- results

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func jobResult(job *JobInfo, err error) (any, error) {
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"topic": job.Topic, "id": job.ID, "state": job.State, "payload": job.Payload, "due_at": orNull(job.DueAt),
		"pushed_at": orNull(job.PushedAt), "attempts": job.Attempts, "priority": job.Priority, "group": orNull(job.Group),
		"until": orNull(job.Until), "callback": orNull(job.Callback), "outcome": orNull(job.Outcome),
		"cancel_requested": job.CancelRequested, "headers": job.Headers,
	}, nil
}

func notNull(found any, err error) error {
	if err == nil && found == nil {
		return ErrNotFound
	}
	return err
}

func scheduleResult(s *Schedule, err error) (any, error) {
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"name": s.Name, "state": s.State, "topic": s.Topic, "payload": s.Payload, "every": orNull(s.Every), "cron": orNull(s.Cron),
		"zone": orNull(s.Zone), "start": orNull(s.Start), "end": orNull(s.End), "runs": orNull(s.Runs), "jitter": orNull(s.Jitter),
		"overlap": orNull(s.Overlap), "missed": orNull(s.Missed), "next_at": orNull(s.NextAt), "next_local": orNull(s.NextLocal),
		"made": s.Made, "skipped": s.Skipped, "missed_count": s.MissedRun, "result": orNull(s.Result), "headers": s.Headers,
	}, nil
}

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// compare says how a result differs from what is expected.
func (p *play) compare(path string, wanted, got any, now time.Time) error {
	differs := func() error { return fmt.Errorf("%s: expected %.300v, got %.300v", path, wanted, shown(got)) }
	switch w := wanted.(type) {
	case nil:
		if got != nil {
			return differs()
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(w) {
			return differs()
		}
		for i := range w {
			if err := p.compare(fmt.Sprintf("%s[%d]", path, i), w[i], list[i], now); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		return p.compareObject(path, w, got, now, differs)
	case float64:
		if d, ok := got.(time.Duration); ok {
			got = d.Milliseconds()
		}
		if v := reflect.ValueOf(got); v.CanInt() && float64(v.Int()) == w {
			return nil
		}
		return differs()
	case string:
		data, err := p.valueBytes(w)
		if err != nil || got == nil || shown(got) != string(data) {
			return differs()
		}
		return nil
	default:
		if wanted != got {
			return differs()
		}
		return nil
	}
}

func shown(got any) string {
	switch v := got.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return fmt.Sprint(got)
}

func (p *play) compareObject(path string, w map[string]any, got any, now time.Time, differs func() error) error {
	holds := func(condition bool) error {
		if condition {
			return nil
		}
		return differs()
	}
	if text, ok := w["contains"]; ok && len(w) == 1 {
		part, err := p.valueBytes(text)
		return holds(err == nil && got != nil && strings.Contains(shown(got), string(part)))
	}
	if near, ok := w["near"]; ok && len(w) == 1 {
		at, isTime := got.(time.Time)
		return holds(isTime && math.Abs(at.Sub(now.Add(millis(near))).Seconds()) < 20)
	}
	if version, ok := w["uuid"]; ok && len(w) == 1 {
		return holds(version == 7.0 && uuid7.MatchString(shown(got)))
	}
	if most, ok := w["bytes_at_most"]; ok && len(w) == 1 {
		return holds(got != nil && len(shown(got)) <= int(most.(float64)))
	}
	if inner, ok := w["json"]; ok && len(w) == 1 {
		var decoded any
		err := json.Unmarshal([]byte(shown(got)), &decoded)
		return holds(err == nil && reflect.DeepEqual(decoded, inner))
	}
	if _, isBytes := got.([]byte); isBytes {
		data, err := p.valueBytes(w)
		return holds(err == nil && shown(got) == string(data))
	}
	switch object := got.(type) {
	case map[string]any:
		for key, one := range w {
			if err := p.compare(path+"."+key, one, object[key], now); err != nil {
				return err
			}
		}
		return nil
	case map[string]string:
		if len(w) == 0 {
			return holds(len(object) == 0)
		}
		for key, one := range w {
			var found any
			if text, ok := object[key]; ok {
				found = text
			}
			if err := p.compare(path+"."+key, one, found, now); err != nil {
				return err
			}
		}
		return nil
	}
	return differs()
}
