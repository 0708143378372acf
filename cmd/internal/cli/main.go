package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	_ "ggforge/cmd/internal/heap"
	"ggforge/fault"
	"ggforge/internal/text/nearest"
	"ggforge/quants"
	"ggforge/writer"
)

// Version is set when the commands are built (see the Makefile).
var Version = "devel"

// Exit codes.
const (
	exitIO          = 1
	exitUsage       = 2
	exitBroken      = 3
	exitUnsupported = 4
	exitRefused     = 5
	exitDiffers     = 6
	exitIncomplete  = 7
	exitInterrupted = 130
)

// ErrDiffers ends a command with the exit code for differences; nothing is printed for it.
var ErrDiffers = errors.New("differences found")

// exits maps the kinds of error to exit codes; the first that fits counts.
var exits = []struct {
	kind error
	code int
}{
	{context.Canceled, exitInterrupted},
	{ErrDiffers, exitDiffers},
	{fault.Usage, exitUsage},
	{fault.Refused, exitRefused},
	{fault.Unsupported, exitUnsupported},
	{fault.Broken, exitBroken},
	{fault.Incomplete, exitIncomplete},
}

// ExitHelp is the end of every command's help.
const ExitHelp = `Exit codes: 0 done, 1 input or output failed, 2 usage, 3 broken input,
4 not supported, 5 refused, 6 differences found, 7 parts are missing,
130 interrupted.`

// Main runs the command with the process's arguments and exits.
func Main(cmd *cli.Command) {
	ctx, stop := context.WithCancelCause(context.Background())
	onSignals(cmd.Name, stop)
	err := Run(ctx, cmd, os.Args)
	if err == nil {
		err = os.Stdout.Close() // some file systems fail only now
	}
	ending <- struct{}{}
	if err != nil && !errors.Is(err, ErrDiffers) {
		printError(cmd, err, ctx.Err() != nil)
	}
	os.Exit(Code(err))
}

// printError prints the error that ends the command, on lines of its own. The
// terminal may have printed ^C when the command was stopped.
func printError(cmd *cli.Command, err error, stopped bool) {
	if errors.As(err, new(*goneError)) {
		return
	}
	s := runOf(cmd).err
	if _, terminal := s.terminal(); s.open || stopped && terminal {
		fmt.Fprintln(s)
	}
	text := strings.TrimSpace(err.Error())
	if stopped && errors.Is(err, context.Canceled) {
		text = "interrupted; " + removedText
		if writer.Resumable(err) {
			text = "interrupted; " + keptText
		}
		if k := new(keptError); errors.As(err, &k) {
			text = "interrupted; " + k.text
		}
	}
	if writer.Resumable(err) && !errors.Is(err, context.Canceled) && !fault.Has(err) {
		text += "\n  " + keptText
	}
	fmt.Fprintf(s, "%s: %s\n", cmd.Name, shortened(text))
}

// keptError is an error of Kept.
type keptError struct {
	error
	text string
}

func (k *keptError) Unwrap() error { return k.error }

// Kept returns err for a command that keeps its work when it is interrupted: text replaces "no temporary files are
// left".
func Kept(err error, text string) error { return &keptError{err, text} }

// shortened returns a text with at most fault.MaxListed lines after the first, one for each defect, and with long
// lines cut.
func shortened(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	if rest == "" {
		return cut(head)
	}
	lines := strings.Split(rest, "\n")
	if n := len(lines) - fault.MaxListed; n > 1 {
		lines = append(lines[:fault.MaxListed], fmt.Sprintf("  and %d more", n))
	}
	for i, line := range lines {
		lines[i] = cut(line)
	}
	return cut(head) + "\n" + strings.Join(lines, "\n")
}

// Run runs the command with the given arguments; the first one is its name.
func Run(ctx context.Context, cmd *cli.Command, args []string) error {
	cmd.Version = fmt.Sprintf("%s (%s %s/%s, kernels: %s)", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		quants.Kernels())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRun(cmd, stop)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--"+helpAll {
			args, r.helpAll = slices.Clone(args), true
			args[i] = "--help"
			break
		}
	}
	if s := service(cmd, args); s != nil {
		cmd = s
	}
	cmd.Flags = append(cmd.Flags, quietFlag().build())
	prepare(cmd)
	return r.settle(cmd.Run(ctx, args))
}

