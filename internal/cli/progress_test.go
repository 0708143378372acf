package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// show runs a command that reports the given steps and fails with err, and
// returns what it prints on standard error.
func show(t *testing.T, how string, steps []writer.Progress, err error) string {
	t.Helper()
	var b bytes.Buffer
	cmd := &cli.Command{Name: "x", Flags: []cli.Flag{ProgressFlag()}, Writer: &b, ErrWriter: &b, Action: func(_ context.Context, cmd *cli.Command) error {
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
	{Begun: true, Tensor: "a", Types: []gguf.Type{gguf.TypeQ4_K, gguf.TypeF16}, Bytes: 500, Tensors: 2, Total: 1000},
	{Tensor: "a", Tensors: 2, Done: 250, Total: 1000, Work: 0.25, Elapsed: 11 * time.Second, Remaining: 33 * time.Second},
	{Begun: true, Tensor: "b", Index: 1, Types: []gguf.Type{gguf.TypeF32}, Bytes: 500, Tensors: 2, Total: 1000},
	{Tensor: "b", Index: 1, Tensors: 2, Done: 1000, Total: 1000, Work: 1, Elapsed: 44 * time.Second},
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
			if e.Index == nil || *e.Index == 0 && (e.Tensor != "a" || len(e.Types) != 2 || e.Types[0] != "Q4_K" || e.Bytes != 500) {
				t.Errorf("%s", line)
			}
		case "progress":
			if *e.Done != 250 || *e.Work != 0.25 || *e.Elapsed != 11 || *e.Remaining != 33 {
				t.Errorf("%s", line)
			}
		}
	}
	if got, want := strings.Join(names, " "), "plan start tensor progress tensor written done"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	out := show(t, "json", steps[:2], fault.Errorf(fault.Broken, "bad"))
	if !strings.HasSuffix(out, `{"event":"error","message":"bad","exit_code":3}`+"\n") {
		t.Errorf("%s", out)
	}
}

func TestOtherProgress(t *testing.T) {
	if out := show(t, "plain", steps, nil); !strings.Contains(out, " 25 %, 250 B of 1 kB, 0 MB/s, 33s left, a\n") {
		t.Errorf("plain: %s", out)
	}
	if out := show(t, "bar", steps, nil); !strings.Contains(out, "0 MB/s, 0s left, a") {
		t.Errorf("bar: %q", out)
	}
	if out := show(t, "none", steps, nil); out != "" {
		t.Errorf("none: %s", out)
	}
	if out := show(t, "auto", steps[:1], nil); out != "" {
		t.Errorf("auto, no terminal, nothing to say: %s", out)
	}
}
