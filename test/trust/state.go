package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"time"
)

// record is a slice that ended, or all slices of a step with the same code: a line of a file.
type record struct {
	Step      string           `json:"step"`
	Code      string           `json:"code"`
	Commit    string           `json:"commit"`
	Time      time.Time        `json:"time"`
	Slices    int              `json:"slices,omitempty"` // 0 for one slice
	Done      int64            `json:"done"`
	Failed    int64            `json:"failed,omitempty"`
	Seconds   float64          `json:"seconds"`
	Processor float64          `json:"processor"` // seconds of processors
	Figures   map[string]int64 `json:"figures,omitempty"`
	Note      string           `json:"note,omitempty"` // why it failed, or was not run
}

// state has what was measured, in two files: one in the repository, with a line for each step, and one to which a line
// is added for each slice, until fold adds them up. A line of slices that is not whole does not count.
type state struct {
	kept   string // path of the former
	file   *os.File
	totals map[[2]string]*record // sums, by step and code
	last   map[string]*record    // the sum of the code that ran last, by step
}

func openState(kept, slices string) (*state, error) {
	s := &state{kept: kept, totals: map[[2]string]*record{}, last: map[string]*record{}}
	for i, path := range []string{kept, slices} {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			var r record
			if err := json.Unmarshal(line, &r); err != nil || r.Step == "" {
				if i == 0 {
					return nil, fmt.Errorf("%s: not a record: %q", path, line)
				}
				continue
			}
			// What was added up before a run was killed is in both files.
			if t := s.totals[[2]string{r.Step, r.Code}]; t == nil || r.Time.After(t.Time) {
				s.count(r)
			}
		}
	}
	var err error
	if s.file, err = os.OpenFile(slices, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666); err != nil {
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
		t = &record{}
		s.totals[key] = t
	}
	old := *t
	figures := old.Figures
	if r.Done == 0 && r.Failed == 0 { // not run
		r.Failed, r.Seconds, r.Processor = old.Failed, 0, 0
	}
	if figures == nil {
		figures = map[string]int64{}
	}
	for name, n := range r.Figures {
		if figures[name] += n; largest[name] {
			figures[name] = max(figures[name]-n, n)
		}
	}
	*t = r
	t.Figures, t.Done, t.Slices = figures, old.Done+r.Done, old.Slices+max(1, r.Slices)
	t.Seconds, t.Processor = old.Seconds+r.Seconds, old.Processor+r.Processor
	if last := s.last[r.Step]; last == nil || !last.Time.After(r.Time) {
		s.last[r.Step] = t
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

// fold writes the file of the repository, and empties that of slices. The former has one line for each step, in the
// order of the plan: of its code if there is a slice of that, else of the code that ran last. Steps that are no longer
// there are left out.
func (s *state) fold(steps []*step) error {
	var text bytes.Buffer
	for _, p := range steps {
		t := s.of(p)
		if last := s.last[p.name]; t.Slices == 0 && last != nil {
			t = *last
		}
		if t.Slices == 0 {
			continue
		}
		t.Seconds, t.Processor = math.Round(t.Seconds*100)/100, math.Round(t.Processor*100)/100
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(s.kept+".new", text.Bytes(), 0o666); err != nil {
		return err
	}
	if err := os.Rename(s.kept+".new", s.kept); err != nil {
		return err
	}
	return s.file.Truncate(0)
}

// of returns what is done of a step with its code.
func (s *state) of(p *step) record {
	if t := s.totals[[2]string{p.name, p.code}]; t != nil {
		c := *t
		c.Figures = maps.Clone(t.Figures)
		return c
	}
	return record{}
}

// rate returns how much of a step's count a second of a processor takes, with the code that ran last, and how much that
// was. Executions that a fuzzer guided count if guided is set, else the others.
func (s *state) rate(p *step, guided bool) (perSecond float64, done int64) {
	t := s.last[p.name]
	if t == nil {
		return 0, 0
	}
	done, seconds := t.Figures["guided"], float64(t.Figures["guided_ms"])/1000
	if !guided {
		done, seconds = t.Done-done, t.Processor-seconds
	}
	if done <= 0 || seconds <= 0 {
		return 0, 0
	}
	return float64(done) / seconds, done
}