// CheckArguments reports whether a command accepts arguments: do parses them as the command's action would, and does
// nothing else. No file or server is read: MayRead returns false.
func CheckArguments(ctx context.Context, cmd *cli.Command, args []string, do func(cmd *cli.Command) error) error {
	ran := false
	cmd.Writer, cmd.ErrWriter = io.Discard, io.Discard
	cmd.Action = func(_ context.Context, cmd *cli.Command) error {
		ran = true
		return do(cmd)
	}
	err := Run(OnlyParse(ctx), cmd, append([]string{cmd.Name}, args...))
	if err == nil && !ran {
		return fault.Errorf(fault.Usage, "%s %s: would only print something", cmd.Name, strings.Join(args, " "))
	}
	return err
}

// OnlyParse returns a context with which Run reads no file or server that arguments name before it calls the action:
// MayRead returns false.
func OnlyParse(ctx context.Context) context.Context { return context.WithValue(ctx, parsesKey{}, true) }

// parsesKey is the key of contexts of OnlyParse.
type parsesKey struct{}

// MayRead reports whether the code that parses flags may read files and servers named by them.
func MayRead(cmd *cli.Command) bool { return !runOf(cmd).parses }

// prepare sets the properties that all commands have in common, for a command and its verbs.
func prepare(cmd *cli.Command) {
	cmd.DisableSliceFlagSeparator, cmd.HideHelpCommand = true, true
	cmd.ExitErrHandler = func(context.Context, *cli.Command, error) {}
	cmd.OnUsageError = func(_ context.Context, cmd *cli.Command, err error, _ bool) error {
		return fault.Errorf(fault.Usage, "%s (see %s --help)", usageText(cmd, err), cmd.FullName())
	}
	if action := cmd.Action; action != nil {
		cmd.Action = func(ctx context.Context, cmd *cli.Command) error {
			if ctx.Value(parsesKey{}) != nil {
				runOf(cmd).parses = true
			}
			err := runOf(cmd).quieten(cmd)
			if err == nil {
				err = checkFlags(cmd)
			}
			remove := func() error { return nil }
			if err == nil && MayRead(cmd) {
				remove, err = fetch(ctx, cmd)
			}
			if err == nil {
				err = action(ctx, cmd)
			}
			if e := remove(); err == nil {
				err = e
			}
			err = runOf(cmd).settle(hint(cmd, suggest(cmd, err)))
			end(cmd, err)
			return err
		}
	}
	for _, sub := range cmd.Commands {
		prepare(sub)
	}
}

// suggest adds to a usage error the nearest choice to a value of a flag, unless the error has a suggestion.
func suggest(cmd *cli.Command, err error) error {
	if !errors.Is(err, fault.Usage) || strings.Contains(err.Error(), nearest.Asks) ||
		strings.Contains(err.Error(), "the nearest") {
		return err
	}
	if text := meant(cmd); text != "" {
		return fmt.Errorf("%w%s", err, text)
	}
	return err
}

// Code returns the exit code for an error.
func Code(err error) int {
	if err == nil {
		return 0
	}
	for _, e := range exits {
		if errors.Is(err, e.kind) {
			return e.code
		}
	}
	return exitIO
}

// Args returns the positional arguments; there must be at least lo and at most hi.
func Args(cmd *cli.Command, lo, hi int) ([]string, error) {
	args := cmd.Args().Slice()
	switch {
	case len(args) < lo:
		return nil, fault.Errorf(fault.Usage, "want %s; found %d of at least %d arguments (see %s --help)",
			cmd.ArgsUsage, len(args), lo, cmd.FullName())
	case len(args) > hi:
		return nil, fault.Errorf(fault.Usage, "surplus argument %q: want %s (see %s --help)", args[hi], cmd.ArgsUsage,
			cmd.FullName())
	}
	for _, arg := range args {
		if err := CheckName("argument", arg); err != nil {
			return nil, fmt.Errorf("%w; the arguments are %s", err, cmd.ArgsUsage)
		}
	}
	return args, nil
}

// ArgsOut returns the positional arguments of a verb that makes one output of at least lo and at most hi inputs: the
// output is the last argument, or the value of --output.
func ArgsOut(cmd *cli.Command, lo, hi int) (in []string, out string, err error) {
	if out, err = FileValue(cmd, "output"); err != nil {
		return nil, "", err
	}
	if out == "" {
		if in, err = Args(cmd, lo+1, hi+1); err != nil {
			return nil, "", err
		}
		last := len(in) - 1
		return in[:last], in[last], nil
	}
	if args := cmd.Args().Slice(); len(args) == hi+1 {
		return nil, "", fault.Errorf(fault.Usage, "output named twice: %q and --output %q", args[hi], out)
	}
	in, err = Args(cmd, lo, hi)
	return in, out, err
}
