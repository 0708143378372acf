// Package submit writes the jobs that run ggconv, ggquant, ggeval or ggtool release in parts on a
// cluster. It submits nothing itself.
//
//	ggquant IN OUT TYPE           --part auto/N --resume   N times, at once or not, on any machines
//	                     then     --finish                 once, when all parts are done
//
//	Slurm        script      sbatch of an array, and of a job that depends on it
//	Kubernetes   manifest    an Indexed Job, a Job that finishes, a claim of a volume; with a queue for Kueue
//	Argo         manifest    a Workflow with a template for parts and one that finishes
//	AWSBatch     script      aws batch: a job definition, an array job, and a job that depends on it
//	HFJobs       script      hf jobs run for each part, then for the job that finishes
//	SkyPilot     manifest    a pipeline of a task on several nodes and one that finishes
//
// A part that is stopped or killed is run again and resumes; exit codes that a retry would not change (2 to 5: usage,
// broken input, not supported, refused) end it.
package submit

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/part"
)

// Job holds the settings that the schedulers have in common.
type Job struct {
	// Name of the jobs; it is reduced to at most 40 lower-case letters, digits and hyphens. "" for the name of the
	// program.
	Name string
	// Command is the program, by its name or path on the machines of the cluster, and its arguments.
	Command []string
	// Flags describes the flags that Command may have. Others are passed on, and taken to have no value.
	Flags []Flag
	// Parts is the number of parts, at least 1.
	Parts int
	// AtOnce is the largest number of parts that run at the same time; 0 for no limit.
	AtOnce int
	// Retries is the largest number of times that a part is run again after it was killed or had a read or write
	// error.
	Retries int
	// CPUs and Memory (bytes) are the resources of each part; 0 for the cluster's default.
	CPUs   int
	Memory int64
	// Grace is the time between the signal to stop and the kill. Stopping takes a part about a second.
	Grace time.Duration
	// Inputs and Outputs are the files and folders that the command reads and writes, as it names them. Schedulers
	// whose machines share no disk need them: inputs must be on servers, outputs objects, s3://BUCKET/KEY.
	Inputs, Outputs []string
}

// Flag is a flag of a command.
type Flag struct {
	Names      []string // without hyphens
	TakesValue bool
	PrintsOnly bool // the command writes nothing with it, so that there are no parts
	Finish     bool // it is about the whole output: parts run without it
}

// programs are the programs that run in parts.
var programs = map[string]program{
	"ggconv":  {resume: []string{"--resume"}},
	"ggquant": {resume: []string{"--resume"}},
	"ggeval":  {verbs: []string{"perplexity", "compare", "imatrix"}},
	"ggtool":  {verbs: []string{"release"}},
}

type program struct {
	verbs  []string // the first argument is one of these; none for a program without verbs
	resume []string // flags with which a part resumes
}

// words returns the number of words of a command line before its flags.
func (p program) words() int { return 1 + min(1, len(p.verbs)) }

// program returns the program of the command, which has at least one word.
func (j *Job) program() (p program, name string, ok bool) {
	name = path.Base(j.Command[0])
	p, ok = programs[name]
	return p, name, ok
}

// ours are the flags that this package adds to the commands of parts and finish.
var ours = []string{"part", "finish", "resume"}

// never are flags of every command with which it writes no file; Flag.PrintsOnly marks others.
var never = []string{"help", "help-all", "h", "version", "v"}

// flag returns the flag in a word of the command, nil if it is not in Flags, and the number of words that it takes
// with its value.
func (j *Job) flag(word string) (f *Flag, words int) {
	if !strings.HasPrefix(word, "-") {
		return nil, 1
	}
	name := flagName(word)
	for i := range j.Flags {
		if f := &j.Flags[i]; slices.Contains(f.Names, name) {
			if f.TakesValue && !strings.Contains(word, "=") {
				return f, 2
			}
			return f, 1
		}
	}
	return nil, 1
}

// Check refuses a job that no scheduler can run. Scripts and manifests are made of checked jobs only.
func (j *Job) Check() error {
	if len(j.Command) == 0 {
		return fault.Errorf(fault.Usage, "no command: want one such as ggquant IN OUT TYPE")
	}
	p, name, ok := j.program()
	switch {
	case !ok:
		return fault.Errorf(fault.Usage, "%q does not run in parts: want ggconv, ggquant, ggeval or ggtool release", name)
	case p.verbs != nil && (len(j.Command) < 2 || !slices.Contains(p.verbs, j.Command[1])):
		return fault.Errorf(fault.Usage, "%s runs in parts with one of %v as its first argument", name, p.verbs)
	case len(j.Command) <= p.words():
		return fault.Errorf(fault.Usage, "%s has no arguments: want the command as for one machine", name)
	case j.Parts < 1 || j.Parts > part.Most:
		return fault.Permits("Parts", fault.Errorf(fault.Usage, "%d parts: want 1 to %d", j.Parts, part.Most))
	case j.AtOnce < 0 || j.Retries < 0 || j.CPUs < 0 || j.Memory < 0 || j.Grace < 0:
		return fault.Errorf(fault.Usage,
			"a limit is below 0: %d parts at once, %d retries, %d CPUs, %d bytes of memory, a grace of %v", j.AtOnce,
			j.Retries, j.CPUs, j.Memory, j.Grace)
	}
	if err := noNUL(j.Command...); err != nil {
		return err
	}
	args := j.Command[p.words():]
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		f, words := j.flag(arg)
		switch name := flagName(arg); {
		case slices.Contains(ours, name):
			return fault.Errorf(fault.Usage,
				"%s: parts, --resume and --finish are added here; want the command without them", arg)
		case slices.Contains(never, name) || f != nil && f.PrintsOnly:
			return fault.Errorf(fault.Usage, "%s: the command would write nothing", arg)
		}
		i += words - 1
	}
	return nil
}

