package delayq

import (
	"context"
	"time"
)

// Schedule makes a job again and again. Times, numbers and texts that it does not have are zero.
type Schedule struct {
	Name   string
	State  string // "active", "paused" or "ended"; "broken": it makes no jobs, and Problem says why
	Result string // of Every and Cron: "created", "updated" or "unchanged"

	Topic   string
	Payload []byte            // only of GetSchedule
	Headers map[string]string // only of GetSchedule

	Every time.Duration // the rule: Every, or Cron in Zone
	Cron  string
	Zone  string

	Start, End time.Time
	Runs       int64
	Jitter     time.Duration
	Overlap    string
	Missed     string

	// Of its jobs.
	Priority *int64
	Retry    *int64
	Backoff  string
	Timeout  time.Duration
	Group    string
	Callback string

	NextAt                   time.Time // zero if there is none, or if it is paused
	NextLocal                string    // the same in its zone
	Made, Skipped, MissedRun int64     // occurrences: made, left out because of Overlap, given up
	Problem                  string
}

type scheduleSpec struct {
	jobFields
	zone       string
	start, end *time.Time
	runs       *int64
	jitter     *time.Duration
	overlap    string
	missed     string
}

type scheduleOption func(*scheduleSpec)

func (o scheduleOption) applySchedule(spec *scheduleSpec) { o(spec) }

// Zone is the time zone of a cron rule, such as "Asia/Shanghai". Default "UTC".
func Zone(name string) ScheduleOption { return scheduleOption(func(s *scheduleSpec) { s.zone = name }) }

// StartAt: no occurrence before this moment. Every counts from it.
func StartAt(at time.Time) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.start = &at })
}

// EndAt: no occurrence after this moment.
func EndAt(at time.Time) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.end = &at })
}

// Runs is how many jobs are made in all.
func Runs(count int64) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.runs = &count })
}

// Jitter: each job is due up to this much later than its occurrence.
func Jitter(most time.Duration) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.jitter = &most })
}

// Overlap says what happens if the job before is not finished: "allow" (the default), "skip" or "replace".
func Overlap(what string) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.overlap = what })
}

// Missed says what is made of the occurrences that were missed: "one" (the default), "skip" or "all".
func Missed(what string) ScheduleOption {
	return scheduleOption(func(s *scheduleSpec) { s.missed = what })
}

// Every makes a job at every interval, from 10 s. A schedule of the same name gets this definition; its phase and its counts
// stay.
func (c *Client) Every(ctx context.Context, name string, interval time.Duration, topic string, payload []byte,
	options ...ScheduleOption) (*Schedule, error) {
	words := newCommand("SCHEDULE", "SET", name, "EVERY")
	words.duration(interval)
	return c.setSchedule(ctx, words, topic, payload, options)
}

// Cron makes a job at each occurrence of a cron rule such as "0 2 * * *", in UTC or in a Zone. A schedule of the same name
// gets this definition; its counts stay.
func (c *Client) Cron(ctx context.Context, name, rule, topic string, payload []byte, options ...ScheduleOption) (*Schedule, error) {
	return c.setSchedule(ctx, newCommand("SCHEDULE", "SET", name, "CRON", rule), topic, payload, options)
}

func (c *Client) setSchedule(ctx context.Context, words *command, topic string, payload []byte,
	options []ScheduleOption) (*Schedule, error) {
	var spec scheduleSpec
	for _, option := range options {
		if option != nil {
			option.applySchedule(&spec)
		}
	}
	spec.encode(words, topic, payload)
	reply, err := c.ask(ctx, words, safe, isMap)
	return readSchedule(reply, err)
}

func (s *scheduleSpec) encode(c *command, topic string, payload []byte) {
	if s.zone != "" {
		c.text("ZONE")
		c.text(s.zone)
	}
	c.text("TOPIC")
	c.text(topic)
	c.text("BODY")
	c.bytes(payload)
	if s.start != nil {
		c.text("START")
		c.moment(*s.start)
	}
	if s.end != nil {
		c.text("END")
		c.moment(*s.end)
	}
	if s.runs != nil {
		c.text("RUNS")
		c.number(*s.runs)
	}
	if s.jitter != nil {
		c.text("JITTER")
		c.duration(*s.jitter)
	}
	if s.overlap != "" {
		c.text("OVERLAP")
		c.text(s.overlap)
	}
	if s.missed != "" {
		c.text("MISSED")
		c.text(s.missed)
	}
	s.jobFields.encode(c)
}

