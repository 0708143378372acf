package main

import (
	"reflect"
	"regexp"
	"testing"
	"time"
)

// TestReport reads a page back: rows of tests that do not run again stay as they are.
func TestReport(t *testing.T) {
	p := report{system: []string{"a machine"}, rows: map[string]*row{}}
	for name, parts := range map[string][]row{
		"TestA": {
			{passed: 3, wall: 2 * time.Second, cpu: time.Second},
			{passed: 1, failed: 1, skipped: 3, wall: time.Second, failures: []string{"TestA/x_y"},
				skips: map[string]int{"a | b": 2, "other": 1}},
		},
		"TestB": {{passed: 1}},
	} {
		r := &row{date: "2026-01-02", commit: "abc"}
		for i := range parts {
			r.add(&parts[i])
		}
		p.rows[name] = r
	}
	text := p.String()
	got := report{parse(text), p.system}
	if again := got.String(); again != text {
		t.Errorf("read and written again:\n%s\nwant\n%s", again, text)
	}
	want := []string{"failed: `TestA/x_y`", "skipped 2: a / b", "skipped 1: other"}
	if notes := got.rows["TestA"].notes; !reflect.DeepEqual(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}

// TestPlan checks that the slow tests come first, and that no subtest is left out or run twice.
func TestPlan(t *testing.T) {
	got := plan([]string{"TestMeta", "TestImatrix", "TestSlurm"}, regexp.MustCompile(""))
	want := []job{{"TestMeta", ""}}
	for _, part := range quarters {
		want = append(want, job{"TestImatrix", part})
	}
	want = append(want[1:], want[0])
	if !reflect.DeepEqual(got, want) {
		t.Errorf("jobs %v, want %v", got, want)
	}
	for c := range 256 {
		n := 0
		for _, part := range quarters {
			if regexp.MustCompile(part).MatchString(string(rune(c)) + "x") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d parts match names that begin with %q", n, rune(c))
		}
	}
}
