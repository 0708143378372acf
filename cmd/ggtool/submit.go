package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/publish/submit"
)

func submitCommand() *cli.Command {
	return &cli.Command{
		Name:  "submit",
		Usage: "print jobs that run a command in parts on a cluster",
		Description: "Prints jobs for a scheduler that run ggconv, ggquant, ggtool release, ggeval perplexity,\n" +
			"compare or imatrix in parts, anywhere, at the same time or not, and again if they are killed, and\n" +
			"a job that puts the parts together when all are whole. Machines either share the folders\n" +
			"of input and output, or read and write on servers. Nothing is run here.\n" +
			"docs/clusters.md has more.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Elsewhere: []string{"slurm", "k8s", "kubernetes", "kueue", "argo", "aws", "batch", "hf",
			"skypilot", "cluster"}}.Metadata(),
		Commands: []*cli.Command{submitSlurmCommand(), submitKubernetesCommand(), submitKueueCommand(),
			submitArgoCommand(), submitAWSBatchCommand(), submitHFJobsCommand(), submitSkyPilotCommand()},
		Action: tool.NeedsVerb,
	}
}

// commandArgs is the synopsis of the arguments; flags of submit itself are before the two hyphens.
const commandArgs = "[--] COMMAND ARGUMENT..."

// jobFlags returns the flags that all schedulers have, some of those that several have, by name, and those in more.
func jobFlags(names []string, more ...tool.Flag) []cli.Flag {
	list := []tool.Flag{
		{Name: "parts", Option: "Parts", Hint: "set the number with --parts N", Value: tool.Count, Unit: "parts",
			Effect: tool.SetsBytes,
			Usage:  "cut the work into `N` parts"},
		{Name: "at-once", Value: tool.Count, Unit: "parts", Effect: tool.SetsBytes,
			Usage: "run at most `N` at the same time (0: all)"},
		{Name: "retries", Value: tool.Count, Unit: "runs", Default: uint(10), Effect: tool.SetsBytes,
			Usage: "run a part that was killed, or could not read or write, again up to `N` times"},
		{Name: "cpus", Value: tool.Count, Unit: "CPUs", Effect: tool.SetsBytes,
			Usage: "give each part `N` CPUs"},
		{Name: "mem", Value: tool.Size, Effect: tool.SetsBytes,
			Usage: "give each part `SIZE` bytes of memory (" + tool.SizeHelp + ")"},
		{Name: "grace", Value: tool.Duration, Default: 30 * time.Second, Effect: tool.SetsBytes,
			Usage: "ask a part to stop `TIME` before it is killed"},
		{Name: "name", Value: tool.Text, Effect: tool.SetsBytes,
			Usage: "call the jobs `NAME`-parts and NAME-finish"},
	}
	list = slices.DeleteFunc(list, func(f tool.Flag) bool {
		return !slices.Contains([]string{"parts", "retries", "name"}, f.Name) && !slices.Contains(names, f.Name)
	})
	return tool.Flags(append(tool.Group("Job", list...), append(more, tool.JSONFlag())...)...)
}

// parseJob reads jobFlags and the arguments.
func parseJob(cmd *cli.Command) (j submit.Job, err error) {
	j = submit.Job{Name: cmd.String("name"), Command: cmd.Args().Slice(), Grace: cmd.Duration("grace")}
	if len(j.Command) > 0 {
		if err := tool.CheckName("COMMAND", j.Command[0]); err != nil {
			return j, err
		}
		flags, _ := inParts(j.Command)
		for _, f := range flags {
			j.Flags = append(j.Flags, submit.Flag{Names: append([]string{f.Name}, f.Aliases...),
				TakesValue: f.TakesValue(), PrintsOnly: f.Effect == tool.PrintsOnly,
				Finish: f.Refused&tool.InParts != 0})
		}
	}
	for _, n := range []struct {
		name string
		to   *int
	}{{"parts", &j.Parts}, {"at-once", &j.AtOnce}, {"retries", &j.Retries}, {"cpus", &j.CPUs}} {
		if *n.to, err = tool.CountValue(cmd, n.name); err != nil {
			return j, err
		}
	}
	if cmd.IsSet("mem") {
		j.Memory, err = tool.SizeValue(cmd, "mem")
	}
	return j, err
}

