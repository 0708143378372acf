package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// work runs a command that reports steps of work, some time apart.
func work(t *testing.T, how string, pause time.Duration, steps ...Work) (string, error) {
	t.Helper()
	var b bytes.Buffer
	cmd := &cli.Command{Name: "x", Flags: Flags(ProgressFlag()), Writer: &b, ErrWriter: &b,
		Action: func(_ context.Context, cmd *cli.Command) error {
			show, err := NewWork(cmd)
			if err != nil {
				return err
			}
			for _, s := range steps {
				if show != nil {
					show(s)
				}
				time.Sleep(pause)
			}
			return nil
		}}
	err := Run(context.Background(), cmd, []string{"x", "--progress", how})
	return b.String(), err
}

func TestWork(t *testing.T) {
	steps := []Work{{Done: 0.25}, {Done: 0.5, Note: "[3]18.9"}, {Done: 0.50001}, {Done: 1, Note: "[9]18.5"}}
	out, err := work(t, "json", 60*time.Millisecond, steps...)
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) != 6 || lines[0] != `{"event":"start"}` ||
		!strings.Contains(lines[1], `"work":0.25,`) || !strings.Contains(lines[2], `"work":0.50001,`) ||
		!strings.Contains(lines[3], `"work":1,`) || !strings.HasSuffix(lines[3], `"remaining":0,"note":"[9]18.5"}`) ||
		lines[4] != `{"event":"done"}` {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _ := work(t, "plain", 0, steps...); out != "" {
		t.Errorf("printed for a run that takes no time: %s", out)
	}
	var b bytes.Buffer
	plainWork(&b)(Work{Done: 0.5, Note: "a\nb"}, time.Minute, time.Minute)
	plainWork(&b)(Work{Done: 1}, 2*time.Minute, 0)
	if b.String() != ` 50 %, 1m0s left, a\nb`+"\n" {
		t.Errorf("%q", b.String())
	}
	if out, _ := work(t, "bar", 60*time.Millisecond, steps...); !strings.Contains(out, "left, [9]18.5") {
		t.Errorf("%q", out)
	}
	if out, err := work(t, "none", 0, steps...); out != "" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := work(t, "loud", 0); Code(err) != Code(fault.Errorf(fault.Usage, "")) {
		t.Error(err)
	}
}
