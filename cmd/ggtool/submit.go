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
		Description: "Prints jobs for a scheduler that run ggconv, ggquant, ggeval perplexity, compare or\n" +
			"imatrix in parts, anywhere, at the same time or not, and again if they are killed, and\n" +
			"a job that puts the parts together when all are whole. The machines of the cluster share the folders\n" +
			"of input and output. Nothing is run here. docs/clusters.md has more.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Elsewhere: []string{"slurm", "k8s", "kubernetes"}}.Metadata(),
		Commands: []*cli.Command{submitSlurmCommand(), submitKubernetesCommand()},
		Action:   tool.NeedsVerb,
	}
}

// commandArgs is the synopsis of the arguments; flags of submit itself are before the two hyphens.
const commandArgs = "[--] COMMAND ARGUMENT..."

// jobFlags returns the flags that both schedulers have, and those in more.
func jobFlags(more ...tool.Flag) []tool.Flag {
	return append(tool.Group("Job",
		tool.Flag{Name: "parts", Option: "Parts", Hint: "set the number with --parts N", Value: tool.Count,
			Unit:   "parts",
			Effect: tool.SetsBytes,
			Usage:  "cut the work into `N` parts"},
		tool.Flag{Name: "at-once", Value: tool.Count, Unit: "parts", Effect: tool.SetsBytes,
			Usage: "run at most `N` at the same time (0: all)"},
		tool.Flag{Name: "retries", Value: tool.Count, Unit: "runs", Default: uint(10), Effect: tool.SetsBytes,
			Usage: "run a part that was killed, or could not read or write, again up to `N` times"},
		tool.Flag{Name: "cpus", Value: tool.Count, Unit: "CPUs", Effect: tool.SetsBytes,
			Usage: "give each part `N` CPUs"},
		tool.Flag{Name: "mem", Value: tool.Size, Effect: tool.SetsBytes,
			Usage: "give each part `SIZE` bytes of memory (" + tool.SizeHelp + ")"},
		tool.Flag{Name: "grace", Value: tool.Duration, Default: 30 * time.Second, Effect: tool.SetsBytes,
			Usage: "ask a part to stop `TIME` before it is killed"},
		tool.Flag{Name: "name", Value: tool.Text, Effect: tool.SetsBytes,
			Usage: "call the jobs `NAME`-parts and NAME-finish"},
	), append(more, tool.JSONFlag())...)
}

// parseJob reads jobFlags and the arguments.
func parseJob(cmd *cli.Command) (j submit.Job, err error) {
	j = submit.Job{Name: cmd.String("name"), Command: cmd.Args().Slice(), Grace: cmd.Duration("grace")}
	if len(j.Command) > 0 {
		if err := tool.CheckName("COMMAND", j.Command[0]); err != nil {
			return j, err
		}
		flags, _ := runs.InParts(j.Command)
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

// submitResult is the JSON output.
type submitResult struct {
	Scheduler string   `json:"scheduler"`
	Name      string   `json:"name"`
	Parts     int      `json:"parts"`
	Part      []string `json:"part"`
	Finish    []string `json:"finish"`
	Job       string   `json:"job"`
}

// printJob prints the script or manifest for the scheduler.
func printJob(ctx context.Context, cmd *cli.Command, j *submit.Job, text string, asJSON bool) error {
	if err := checkCommands(ctx, j); err != nil {
		return err
	}
	if asJSON {
		if !utf8.ValidString(text) {
			return fault.Errorf(fault.Usage,
				"--json: the command is not UTF-8, which JSON requires: print the script without --json")
		}
		return tool.WriteJSON(tool.Output(ctx, cmd), submitResult{cmd.Name, j.CleanName(), j.Parts, j.Part(),
			j.Finish(), text})
	}
	_, err := io.WriteString(tool.Exact(ctx, cmd), text)
	return err
}

// checkCommands refuses a job whose commands would all end with a usage error: it parses them as the parts will, but
// reads no files, which may exist only on the machines of the cluster.
func checkCommands(ctx context.Context, j *submit.Job) error {
	_, check := runs.InParts(j.Command)
	part := slices.Clone(j.Part())
	part[slices.Index(part, "--part")+1] = fmt.Sprintf("1/%d", j.Parts) // a job takes its number from the environment
	for _, command := range [][]string{part, j.Finish()} {
		if err := check(ctx, command[1:]); err != nil {
			return fault.Errorf(fault.Usage, "every job would fail: %w", err)
		}
	}
	return nil
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
		Flags: tool.Flags(jobFlags(tool.Group("Slurm",
			tool.Flag{Name: "time", Value: tool.Duration, Effect: tool.SetsBytes,
				Usage: "time limit of a part, such as 4h, after which it is queued again: `TIME`"},
			tool.Flag{Name: "partition", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "use this `PARTITION`"},
			tool.Flag{Name: "account", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "charge this `ACCOUNT`"},
			tool.Flag{Name: "sbatch", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "give sbatch another `OPTION`, such as --sbatch=--constraint=avx512; repeatable"},
		)...)...),
		Action: submitSlurm,
	}
}

// slurmRequest has the flags and arguments.
type slurmRequest struct {
	Slurm submit.Slurm
	JSON  bool
}

func parseSlurm(cmd *cli.Command) (r slurmRequest, err error) {
	r = slurmRequest{JSON: cmd.Bool("json"), Slurm: submit.Slurm{
		Time: cmd.Duration("time"), Partition: cmd.String("partition"), Account: cmd.String("account"),
		Options: slices.Clone(cmd.StringSlice("sbatch")),
	}}
	r.Slurm.Job, err = parseJob(cmd)
	return r, err
}

func submitSlurm(ctx context.Context, cmd *cli.Command) error {
	r, err := parseSlurm(cmd)
	if err != nil {
		return err
	}
	script, err := r.Slurm.Script()
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &r.Slurm.Job, script, r.JSON)
}

