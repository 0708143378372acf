package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// show runs a command that reports the given steps and fails with err, and returns its standard error.
func show(t *testing.T, how string, steps []writer.Progress, err error) string {
	t.Helper()
	var b bytes.Buffer
	cmd := &cli.Command{Name: "x", Flags: Flags(ProgressFlag()), Writer: &b, ErrWriter: &b,
		Action: func(_ context.Context, cmd *cli.Command) error {
			progress, flagErr := NewProgress(cmd)
			if flagErr != nil {
				return flagErr
			}
			for _, p := range steps {
				if progress != nil {
					progress(p)
				}
			}
			return err
		}}
	if got := Run(context.Background(), cmd, []string{"x", "--progress", how}); Code(got) != Code(err) {
		t.Fatal(got)
	}
	return b.String()
}

var steps = []writer.Progress{
	{Files: []string{"x.gguf", "y.gguf"}, Begun: true, Tensor: "a", Types: []gguf.Type{gguf.TypeQ4_K, gguf.TypeF16},
		Bytes: 500, Tensors: 2, Total: 1000},
	{Tensor: "a", Tensors: 2, Done: 250, Total: 1000, Work: 0.25, Elapsed: 11 * time.Second,
		Remaining: 33 * time.Second},
	{Begun: true, Tensor: "b", Index: 1, Types: []gguf.Type{gguf.TypeF32}, Bytes: 500, Tensors: 2, Total: 1000},
	{Tensor: "b", Index: 1, Tensors: 2, Done: 1000, Total: 1000, Work: 1, Elapsed: 43 * time.Second},
	{Tensor: "b", Index: 1, Tensors: 2, Done: 1000, Total: 1000, Work: 1, Elapsed: 44 * time.Second, Last: true},
}

func TestJSONProgress(t *testing.T) {
	var names []string
	for line := range strings.Lines(show(t, "json", steps, nil)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Event)
		switch e.Event {
		case "plan":
			if e.Tensors != 2 || e.Total != 1000 {
				t.Errorf("%s", line)
			}
		case "tensor":
			if e.Index == nil || *e.Index == 0 && (e.Tensor != "a" || len(e.Types) != 2 || e.Types[0] != "Q4_K" ||
				e.Bytes != 500) {
				t.Errorf("%s", line)
			}
		case "progress":
			if *e.Done == 250 && (*e.Work != 0.25 || *e.Elapsed != 11 || *e.Remaining != 33) {
				t.Errorf("%s", line)
			}
		case "done":
			if strings.Join(e.Files, " ") != "x.gguf y.gguf" {
				t.Errorf("%s", line)
			}
		}
	}
	if got, want := strings.Join(names, " "), "plan start tensor progress tensor progress written done"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if out := show(t, "json", append(steps[:2:2], steps[4]), nil); strings.Count(out, "written") != 1 {
		t.Errorf("%s", out)
	}
	out := show(t, "json", steps[:2], fault.Errorf(fault.Broken, "bad"))
	if !strings.HasSuffix(out, `{"event":"error","message":"bad","exit_code":3}`+"\n") {
		t.Errorf("%s", out)
	}
}

// TestBarWidth checks that no line of the bar is longer than the terminal is wide, however long the names of tensors
// are.
func TestBarWidth(t *testing.T) {
	for _, name := range []string{"blk.12.ffn_gate_exps.weight", strings.Repeat("long.", 50), "\x1b[2Jx\ny",
		strings.Repeat("重み", 30), "a\u0301"} {
		for _, columns := range []int{40, 80, 200, 24, 23, 12, 6, 5, 1} {
			var b bytes.Buffer
			show := barProgress(&b, func() int { return columns })
			for i := range 3 {
				if columns >= leastBar {
					time.Sleep(51 * time.Millisecond) // the bar's own throttle
				}
				show(writer.Progress{Tensor: name, Done: int64(i) * 2e9, Total: 4e9, Work: float64(i) / 2,
					Elapsed: 3 * time.Hour, Remaining: 99 * time.Hour, Last: i == 2})
			}
			drawn := strings.Split(b.String(), "\r")
			for _, l := range drawn {
				if w := uniseg.StringWidth(l); w > columns || strings.ContainsAny(l, "\x1b\n") {
					t.Errorf("%d columns: %q is %d wide", columns, l, w)
				}
			}
			if shown := strings.Contains(b.String(), " 50 %") ||
				strings.Contains(b.String(), " 50%"); shown != (columns >= leastShown) {
				t.Errorf("%d columns: %q", columns, drawn)
			}
			if columns == 40 && !strings.Contains(b.String(), "99h0m0s left") ||
				columns >= 80 && !strings.Contains(b.String(), "2 GB of 4 GB") {
				t.Errorf("%d columns: %q", columns, drawn)
			}
			if columns == 200 && len(name) < 30 && name[0] == 'b' && !strings.Contains(b.String(), name) {
				t.Errorf("%d columns: %q", columns, drawn)
			}
		}
	}
}

// TestAuto checks where a bar is shown without being asked for.
func TestAuto(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		term     string
		want     string
	}{{true, "xterm-256color", "bar"}, {true, "", "bar"}, {true, "dumb", "plain"}, {false, "xterm", "plain"}} {
		if got := autoProgress(c.terminal, c.term); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestNarrowed makes a terminal narrower while a bar is shown.
func TestNarrowed(t *testing.T) {
	var b bytes.Buffer
	columns := 100
	show := newBar(&b, func() int { return columns })
	for i, n := range []int{100, 30, 10, 60} {
		time.Sleep(51 * time.Millisecond)
		columns = n
		b.Reset()
		show(float64(i+1)/5, false, "some text that is long enough for a line")
		last := b.String()[strings.LastIndex(b.String(), "\r")+1:]
		if w := uniseg.StringWidth(last); w > n || w == 0 {
			t.Errorf("%d columns: %q is %d wide", n, last, w)
		}
	}
}

func TestOtherProgress(t *testing.T) {
	if out := show(t, "plain", steps, nil); !strings.Contains(out, " 25 %, 250 B of 1 kB, 0 MB/s, 33s left, a\n") {
		t.Errorf("plain: %s", out)
	}
	if out := show(t, "bar", steps, nil); !strings.Contains(out, "0s left, 0 B of 1 kB, 0 MB/s, a") {
		t.Errorf("bar: %q", out)
	}
	if out := show(t, "none", steps, nil); out != "" {
		t.Errorf("none: %s", out)
	}
	if out := show(t, "auto", steps[:1], nil); out != "" {
		t.Errorf("auto, no terminal, nothing to report: %s", out)
	}
}
