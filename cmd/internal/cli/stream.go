package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"
)

// stream is standard output or standard error of a command. All that commands print goes through one, and much of it
// comes from untrusted files: names, metadata, paths. So control characters other than newline and tab, and
// characters that change the direction of text, are printed as escapes, so that the terminal does not obey them:
// \u001b, or \x9b for a byte that is not UTF-8. In JSON such characters occur only within strings, where the escape
// has the same meaning.
type stream struct {
	to   io.Writer
	fail func(error) // called when a write fails

	mu   sync.Mutex
	rest []byte // the beginning of a character
	err  error  // the first write error
	open bool   // the last line has no newline yet
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for done := 0; done < len(p); { // by pieces: a value of metadata may be most of a file
		n := min(len(p)-done, maxPiece)
		text, rest := escape(append(s.rest, p[done:done+n]...))
		s.rest = append(s.rest[:0:0], rest...)
		if err := s.write(text); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// maxPiece bounds the bytes that are escaped at once.
const maxPiece = 64 << 10

// flush writes the bytes of an incomplete character.
func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []byte
	for _, b := range s.rest {
		text = fmt.Appendf(text, `\x%02x`, b)
	}
	s.rest = nil
	if err := s.write(text); err != nil {
		return err
	}
	return s.err
}

func (s *stream) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := s.to.Write(text)
	if err != nil && s.err == nil {
		s.err = err
		if s.fail != nil {
			s.fail(err)
		}
	}
	s.open = text[len(text)-1] != '\n' && text[len(text)-1] != '\r'
	return err
}

// raw returns a writer that does not escape, for sequences that move the cursor.
func (s *stream) raw() io.Writer { return rawStream{s} }

type rawStream struct{ s *stream }

func (r rawStream) Write(p []byte) (int, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if err := r.s.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// terminal returns the file descriptor of the stream; ok is false if it is not a terminal.
func (s *stream) terminal() (fd int, ok bool) {
	f, ok := s.to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// escape returns p with its control characters escaped, and the bytes at its end
// that may be the beginning of a character.
func escape(p []byte) (text, rest []byte) {
	text = make([]byte, 0, len(p))
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRune(p):
			return text, p
		case r == utf8.RuneError && n == 1:
			text = fmt.Appendf(text, `\x%02x`, p[0])
		case r == '\n' || r == '\t':
			text = append(text, p[0])
		case unicode.Is(obeyed, r):
			text = fmt.Appendf(text, `\u%04x`, r)
		default:
			text = append(text, p[:n]...)
		}
		p = p[n:]
	}
	return text, nil
}

// obeyed are the characters that a terminal obeys: controls, separators of lines,
// marks and embeddings of direction.
var obeyed = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x00, Hi: 0x1F, Stride: 1}, {Lo: 0x7F, Hi: 0x9F, Stride: 1}, {Lo: 0x61C, Hi: 0x61C, Stride: 1},
	{Lo: 0x200E, Hi: 0x200F, Stride: 1}, {Lo: 0x2028, Hi: 0x202E, Stride: 1}, {Lo: 0x2066, Hi: 0x2069, Stride: 1},
}, LatinOffset: 2}

// line returns text on one line that is not too long.
func line(text string) string {
	return cut(strings.ReplaceAll(strings.TrimSpace(text), "\n", `\n`))
}

// maxLine bounds a line of an error or a warning in bytes. Most lines have about a hundred; a value from a file that
// a line quotes may have millions.
const maxLine = 4096

// cut returns a line, without its middle if it is too long.
func cut(line string) string {
	over := len(line) - maxLine
	if over <= 0 {
		return line
	}
	head := strings.ToValidUTF8(line[:maxLine/2], "")
	tail := strings.ToValidUTF8(line[len(line)-maxLine/2:], "")
	return fmt.Sprintf("%s [%d bytes left out] %s", head, len(line)-len(head)-len(tail), tail)
}

