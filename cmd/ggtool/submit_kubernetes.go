package main

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/publish/submit"
)

// podFlags returns the flags about pods.
func podFlags(heading string, more ...tool.Flag) []tool.Flag {
	return tool.Group(heading, slices.Concat([]tool.Flag{
		imageFlag(),
		tool.Shared("namespace", "put everything into this `NAMESPACE`"),
		{Name: "claim", Value: tool.Text, Effect: tool.SetsBytes,
			Usage: "work on the volume of the existing claim `NAME`; without a volume, input and output are on servers"},
	}, more, []tool.Flag{
		{Name: "mount", Value: tool.Text, Default: "/work", Effect: tool.SetsBytes,
			Usage: "mount the volume at `PATH` and run there"},
		{Name: "user", Value: tool.Integer, Default: 65534, Effect: tool.SetsBytes,
			Usage: "run as user and group `ID`"},
		{Name: "secret", Value: tool.Text, Effect: tool.SetsBytes,
			Usage: "set the environment variables in the secret `NAME`"},
	})...)
}

// imageFlag returns the flag of schedulers that run images.
func imageFlag() tool.Flag {
	return tool.Shared("image", "run the commands of `IMAGE`")
}

// parsePods reads podFlags.
func parsePods(cmd *cli.Command) (p submit.Pods, err error) {
	p = submit.Pods{Image: cmd.String("image"), Namespace: cmd.String("namespace"), Claim: cmd.String("claim"),
		Mount: cmd.String("mount"), User: int64(cmd.Int("user")), Secret: cmd.String("secret")}
	if p.User < 1 {
		err = fault.Errorf(fault.Usage, "--user %d: want an ID above 0: pods do not run as root", p.User)
	}
	return p, err
}

// kubernetesFlags returns the flags about Jobs.
func kubernetesFlags(more ...tool.Flag) []cli.Flag {
	return jobFlags([]string{"at-once", "cpus", "mem", "grace"}, append(more, podFlags("Kubernetes",
		tool.Flag{Name: "storage", Value: tool.Size, Effect: tool.SetsBytes,
			Usage: "or claim a new volume of `SIZE` bytes (" + tool.SizeHelp + ")"},
		tool.Flag{Name: "storage-class", Value: tool.Text, Effect: tool.SetsBytes,
			Usage: "of this `CLASS`"},
		tool.Flag{Name: "wait", Value: tool.Duration, Default: 24 * time.Hour, Effect: tool.SetsBytes,
			Usage: "the finishing job waits `TIME` for the parts"},
	)...)...)
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
		Flags:  kubernetesFlags(),
		Action: submitKubernetes,
	}
}

func parseKubernetes(cmd *cli.Command) (k submit.Kubernetes, err error) {
	k = submit.Kubernetes{StorageClass: cmd.String("storage-class"), Wait: cmd.Duration("wait"),
		Queue: cmd.String("queue")}
	if k.Pods, err = parsePods(cmd); err != nil {
		return k, err
	}
	if cmd.IsSet("storage") {
		if k.Storage, err = tool.SizeValue(cmd, "storage"); err != nil {
			return k, err
		}
	}
	k.Job, err = parseJob(cmd)
	return k, err
}

func submitKubernetes(ctx context.Context, cmd *cli.Command) error {
	k, err := parseKubernetes(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &k.Job, k.Manifest)
}

func submitKueueCommand() *cli.Command {
	return &cli.Command{
		Name:      "kueue",
		Usage:     "print the same manifest, with Jobs that wait in a queue of Kueue",
		ArgsUsage: commandArgs,
		Description: "Prints YAML for kubectl create, as ggtool submit k8s does: Jobs are suspended and have\n" +
			"the label of a queue, until Kueue admits them. It may admit the parts with fewer pods at\n" +
			"the same time than --at-once.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit kueue --queue Q --parts 9 --image I --claim C -- ggconv X Y"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags:  kubernetesFlags(tool.Shared("queue", "wait in the LocalQueue `NAME`").In("Kueue")),
		Action: submitKueue,
	}
}

func submitKueue(ctx context.Context, cmd *cli.Command) error {
	k, err := parseKubernetes(cmd)
	if err != nil {
		return err
	}
	if k.Queue == "" {
		return fault.Errorf(fault.Usage, "no queue: want --queue NAME, the LocalQueue of the namespace")
	}
	return printJob(ctx, cmd, &k.Job, k.Manifest)
}

func submitArgoCommand() *cli.Command {
	return &cli.Command{
		Name:      "argo",
		Usage:     "print a Workflow of Argo with all parts and a step that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints YAML for argo submit or kubectl create: a Workflow whose first step runs the template\n" +
			"of a part once for each number, and whose second step finishes. A part whose pod is\n" +
			"killed is run again and resumes. Argo Workflows 3.5 or later.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit argo --parts 16 --image IMAGE --claim MODELS -- ggconv X X.gguf"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: jobFlags([]string{"at-once", "cpus", "mem"}, podFlags("Argo",
			tool.Flag{Name: "service-account", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "run pods with this `ACCOUNT`, which has the rights of an executor"},
		)...),
		Action: submitArgo,
	}
}

func parseArgo(cmd *cli.Command) (a submit.Argo, err error) {
	a.ServiceAccount = cmd.String("service-account")
	if a.Pods, err = parsePods(cmd); err != nil {
		return a, err
	}
	a.Job, err = parseJob(cmd)
	return a, err
}

func submitArgo(ctx context.Context, cmd *cli.Command) error {
	a, err := parseArgo(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &a.Job, a.Manifest)
}