// onServers refuses a job that reads or writes files of a machine, where machines share no disk. Inputs may be below the
// folders in mounted. way names what else the user can do.
func (j *Job) onServers(way string, mounted ...string) error {
	if len(j.Outputs) == 0 {
		return fault.Errorf(fault.Usage, "the machines share no disk, and no output is known: %s", way)
	}
	for _, out := range j.Outputs {
		if !bucket.Is(out) {
			return fault.Errorf(fault.Usage, "output %s: the machines share no disk: want s3://BUCKET/KEY; %s", out, way)
		}
	}
	for _, in := range j.Inputs {
		below := func(dir string) bool { return in == dir || strings.HasPrefix(in, strings.TrimRight(dir, "/")+"/") }
		if !checkpoint.IsRemote(in) && !slices.ContainsFunc(mounted, below) {
			return fault.Errorf(fault.Usage,
				"input %s: the machines share no disk: want hf://ORG/NAME, s3://BUCKET/KEY or https://; %s", in, way)
		}
	}
	return nil
}

// isText refuses strings that are not UTF-8, for schedulers that take no others.
func isText(scheduler string, words ...string) error {
	for _, s := range words {
		if !utf8.ValidString(s) {
			return fault.Errorf(fault.Usage, "%q: want UTF-8; %s takes no other text", s, scheduler)
		}
	}
	return nil
}

// isVariable reports whether a name is one of an environment variable.
func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.Trim(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// nameOnly returns a wrong name of a variable for an error: what follows = may be a secret.
func nameOnly(s string) string {
	name, _, _ := strings.Cut(s, "=")
	return name
}

// flagName returns the name of the flag in a word that begins with a hyphen.
func flagName(word string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name
}

// noNUL refuses strings that cannot be an argument of a program.
func noNUL(words ...string) error {
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			return fault.Errorf(fault.Usage, "%q: a NUL cannot be in an argument", w)
		}
	}
	return nil
}

// CleanName returns the name that begins the names of the jobs.
func (j *Job) CleanName() string {
	if name := clean(j.Name); name != "" || len(j.Command) == 0 {
		return name
	}
	return clean(path.Base(j.Command[0]))
}

// maxName leaves room in the 63 characters of a DNS label for what Kubernetes and this package add:
// "-finish" or "-parts-" and an index, a hyphen and five characters for a pod.
const maxName = 40

// clean returns a name with only characters that both schedulers accept: each run of others becomes one hyphen.
func clean(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name = strings.Join(words, "-")
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// Part returns the command of each part, which takes its number from the environment. Flags about the whole output are
// left out.
func (j *Job) Part() []string {
	p, _, _ := j.program()
	command := j.with(append([]string{"--part", "auto/" + strconv.Itoa(j.Parts)}, p.resume...)...)
	part := command[:p.words():p.words()]
	for rest := command[p.words():]; len(rest) > 0; {
		if rest[0] == "--" {
			return append(part, rest...)
		}
		f, words := j.flag(rest[0])
		words = min(words, len(rest))
		if f == nil || !f.Finish {
			part = append(part, rest[:words]...)
		}
		rest = rest[words:]
	}
	return part
}

// Finish returns the command that runs when all parts are done.
func (j *Job) Finish() []string { return j.with("--finish") }

// with returns the command with more flags before its own: the command may end in -- and arguments.
func (j *Job) with(flags ...string) []string {
	p, _, _ := j.program()
	return slices.Insert(slices.Clone(j.Command), p.words(), flags...)
}

// inUnit returns bytes as a whole number of the largest unit in which the user may have given them, so that 4G stays
// 4G: thousands are the names of units of 1000, from 1000^4 down, binary those of 1024. "" if no unit divides them.
func inUnit(bytes int64, thousands, binary [4]string) string {
	for i := range thousands {
		by1000, by1024 := int64(math.Pow10(3*(4-i))), int64(1)<<(10*(4-i))
		switch {
		case bytes%by1024 == 0:
			return fmt.Sprint(bytes/by1024, binary[i])
		case bytes%by1000 == 0:
			return fmt.Sprint(bytes/by1000, thousands[i])
		}
	}
	return ""
}

// units returns a time in units of length, rounded up.
func units(d, length time.Duration) int64 { return int64((d + length - 1) / length) }
