package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// hostile has characters that a terminal obeys, ordinary text, and bytes that are not UTF-8.
const hostile = "a\x1b[2Jb\x07\rc\td\ne\x7f\u0085\u009b\u202e\u2066\u200f\u2028é重\U0001F600\xff\x9b"

const harmless = `a\u001b[2Jb\u0007\u000dc` + "\td\ne" + `\u007f\u0085\u009b\u202e\u2066\u200f\u2028é重` +
	"\U0001F600" + `\xff\x9b`

// TestEscape prints hostile text in pieces of any size.
func TestEscape(t *testing.T) {
	for size := 1; size <= len(hostile); size++ {
		var b bytes.Buffer
		s := &stream{to: &b}
		for at := 0; at < len(hostile); at += size {
			part := []byte(hostile[at:min(at+size, len(hostile))])
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := s.flush(); err != nil || b.String() != harmless {
			t.Fatalf("pieces of %d: %q, %v, want %q", size, b.String(), err, harmless)
		}
	}
	var b bytes.Buffer
	s := &stream{to: &b}
	n := 3 * maxPiece / len(hostile)
	if _, err := s.Write([]byte(strings.Repeat(hostile, n))); err != nil || s.flush() != nil ||
		b.String() != strings.Repeat(harmless, n) {
		t.Errorf("a long text: %v", err)
	}
	b.Reset()
	s.Write([]byte("cut \xe9\x87"))
	if s.flush(); b.String() != `cut \xe9\x87` {
		t.Errorf("%q", b.String())
	}
}

// TestEscapeJSON checks that escaping does not change the meaning of JSON.
func TestEscapeJSON(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&stream{to: &b})
	e.SetEscapeHTML(false)
	want := strings.ToValidUTF8(hostile, "�")
	if err := e.Encode(map[string]string{"x": want}); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["x"] != want {
		t.Errorf("%q, %v, want %q", got["x"], err, want)
	}
	if strings.ContainsAny(b.String(), "\u009b\u202e\x7f") {
		t.Errorf("%q", b.String())
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte(hostile), 3)
	f.Fuzz(func(t *testing.T, p []byte, at int) {
		at = min(max(at, 0), len(p))
		var b bytes.Buffer
		s := &stream{to: &b}
		s.Write(p[:at])
		s.Write(p[at:])
		s.flush()
		for _, r := range b.String() {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0 || r == 0x202E {
				t.Fatalf("%q: %q", p, b.String())
			}
		}
	})
}

// broken fails to write.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestLostOutput checks the exit codes of commands whose output cannot be written.
func TestLostOutput(t *testing.T) {
	for _, c := range []struct {
		name        string
		out, err    error // errors of writing standard output and error
		returns     error // error of the command
		code        int
		text        string
		interrupted bool // the command sees its context end
	}{
		{name: "none"},
		{name: "full", out: syscall.ENOSPC, code: 1, text: "standard output: no space left"},
		{name: "full-differs", out: syscall.ENOSPC, returns: ErrDiffers, code: 1, text: "standard output"},
		{name: "full-and-broken", out: syscall.ENOSPC, returns: fault.Errorf(fault.Broken, "bad"), code: 3,
			text: "bad"},
		{name: "pipe", out: syscall.EPIPE, code: 1, text: "standard output: broken pipe", interrupted: true},
		{name: "error-full", err: syscall.ENOSPC},
		{name: "error-pipe", err: syscall.EPIPE, code: 1, text: "standard error: broken pipe", interrupted: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			writer := func(err error) io.Writer {
				if err == nil {
					return io.Discard
				}
				return broken{err}
			}
			cmd := &cli.Command{Name: "x", Writer: writer(c.out), ErrWriter: writer(c.err),
				Action: func(ctx context.Context, cmd *cli.Command) error {
					Warn(cmd, "warned")
					fmt.Fprintln(cmd.Root().Writer, "result")
					if (ctx.Err() != nil) != c.interrupted {
						t.Errorf("context: %v", ctx.Err())
					}
					return errors.Join(c.returns, ctx.Err())
				}}
			err := Run(context.Background(), cmd, []string{"x"})
			if pipe := c.out == syscall.EPIPE || c.err == syscall.EPIPE; err != nil {
				var printed strings.Builder
				runOf(cmd).err.to = &printed
				printError(cmd, err, false)
				if (printed.String() == "") != pipe {
					t.Errorf("printed %q; want nothing if nobody reads", printed.String())
				}
			}
			if Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("exit code %d, %v, want %d with %q", Code(err), err, c.code, c.text)
			}
		})
	}
}