func readSchedule(reply value, err error) (*Schedule, error) {
	if err != nil {
		return nil, err
	}
	f := readFields(reply)
	s := &Schedule{
		Name: f.text("name"), State: f.text("state"), Result: f.text("result"), Topic: f.text("topic"), Payload: f["body"].data,
		Headers: f.headers(), Every: f.duration("every"), Cron: f.text("cron"), Zone: f.text("zone"), Start: f.moment("start_ms"),
		End: f.moment("end_ms"), Runs: f.number("runs"), Jitter: f.duration("jitter"), Overlap: f.text("overlap"),
		Missed: f.text("missed"), Backoff: f.text("backoff"), Timeout: f.duration("lease"), Group: f.text("group"),
		Callback: f.text("callback"), NextAt: f.moment("next_ms"), NextLocal: f.text("next_local"),
		Made: f.number("occurrences_made"), Skipped: f.number("occurrences_skipped"), MissedRun: f.number("occurrences_missed"),
		Problem: f.text("problem"),
	}
	if found, ok := f["priority"]; ok {
		s.Priority = &found.number
	}
	if found, ok := f["attempts"]; ok {
		s.Retry = &found.number
	}
	return s, nil
}

// GetSchedule looks a schedule up. The error is ErrNotFound if there is none.
func (c *Client) GetSchedule(ctx context.Context, name string) (*Schedule, error) {
	reply, err := c.ask(ctx, newCommand("SCHEDULE", "GET", name), safe, isMap+isNull)
	if err == nil && reply.isNull() {
		err = &Error{Code: "not_found", Message: "there is no such schedule"}
	}
	return readSchedule(reply, err)
}

// RemoveSchedule removes a schedule. The jobs that it has made stay.
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	_, err := c.ask(ctx, newCommand("SCHEDULE", "DEL", name), never, isText+isNumber)
	return err
}

// PauseSchedule stops the occurrences until ResumeSchedule.
func (c *Client) PauseSchedule(ctx context.Context, name string) (*Schedule, error) {
	return readSchedule(c.ask(ctx, newCommand("SCHEDULE", "PAUSE", name), safe, isMap))
}

// ResumeSchedule ends a pause. What was missed is treated as Missed says.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (*Schedule, error) {
	return readSchedule(c.ask(ctx, newCommand("SCHEDULE", "RESUME", name), safe, isMap))
}

// RunSchedule makes a job now, in addition to the occurrences. Of the job that it returns, Topic, ID, State and DueAt are set.
func (c *Client) RunSchedule(ctx context.Context, name string) (*JobInfo, error) {
	reply, err := c.ask(ctx, newCommand("SCHEDULE", "RUN", name), never, isMap)
	if err != nil {
		return nil, err
	}
	return readJobInfo(reply), nil
}

// NextOf says whose occurrences Next returns: those of a stored schedule (Name), or of a rule that is not stored (Rule with
// Zone, or Every).
type NextOf struct {
	Name  string
	Rule  string
	Zone  string
	Every time.Duration
	From  time.Time // of a rule: after this moment; default: now
	Count int       // default 5, at most 1,000
}

// Occurrence is a moment at which a schedule is due.
type Occurrence struct {
	At    time.Time
	Local string // in the schedule's zone
}

// Next returns the next occurrences of a schedule or of a rule.
func (c *Client) Next(ctx context.Context, of NextOf) ([]Occurrence, error) {
	words, err := of.command()
	if err != nil {
		return nil, err
	}
	reply, err := c.ask(ctx, words, safe, isList)
	if err != nil {
		return nil, err
	}
	occurrences := make([]Occurrence, 0, len(reply.items))
	for _, item := range reply.items {
		if len(item.items) != 2 {
			return nil, unexpected(item)
		}
		occurrences = append(occurrences, Occurrence{fromMillis(item.items[0].number), item.items[1].text()})
	}
	return occurrences, nil
}

func (n *NextOf) command() (*command, error) {
	words := newCommand("SCHEDULE", "NEXT")
	given := 0
	if n.Name != "" {
		given++
		words.text("NAME")
		words.text(n.Name)
	}
	if n.Rule != "" {
		given++
		words.text("CRON")
		words.text(n.Rule)
	}
	if n.Every != 0 {
		given++
		words.text("EVERY")
		words.duration(n.Every)
	}
	if given != 1 {
		return nil, invalid("name, rule or every: exactly one of them is needed")
	}
	if n.Zone != "" {
		words.text("ZONE")
		words.text(n.Zone)
	}
	if !n.From.IsZero() {
		words.text("FROM")
		words.moment(n.From)
	}
	if n.Count != 0 {
		words.text("COUNT")
		words.number(int64(n.Count))
	}
	return words, nil
}