// run is the state of a command while it runs.
type run struct {
	out, err *stream
	warned   map[string]bool
	quiet    bool     // print only errors, warnings and requested results
	parses   bool     // the command line is only parsed: OnlyParse
	files    []string // written files, for the last event
	helpAll  bool     // help lists all flags
	// fetched has the paths of copies of files on servers, by address.
	fetched map[string]string
}

const runKey = "run"

func runOf(cmd *cli.Command) *run { return cmd.Root().Metadata[runKey].(*run) }

// newRun replaces the command's output by streams. stop is called when their reader has gone.
func newRun(cmd *cli.Command, stop func()) *run {
	if cmd.Writer == nil {
		cmd.Writer = os.Stdout
	}
	if cmd.ErrWriter == nil {
		cmd.ErrWriter = os.Stderr
	}
	closed := func(err error) {
		if errors.Is(err, syscall.EPIPE) {
			stop()
		}
	}
	r := &run{out: &stream{to: cmd.Writer, fail: closed}, err: &stream{to: cmd.ErrWriter, fail: closed},
		warned: map[string]bool{}}
	cmd.Writer, cmd.ErrWriter = r.out, r.err
	if cmd.Metadata == nil {
		cmd.Metadata = map[string]any{}
	}
	cmd.Metadata[runKey] = r
	return r
}

// settle returns the error of a run that ends with err: results that could not be printed are an output error, unless
// err is set already.
func (r *run) settle(err error) error {
	if e := r.out.flush(); e != nil && (err == nil || errors.Is(err, ErrDiffers) || errors.Is(e, syscall.EPIPE)) {
		return lost("standard output", e)
	}
	if e := r.err.flush(); errors.Is(e, syscall.EPIPE) && Code(err) == exitInterrupted {
		return lost("standard error", e)
	}
	return err
}

// goneError is the error of a run whose output has lost its reader. It is not printed.
type goneError struct{ error }

func (g *goneError) Unwrap() error { return g.error }

// lost returns the error of a stream that could not be written.
func lost(stream string, err error) error {
	text := fmt.Errorf("%s: %w", stream, err)
	if errors.Is(err, syscall.EPIPE) {
		return &goneError{text}
	}
	return text
}

// Output returns standard output for text that may be long: writing it fails when
// ctx ends.
func Output(ctx context.Context, cmd *cli.Command) io.Writer { return &until{ctx, cmd.Root().Writer} }

type until struct {
	ctx context.Context
	w   io.Writer
}

func (u *until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// Exact returns standard output for text that other programs read, byte for byte. To a terminal it writes as Output
// does.
func Exact(ctx context.Context, cmd *cli.Command) io.Writer {
	out := runOf(cmd).out
	if _, terminal := out.terminal(); terminal {
		return Output(ctx, cmd)
	}
	return &until{ctx, out.raw()}
}

// Warn prints warnings on standard error, each once, with --progress json as events.
func Warn(cmd *cli.Command, warnings ...string) {
	r := runOf(cmd)
	for _, w := range warnings {
		if r.warned[w] {
			continue
		}
		r.warned[w] = true
		r.say(cmd, "warning", w)
	}
}

// Warning returns Warn for a command, as a callback for libraries.
func Warning(cmd *cli.Command) func(...string) {
	return func(warnings ...string) { Warn(cmd, warnings...) }
}

// InfoWriter returns standard output for reports about a run; with --quiet it discards them.
func InfoWriter(cmd *cli.Command) io.Writer {
	if runOf(cmd).quiet {
		return io.Discard
	}
	return cmd.Root().Writer
}

// Note prints a note, which is not a warning, on standard error.
func Note(cmd *cli.Command, text string) {
	if r := runOf(cmd); !r.quiet {
		r.say(cmd, "note", text)
	}
}

// say prints a line about a run, as an event with --progress json.
func (r *run) say(cmd *cli.Command, what, text string) {
	if cmd.String("progress") == progressJSON {
		r.emit(event{Event: what, Message: cut(text)})
		return
	}
	fmt.Fprintf(r.err, "%s: %s\n", what, line(text))
}
