package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// Flag declares a flag. The package comment lists its uses.
type Flag struct {
	Name    string
	Aliases []string // further names; a name of one character is a letter: o for -o
	Usage   string   // help text, with the name of the value in backquotes
	Value   Value
	Unit    string // what a number counts: "tokens"
	Default any    // of the Go type for Value; nil for the zero value
	// Choices returns the accepted names, in upper or lower case; nil for any value. The code that reads the flag
	// decides: it may accept more.
	Choices func() []string
	// Synonyms maps values to the value that they mean, which is recorded instead.
	Synonyms map[string]string
	Category string // heading in the help, "" for Flags
	Effect   Effect
	// Inputs are the kinds of input that the flag is for, 0 for all. CheckInput refuses it for others.
	Inputs Inputs
	// Refused are the cases in which a usage error refuses the flag.
	Refused Case
	// With are flags of which at least one has to be set, too; nil for none.
	With []string
	// Option is the option of the libraries that the flag sets, as named by fault.Permits. Hint is the end of an
	// error about it, which names the flag.
	Option, Hint string
	// Cut splits the value into the name of a file and the text after it; nil if the value is only a name.
	Cut func(value string) (path, rest string)
	// Remote: the value may also be the address of a file on a server, which is fetched before the command begins. The code
	// that reads the flag gets the path of the copy, see Fetched.
	Remote   bool
	Required bool
	Hidden   bool
}

// Value is the kind of value that a flag has.
type Value int

const (
	Switch   Value = iota // bool: no value
	Text                  // string
	TextList              // []string: the flag is repeatable
	File                  // string: a file or a folder
	FileList              // []string
	Size                  // string: a number of bytes, with or without a unit, for SizeValue
	Count                 // uint
	Integer               // int
	Number                // float64
	Duration              // time.Duration
)

// Inputs is a set of kinds of input.
type Inputs uint8

const (
	Checkpoints Inputs = 1 << iota
	GGUFFiles          // on this machine
	RemoteFiles        // GGUF files on a server
	OldFiles           // GGML, GGMF and GGJT, the formats before GGUF
)