func submitKubernetesCommand() *cli.Command {
	return &cli.Command{
		Name:      "k8s",
		Usage:     "print a manifest with an Indexed Job and one that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints YAML for kubectl create: a claim of a volume that all nodes can write, a Job with an\n" +
			"index for each part, and a Job whose pod is made again until all parts are whole. A\n" +
			"part whose pod is evicted or killed is run again and resumes. Pods run as nobody, on a\n" +
			"root folder that they cannot write. Kubernetes 1.33 or later.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit k8s --parts 16 --image IMAGE --claim MODELS -- ggconv X X.gguf"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: tool.Flags(jobFlags(tool.Group("Kubernetes",
			tool.Flag{Name: "image", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "run the commands of `IMAGE`"},
			tool.Flag{Name: "namespace", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "put everything into this `NAMESPACE`"},
			tool.Flag{Name: "claim", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "work on the volume of the existing claim `NAME`"},
			tool.Flag{Name: "storage", Value: tool.Size, Effect: tool.SetsBytes,
				Usage: "or claim a new volume of `SIZE` bytes (" + tool.SizeHelp + ")"},
			tool.Flag{Name: "storage-class", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "of this `CLASS`"},
			tool.Flag{Name: "mount", Value: tool.Text, Default: "/work", Effect: tool.SetsBytes,
				Usage: "mount the volume at `PATH` and run there"},
			tool.Flag{Name: "user", Value: tool.Integer, Default: 65534, Effect: tool.SetsBytes,
				Usage: "run as user and group `ID`"},
			tool.Flag{Name: "secret", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "set the environment variables in the secret `NAME`"},
			tool.Flag{Name: "wait", Value: tool.Duration, Default: 24 * time.Hour, Effect: tool.SetsBytes,
				Usage: "the finishing job waits `TIME` for the parts"},
		)...)...),
		Action: submitKubernetes,
	}
}

// kubernetesRequest has the flags and arguments.
type kubernetesRequest struct {
	Kubernetes submit.Kubernetes
	JSON       bool
}

func parseKubernetes(cmd *cli.Command) (r kubernetesRequest, err error) {
	r = kubernetesRequest{JSON: cmd.Bool("json"), Kubernetes: submit.Kubernetes{
		Image: cmd.String("image"), Namespace: cmd.String("namespace"), Claim: cmd.String("claim"),
		StorageClass: cmd.String("storage-class"),
		Mount:        cmd.String("mount"), User: int64(cmd.Int("user")), Secret: cmd.String("secret"),
		Wait: cmd.Duration("wait"),
	}}
	if r.Kubernetes.User < 1 {
		return r, fault.Errorf(fault.Usage, "--user %d: want an ID above 0: pods do not run as root", r.Kubernetes.User)
	}
	if cmd.IsSet("storage") {
		if r.Kubernetes.Storage, err = tool.SizeValue(cmd, "storage"); err != nil {
			return r, err
		}
	}
	r.Kubernetes.Job, err = parseJob(cmd)
	return r, err
}

func submitKubernetes(ctx context.Context, cmd *cli.Command) error {
	r, err := parseKubernetes(cmd)
	if err != nil {
		return err
	}
	manifest, err := r.Kubernetes.Manifest()
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &r.Kubernetes.Job, string(manifest), r.JSON)
}
