// Package cli is what the commands have in common: flags, help, manuals, completions, exit codes, progress, signals, and
// the streams that they print to. It is built on urfave/cli, and imported as tool next to it.
//
// # Flags
//
// A flag is declared once, as a Flag: a value with its names, the kind, unit, default and choices of its value, its help
// text and heading, what it does to a run (Effect), the inputs that it is for (Inputs), the cases in which it is refused
// (Refused), the flags that it goes with (With), and the option of the libraries that it sets, so that an error about the
// option names the flag (Option, Hint). A command lists declarations; Flags makes flags of urfave/cli of them, and
// Declarations returns them again. Nothing else knows flags by name:
//
//	help, manual, completion   Name, Aliases, Value, Default, Choices, Usage, Category, Hidden
//	names of files             Value: Run refuses "-" and "" for each File
//	manifest, journal          Effect.Recorded: which flags a run has to be repeated with
//	reproduce                  Effect.Reproducible: which flags a manifest may set; AsksServer needs the user's consent
//	upload                     Effect.Identifies: whether a run may upload what an interrupted one has made
//	submit                     Refused and Effect: which flags parts run without, and which make a job useless
//	flags without effect       Inputs, Refused, With: a usage error (CheckInput, CheckCase, and Run for With)
//
// Flags that several verbs have are rows of one table (Shared). flagtest.Tree fails for a flag without a property, and for
// properties that contradict each other.
//
// # Runs
//
// Main runs a command with the process's arguments and exits with a code of the table in main.go. Run does so in tests and
// for "ggtool reproduce". Results go to standard output, everything else to standard error; --quiet drops what was not
// asked for.
package cli
