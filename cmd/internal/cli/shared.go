package cli

// sharedFlags has a row for each flag that several verbs have, and for each one-letter flag: the same setting has the
// same name in all verbs. Usage and Category are the verb's. Aliases are the letter and names that only some verbs
// know: those of llama.cpp's tools, and former names. flagtest.Tree holds every verb to the table.
var sharedFlags = []Flag{
	// Flags about outputs.
	{Name: "output", Aliases: []string{"o", "outfile"}, Value: File, Effect: NamesOutput},
	{Name: "max-size", Aliases: []string{"split-max-size", "max-shard-size"}, Value: Size, Effect: SetsBytes},
	{Name: "max-tensors", Aliases: []string{"split-max-tensors"}, Value: Count, Unit: "tensors", Effect: SetsBytes},
	{Name: "no-tensor-first-split", Effect: SetsBytes},
	{Name: "force", Effect: RunsOnly, Option: "Force", Hint: "use --force to go ahead"},
	{Name: "json", Effect: RunsOnly},
	{Name: "dry-run", Effect: PrintsOnly},
	{Name: "schema", Effect: PrintsOnly},
	{Name: "strict", Effect: Refuses},
	{Name: "html", Value: File, Effect: NamesOutput, Refused: InParts},
	{Name: "manifest", Value: File, Effect: NamesOutput, Refused: InParts | OfObjects | OfNothing},
	{Name: "name-template", Value: Text, Effect: NamesOutput},
	{Name: "format", Value: Text, Default: "gguf", Effect: SetsBytes},
	// Flags about publishing.
	{Name: "private", Effect: RunsOnly},
	{Name: "pull-request", Effect: RunsOnly},
	{Name: "message", Value: Text, Effect: RunsOnly},
	{Name: "key", Value: File, Effect: ReadsFile},
	{Name: "certificate", Value: File, Effect: ReadsFile},
	// Flags about texts.
	{Name: "file", Aliases: []string{"f"}, Value: File, Effect: ReadsFile},
	{Name: "ctx-size", Aliases: []string{"c", "chunk-size", "context", "context-length"}, Value: Count,
		Unit: "tokens", Default: uint(512), Effect: SetsBytes},
	{Name: "chunks", Value: Count, Unit: "chunks", Effect: SetsBytes},
	{Name: "escape", Aliases: []string{"e"}, Effect: SetsBytes},
	{Name: "no-escape", Effect: SetsBytes},
	{Name: "parse-special", Effect: SetsBytes},
	{Name: "process-output", Effect: SetsBytes},
	{Name: "chats", Effect: SetsBytes},
	{Name: "template-arguments", Value: Text, Effect: SetsBytes},
	{Name: "calibrate", Value: File, Effect: ReadsFile},
	// Flags about models.
	{Name: "imatrix", Value: File, Effect: ReadsFile},
	{Name: "allow-requantize", Effect: SetsBytes, Option: "AllowRequantize",
		Hint: "use --allow-requantize to permit that"},
	{Name: "alone", Effect: SetsBytes},
	{Name: "cache", Value: File, Effect: KeepsState},
	{Name: "model-name", Value: Text, Effect: SetsBytes},
	{Name: "via", Value: Text, Default: "auto", Effect: SetsBytes, Choices: Names("auto", "f32", "f16", "bf16")},
	{Name: "base-model", Value: Text, Effect: SetsBytes},
	{Name: "source", Value: File, Effect: ReadsFile},
	{Name: "quantized-by", Value: Text, Effect: SetsBytes},
	{Name: "repository", Value: Text, Effect: SetsBytes},
	// Flags about parts.
	{Name: "part", Value: Text, Effect: RunsOnly},
	{Name: "part-files", Aliases: []string{"parts"}, Value: File, Effect: KeepsState, With: []string{"part", "finish"}},
	{Name: "finish", Effect: RunsOnly},
	// Flags about schedulers.
	{Name: "image", Value: Text, Effect: SetsBytes},
	{Name: "queue", Value: Text, Effect: SetsBytes},
	{Name: "namespace", Value: Text, Effect: SetsBytes},
	{Name: "time", Value: Duration, Effect: SetsBytes},
	// Flags about runs.
	{Name: "threads", Aliases: []string{"t"}, Value: Count, Unit: "workers", Effect: RunsOnly},
	{Name: "progress", Value: Text, Default: "auto", Effect: RunsOnly,
		Choices: Names("auto", "bar", "plain", progressJSON, "none")},
	{Name: "quiet", Aliases: []string{"q"}, Effect: RunsOnly},
	{Name: "help", Aliases: []string{"h"}, Effect: PrintsOnly},
	{Name: "version", Aliases: []string{"v"}, Effect: PrintsOnly},
}

// SharedFlags returns the rows of all shared flags.
func SharedFlags() []Flag { return sharedFlags }

// Shared returns a flag of the table with the verb's help text, in which `FILE` or the like stands for the value.
// also are further aliases of the verb; the letter is always one.
func Shared(name, usage string, also ...string) Flag {
	for _, f := range sharedFlags {
		if f.Name == name {
			if len(f.Aliases) > 0 && len(f.Aliases[0]) == 1 {
				also = append([]string{f.Aliases[0]}, also...)
			}
			f.Usage, f.Aliases = usage, also
			return f
		}
	}
	panic("no shared flag --" + name)
}