// TestWarn checks that a warning is one line, printed once.
func TestWarn(t *testing.T) {
	var b bytes.Buffer
	cmd := &cli.Command{Name: "x", Writer: &b, ErrWriter: &b, Action: func(_ context.Context, cmd *cli.Command) error {
		Warn(cmd, "one", "two\n{\"event\":\"done\"}")
		Warn(cmd, "one", "three")
		return nil
	}}
	if err := Run(context.Background(), cmd, []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if want := "warning: one\nwarning: two\\n{\"event\":\"done\"}\nwarning: three\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestQuiet checks the output on standard error with --quiet, and with --progress json.
func TestQuiet(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "warning: one\\ntwo\nnote: n\nlog\n"},
		{"--quiet", "warning: one\\ntwo\n"},
		{"-q --progress none", "warning: one\\ntwo\n"},
		{"--progress none", "warning: one\\ntwo\nnote: n\nlog\n"},
		{"--progress json", `{"event":"warning","message":"one\ntwo"}` + "\n" + `{"event":"note","message":"n"}` +
			"\nlog\n" + `{"event":"error","message":"bad","exit_code":1}` + "\n"},
	} {
		var out, err bytes.Buffer
		cmd := &cli.Command{Name: "x", Writer: &out, ErrWriter: &err, Flags: Flags(ProgressFlag()),
			Action: func(_ context.Context, cmd *cli.Command) error {
				Warn(cmd, "one\ntwo")
				Warn(cmd, "one\ntwo")
				Note(cmd, "n")
				fmt.Fprintln(cmd.Root().ErrWriter, "log")
				fmt.Fprintln(cmd.Root().Writer, "result")
				show, e := NewWork(cmd)
				if e != nil || (show != nil) == (strings.Contains(c.args, "q") || strings.Contains(c.args, "none")) {
					t.Errorf("%q: progress %v, %v", c.args, show != nil, e)
				}
				return errors.New("bad")
			}}
		got := Run(context.Background(), cmd, append([]string{"x"}, strings.Fields(c.args)...))
		text := strings.Replace(err.String(), `{"event":"start"}`+"\n", "", 1)
		if got == nil || text != c.want || out.String() != "result\n" {
			t.Errorf("%q: %v, %q, want %q", c.args, got, text, c.want)
		}
		printError(cmd, got, false)
		if !strings.HasSuffix(err.String(), "x: bad\n") {
			t.Errorf("%q: the error is not printed: %q", c.args, err.String())
		}
	}
	cmd := &cli.Command{Name: "x", Flags: Flags(ProgressFlag()),
		Action: func(context.Context, *cli.Command) error { return nil }}
	if err := Run(context.Background(), cmd, []string{"x", "--quiet", "--progress", "json"}); Code(err) != exitUsage {
		t.Errorf("quiet events: %v", err)
	}
}

// TestPrintError checks the text of the error that ends a command.
func TestPrintError(t *testing.T) {
	many := fmt.Sprintf("%d defects:", 30)
	for i := range 30 {
		many += fmt.Sprintf("\n\tdefect %d", i)
	}
	for _, c := range []struct {
		before  string
		err     error
		stopped bool
		want    string
	}{
		{"", errors.New("bad \x1b[31m"), false, `x: bad \u001b[31m` + "\n"},
		{"50 %", errors.New("bad"), false, "50 %\nx: bad\n"},
		{"50 %\n", errors.New("bad"), false, "50 %\nx: bad\n"},
		{"50 %", fmt.Errorf("t: %w", context.Canceled), true, "50 %\nx: interrupted; no temporary files are left\n"},
		{"", Kept(fmt.Errorf("t: %w", context.Canceled), "some is kept"), true, "x: interrupted; some is kept\n"},
		{"", Kept(errors.New("bad"), "some is kept"), true, "x: bad\n"},
		{"", errors.New(many), false, "x: " + many[:strings.Index(many, "\n\tdefect 20")] + "\n  and 10 more\n"},
		{"", errors.New("2 defects:\n\ta\n\tb"), false, "x: 2 defects:\n\ta\n\tb\n"},
		{"", errors.New("bad " + strings.Repeat("x", 1<<20) + ": want y"), false,
			"x: bad " + strings.Repeat("x", 2044) + " [1044492 bytes left out] " + strings.Repeat("x", 2040) +
				": want y\n"},
	} {
		var b bytes.Buffer
		cmd := &cli.Command{Name: "x", Writer: &b, ErrWriter: &b}
		newRun(cmd, func() {})
		fmt.Fprint(cmd.ErrWriter, c.before)
		printError(cmd, c.err, c.stopped)
		if b.String() != c.want {
			t.Errorf("%q, want %q", b.String(), c.want)
		}
	}
}