// inParts returns the flags of a command that runs in parts, and a function that checks the words after its name and
// returns the paths in them. Both are nil for any other command.
func inParts(command []string) (flags []tool.Flag, check func(context.Context, []string) (runs.Paths, error)) {
	if flags, check = releaseInParts(command); check != nil {
		return flags, check
	}
	return runs.InParts(command)
}

// submitResult is the JSON output.
type submitResult struct {
	Scheduler string   `json:"scheduler"`
	Name      string   `json:"name"`
	Parts     int      `json:"parts"`
	Part      []string `json:"part"`
	Finish    []string `json:"finish"`
	Job       string   `json:"job"`
}

// printJob prints the script or manifest that text returns. The commands are parsed before as the parts will, reading no
// files, which may exist only on the machines of the cluster: a job whose commands would all end with a usage error is
// refused.
func printJob[T string | []byte](ctx context.Context, cmd *cli.Command, j *submit.Job, text func() (T, error)) error {
	if err := j.Check(); err != nil {
		return err
	}
	_, check := inParts(j.Command)
	part := slices.Clone(j.Part())
	part[slices.Index(part, "--part")+1] = fmt.Sprintf("1/%d", j.Parts) // a job takes its number from the environment
	for _, command := range [][]string{part, j.Finish()} {
		p, err := check(ctx, command[1:])
		if err != nil {
			return fault.Errorf(fault.Usage, "every job would fail: %w", err)
		}
		j.Inputs, j.Outputs = append(j.Inputs, p.Inputs...), append(j.Outputs, p.Outputs...)
	}
	job, err := text()
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		if !utf8.ValidString(string(job)) {
			return fault.Errorf(fault.Usage,
				"--json: the command is not UTF-8, which JSON requires: print the script without --json")
		}
		return tool.WriteJSON(tool.Output(ctx, cmd), submitResult{cmd.Name, j.CleanName(), j.Parts, j.Part(),
			j.Finish(), string(job)})
	}
	_, err = io.WriteString(tool.Exact(ctx, cmd), string(job))
	return err
}

func submitSlurmCommand() *cli.Command {
	return &cli.Command{
		Name:      "slurm",
		Usage:     "print a script that submits an array job and one that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints a shell script that calls sbatch twice and prints the numbers of the jobs. A\n" +
			"task that is stopped before its time is over, preempted or killed is queued again\n" +
			"and resumes. The job that finishes starts when all have ended, and names missing parts.\n\n" +
			tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit slurm --parts 16 -- ggquant in.gguf out.gguf Q4_K_M | sh"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: jobFlags([]string{"at-once", "cpus", "mem", "grace"}, tool.Group("Slurm",
			tool.Shared("time", "time limit of a part, such as 4h, after which it is queued again: `TIME`"),
			tool.Flag{Name: "partition", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "use this `PARTITION`"},
			tool.Flag{Name: "account", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "charge this `ACCOUNT`"},
			tool.Flag{Name: "sbatch", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "give sbatch another `OPTION`, such as --sbatch=--constraint=avx512; repeatable"},
		)...),
		Action: submitSlurm,
	}
}

func parseSlurm(cmd *cli.Command) (s submit.Slurm, err error) {
	s = submit.Slurm{Time: cmd.Duration("time"), Partition: cmd.String("partition"), Account: cmd.String("account"),
		Options: slices.Clone(cmd.StringSlice("sbatch"))}
	s.Job, err = parseJob(cmd)
	return s, err
}

func submitSlurm(ctx context.Context, cmd *cli.Command) error {
	s, err := parseSlurm(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &s.Job, s.Script)
}