// String names the kinds for errors: "checkpoints and files on a server".
func (in Inputs) String() string {
	var names []string
	for i, name := range []string{"checkpoints", "GGUF files", "files on a server", "files before GGUF"} {
		if in&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Case is a set of kinds of run.
type Case uint8

const (
	InParts   Case = 1 << iota // the run makes one part of several (--part)
	OfObjects                  // the outputs are uploaded to object storage
	OfNothing                  // a flag of effect PrintsOnly is set: nothing is written
)

// IsSet reports whether the user has set the flag.
func (f *Flag) IsSet(cmd *cli.Command) bool { return cmd.IsSet(f.Name) }

// TakesValue reports whether the flag has a value.
func (f *Flag) TakesValue() bool { return f.Value != Switch }

// NamesFile reports whether the value is the name of a file or folder.
func (f *Flag) NamesFile() bool { return f.Value == File || f.Value == FileList }

// SplitFile returns the name of a file in a value of the flag, and the text after it.
func (f *Flag) SplitFile(value string) (path, rest string) {
	if f.Cut == nil {
		return value, ""
	}
	return f.Cut(value)
}

// Values returns the flag's values as text, nil for a switch.
func (f *Flag) Values(cmd *cli.Command) []string {
	switch f.Value {
	case Switch:
		return nil
	case TextList, FileList:
		return cmd.StringSlice(f.Name)
	}
	return []string{fmt.Sprint(cmd.Value(f.Name))}
}

// As returns the flag with another effect.
func (f Flag) As(e Effect) Flag {
	f.Effect = e
	return f
}

// In returns the flag under a heading of the help.
func (f Flag) In(category string) Flag {
	f.Category = category
	return f
}

// OrRemote returns the flag with files on servers permitted.
func (f Flag) OrRemote() Flag {
	f.Remote = true
	return f
}

// For returns the flag limited to some kinds of input.
func (f Flag) For(in Inputs) Flag {
	f.Inputs = in
	return f
}

// Group returns flags under a heading of the help. Flags that already have a heading keep it.
func Group(category string, flags ...Flag) []Flag {
	for i := range flags {
		if flags[i].Category == "" {
			flags[i].Category = category
		}
	}
	return flags
}

// Flags returns the flags of a command.
func Flags(list ...Flag) []cli.Flag {
	var flags []cli.Flag
	for _, f := range list {
		flags = append(flags, f.build())
	}
	return flags
}

// build returns the flag as a flag of urfave/cli.
func (f Flag) build() cli.Flag {
	switch f.Value {
	case Switch:
		return built(&f, new(cli.BoolFlag))
	case Text, File, Size:
		return built(&f, new(cli.StringFlag))
	case TextList, FileList:
		return built(&f, new(cli.StringSliceFlag))
	case Count:
		return built(&f, new(cli.UintFlag))
	case Integer:
		return built(&f, new(cli.IntFlag))
	case Number:
		return built(&f, new(cli.FloatFlag))
	case Duration:
		return built(&f, new(cli.DurationFlag))
	}
	panic(fmt.Sprintf("--%s: no kind of value %d", f.Name, f.Value))
}

func built[T any, C any, V cli.ValueCreator[T, C]](f *Flag, b *cli.FlagBase[T, C, V]) cli.Flag {
	b.Name, b.Aliases, b.Usage, b.Category, b.Required, b.Hidden = f.Name, f.Aliases, f.Usage, f.Category, f.Required,
		f.Hidden
	if f.Default != nil {
		b.Value = f.Default.(T)
	}
	return &declared[T, C, V]{b, f}
}

// declared is a flag of urfave/cli with its declaration.
type declared[T any, C any, V cli.ValueCreator[T, C]] struct {
	*cli.FlagBase[T, C, V]
	flag *Flag
}

func (d *declared[T, C, V]) declaration() *Flag { return d.flag }

// Set sets the value, which may be a name of Choices in any case, or one of Synonyms.
func (d *declared[T, C, V]) Set(name, value string) error {
	if d.flag.Choices != nil {
		value = folded(value, d.flag.Choices())
	}
	if same, ok := d.flag.Synonyms[value]; ok {
		value = same
	}
	return d.FlagBase.Set(name, value)
}

// Declaration returns the declaration of a flag, nil for a flag of urfave/cli: --help and --version.
func Declaration(f cli.Flag) *Flag {
	if d, ok := f.(interface{ declaration() *Flag }); ok {
		return d.declaration()
	}
	return nil
}

// Declarations returns the declarations of a command's flags.
func Declarations(cmd *cli.Command) (list []*Flag) {
	for _, f := range cmd.Flags {
		if d := Declaration(f); d != nil {
			list = append(list, d)
		}
	}
	return list
}

// FirstSet returns the first flag of a command that is set and for which wanted returns true, nil for none.
func FirstSet(cmd *cli.Command, wanted func(f *Flag) bool) *Flag {
	for _, f := range Declarations(cmd) {
		if f.IsSet(cmd) && wanted(f) {
			return f
		}
	}
	return nil
}

// CheckInput refuses the first flag that is set and not for inputs of the kind in. path names the input in the error.
func CheckInput(cmd *cli.Command, in Inputs, path string) error {
	f := FirstSet(cmd, func(f *Flag) bool { return f.Inputs != 0 && f.Inputs&in == 0 })
	if f == nil {
		return nil
	}
	what := map[Inputs]string{Checkpoints: "a checkpoint", GGUFFiles: "a file", RemoteFiles: "a file",
		OldFiles: "a file before GGUF, whose weights stay as they are"}[in]
	return fault.Errorf(fault.Usage, "--%s is for %v; %s is %s", f.Name, f.Inputs, path, what)
}

// CheckCase refuses the first flag that is set and refused for a kind of run.
func CheckCase(cmd *cli.Command, c Case) error {
	f := FirstSet(cmd, func(f *Flag) bool { return f.Refused&c != 0 })
	if f == nil {
		return nil
	}
	switch c {
	case InParts:
		return fault.Errorf(fault.Usage, "--%s goes with --finish: a part is not the whole output", f.Name)
	case OfObjects:
		return fault.Errorf(fault.Usage, "--%s is for outputs that are files; these become objects of a server", f.Name)
	}
	p := printsOnly(cmd)
	return fault.Errorf(fault.Usage, "--%s is about written outputs, and with --%s nothing is written", f.Name, p.Name)
}

// printsOnly returns the first flag that is set with which the run writes nothing, nil for none.
func printsOnly(cmd *cli.Command) *Flag {
	return FirstSet(cmd, func(f *Flag) bool {
		return f.Effect == PrintsOnly && (f.Value != Switch || cmd.Bool(f.Name))
	})
}

// checkFlags refuses flags that lack a flag they need (With), and invalid names of files.
func checkFlags(cmd *cli.Command) error {
	if err := checkNames(cmd); err != nil {
		return err
	}
	for _, f := range Declarations(cmd) {
		if f.IsSet(cmd) && f.With != nil && !slices.ContainsFunc(f.With, cmd.IsSet) {
			one := ""
			if len(f.With) > 1 {
				one = "one of "
			}
			return fault.Errorf(fault.Usage, "--%s goes with %s--%s", f.Name, one, strings.Join(f.With, ", --"))
		}
	}
	if cmd.IsSet("part") {
		if err := CheckCase(cmd, InParts); err != nil {
			return err
		}
	}
	if printsOnly(cmd) != nil {
		return CheckCase(cmd, OfNothing)
	}
	return nil
}
