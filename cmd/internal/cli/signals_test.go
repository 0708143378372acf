//go:build unix

package cli

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	"ggforge/writer"
)

// stuck is a tensor that is never read to its end.
type stuck struct{}

func (stuck) NE() []int64     { return []int64{4} }
func (stuck) Type() gguf.Type { return gguf.TypeF32 }
func (stuck) Cost() int64     { return 0 }
func (stuck) Raw(*[]byte, int64, int64) ([]byte, error) {
	os.Stdout.WriteString("ready\n")
	select {}
}

// TestSignalsChild is the process of TestSignals: a command that waits for the end
// of its context, or one whose worker cannot.
func TestSignalsChild(t *testing.T) {
	how := os.Getenv("CLI_SIGNALS")
	if how == "" {
		return
	}
	os.Args = []string{"x"}
	Main(&cli.Command{Name: "x", Action: func(ctx context.Context, _ *cli.Command) error {
		if how != "waits" {
			f := &writer.File{Path: os.Getenv("CLI_OUT"),
				Tensors: []writer.Tensor{{Name: "t", Type: gguf.TypeF32, Source: stuck{}}}}
			opt := writer.Options{MakeDir: filepath.Dir(f.Path)}
			if how == "journal" {
				opt.Journal = &writer.Journal{}
			}
			_, err := writer.Write(ctx, f, opt)
			return err
		}
		os.Stdout.WriteString("ready\n")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Second):
			return nil
		}
	}})
}

// TestSignals sends signals to a command.
func TestSignals(t *testing.T) {
	const hup, intr, term = syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM
	const removed = "x: interrupted; no temporary files are left\n"
	for _, c := range []struct {
		name, how string
		ignore    string // signals that the parent process ignores, as arguments of trap
		signals   []syscall.Signal
		text      string
	}{
		{"interrupt", "waits", "", []syscall.Signal{intr}, removed},
		{"terminate", "waits", "", []syscall.Signal{term}, removed},
		{"hang-up", "waits", "", []syscall.Signal{hup}, removed},
		{"ignored-interrupt", "waits", "INT", []syscall.Signal{intr, intr, term},
			removed},
		{"ignored-hang-up", "waits", "HUP", []syscall.Signal{hup, hup, intr},
			removed},
		{"twice", "stuck", "", []syscall.Signal{intr, intr}, removed},
		{"two-kinds", "stuck", "", []syscall.Signal{hup, term}, removed},
		{"terminate-stuck", "stuck", "", []syscall.Signal{term}, removed},
		{"terminate-journal", "journal", "", []syscall.Signal{term}, "what is done is kept"},
		{"interrupt-journal", "journal", "", []syscall.Signal{intr, intr}, removed},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			// signals that are caught here are not ignored in the child unless the case ignores them
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, intr, hup, term)
			defer signal.Stop(caught)
			cmd := exec.Command(os.Args[0], "-test.run=^TestSignalsChild$")
			if c.ignore != "" {
				cmd = exec.Command("/bin/sh", "-c", `trap "" `+c.ignore+`; exec "$0" "$@"`, os.Args[0],
					"-test.run=^TestSignalsChild$")
			}
			cmd.Env = append(os.Environ(), "CLI_SIGNALS="+c.how, "CLI_OUT="+filepath.Join(dir, "made", "also", "out"))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() }).Stop()
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatal(line, err)
			}
			begin := time.Now()
			for _, s := range c.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond) // pending signals of one kind are merged
			}
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(stderr.String(), c.text) {
				t.Errorf("%v, printed %q, want exit code 130 and %q", cmd.ProcessState, stderr.String(), c.text)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("ended after %v", took)
			}
			left, err := os.ReadDir(dir)
			if kept := strings.Contains(c.text, "kept"); err != nil || (len(left) > 0) != kept {
				t.Errorf("leftover: %v %v", left, err)
			}
		})
	}
}
