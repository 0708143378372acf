package main

import (
	"strings"
	"testing"
	"time"
)

// TestMerge checks that sections of a new report replace those of the same heading or come last, each with the facts
// about its machine.
func TestMerge(t *testing.T) {
	const about = "* CPU: new\n\n"
	report := "# Benchmarks\n\n" + about + "## Evaluation\n\nfresh\n\n| a |\n\n## Calibration\n\nfirst\n\n"
	old := "# Benchmarks\n\n* CPU: old\n\n## Encoders\n\nkept\n\n### Encoding\n\nkept, too\n\n## " +
		"Evaluation\n\nstale\n\n## Whole jobs\n\nkept\n\n"
	want := "# Benchmarks\n\n* CPU: old\n\n## Encoders\n\nkept\n\n### Encoding\n\nkept, too\n\n## Evaluation\n\n* " +
		"CPU: new\n\nfresh\n\n| a |\n\n## Whole jobs\n\nkept\n\n## Calibration\n\n* CPU: new\n\nfirst\n"
	got := merge(old, report, about)
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again := merge(got, report, about); again != got {
		t.Errorf("the second time\n%s", again)
	}
	if merge("", report, about) != report {
		t.Error("a report without an old one has changed")
	}
}

func TestOnly(t *testing.T) {
	opt, err := parse([]string{"-only", "memory,speed"})
	if err != nil || !opt.memory || !opt.speed || opt.kernels || opt.sources || opt.jobs || opt.calib {
		t.Errorf("%+v, %v", opt, err)
	}
	for _, args := range []string{"-only x", "-chunks 0", "-limit 5X"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

// TestSpeed checks that the time of a run without tokens, such as loading the model, is subtracted.
func TestSpeed(t *testing.T) {
	e := &evaluation{runs: []cost{{wall: 5}, {wall: 3}, {wall: 9}}, least: []cost{{wall: 1}, {wall: 1}, {wall: 1}}}
	opt := &options{chunks: 1, budget: time.Second}
	if got := e.speed(opt, func(c cost) float64 { return c.wall }); got != 480./4 {
		t.Errorf("%v tokens a second", got)
	}
}
