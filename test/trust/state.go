package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"time"
)

// record is a slice that ended: a line of the state.
type record struct {
	Step    string           `json:"step"`
	Code    string           `json:"code"`
	Commit  string           `json:"commit"`
	Time    time.Time        `json:"time"`
	Done    int64            `json:"done"`
	Failed  int64            `json:"failed,omitempty"`
	Seconds float64          `json:"seconds"`
	Figures map[string]int64 `json:"figures,omitempty"`
	Note    string           `json:"note,omitempty"` // why it failed, or was not run
}

// total is the sum of the slices of a step with the same code.
type total struct {
	record // of the last slice, with the sums of Done, Seconds and Figures
	Slices int
}

// state has all slices. It is a file to which lines are added: a line that is not whole does not count.
type state struct {
	file   *os.File
	totals map[[2]string]*total // by step and code
	rates  map[string]record    // the last slice of a step with any code
}

func openState(path string) (*state, error) {
	s := &state{totals: map[[2]string]*total{}, rates: map[string]record{}}
	old, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer old.Close()
		lines := bufio.NewScanner(old)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r record
			if json.Unmarshal(lines.Bytes(), &r) == nil && r.Step != "" {
				s.count(r)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666); err != nil {
		return nil, err
	}
	// After a line that is not whole a new one begins.
	if info, err := s.file.Stat(); err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err := s.file.ReadAt(last[:], info.Size()-1); err == nil && last[0] != '\n' {
			_, err = s.file.WriteString("\n")
			return s, err
		}
	}
	return s, nil
}

func (s *state) close() error { return s.file.Close() }

// count adds a slice to the totals. One that failed counts until the step succeeds with the same code.
func (s *state) count(r record) {
	key := [2]string{r.Step, r.Code}
	t := s.totals[key]
	if t == nil {
		t = &total{}
		s.totals[key] = t
	}
	figures, done, seconds := t.Figures, t.Done+r.Done, t.Seconds+r.Seconds
	if r.Done == 0 && r.Failed == 0 { // not run
		r.Failed, seconds = t.Failed, t.Seconds
	}
	if figures == nil {
		figures = map[string]int64{}
	}
	for name, n := range r.Figures {
		if figures[name] += n; largest[name] {
			figures[name] = max(figures[name]-n, n)
		}
	}
	t.record = r
	t.Figures, t.Done, t.Seconds = figures, done, seconds
	t.Slices++
	if r.Done > 0 && r.Seconds > 0 {
		s.rates[r.Step] = r
	}
}

// largest are figures of which a total has the largest instead of the sum.
var largest = map[string]bool{"slowest_ms": true, "inputs": true, "scenes": true}

// add writes a slice to the file.
func (s *state) add(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.count(r)
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// of returns what is done of a step with its code.
func (s *state) of(p *step) total {
	if t := s.totals[[2]string{p.name, p.code}]; t != nil {
		c := *t
		c.Figures = maps.Clone(t.Figures)
		return c
	}
	return total{}
}

// rate returns how much of a step's count a second takes, and the size of the last slice, with whatever code.
func (s *state) rate(p *step) (perSecond float64, last int64) {
	r := s.rates[p.name]
	if r.Seconds == 0 {
		return 0, 0
	}
	return float64(r.Done) / r.Seconds, r.Done
}
