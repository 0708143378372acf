package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/publish/submit"
)

// secretsFlag returns the flag of schedulers whose secrets are single environment variables.
func secretsFlag(value, usage string) tool.Flag {
	return tool.Flag{Name: "secret", Value: tool.TextList, Effect: tool.SetsBytes,
		Usage: "set the environment variable `" + value + "` " + usage + "; repeatable"}
}

func submitAWSBatchCommand() *cli.Command {
	return &cli.Command{
		Name:      "aws-batch",
		Usage:     "print a script that submits an array job of AWS Batch and one that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints a shell script that calls the AWS CLI: it registers a job definition, submits an\n" +
			"array job with a child for each part, and a job that depends on it, and prints their\n" +
			"IDs. An attempt that is killed is followed by another one, which resumes. Input and output\n" +
			"are on servers, or on a file system of EFS.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit aws-batch --parts 9 --image I -- ggconv hf://o/m s3://bkt/m"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: jobFlags([]string{"cpus", "mem"}, tool.Group("AWS Batch",
			tool.Shared("queue", "submit to the job queue `NAME`"),
			imageFlag(),
			tool.Flag{Name: "role", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "run with the role `ARN`, such as one that may read and write S3"},
			tool.Flag{Name: "execution-role", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "fetch the image and the secrets with the role `ARN`"},
			secretsFlag("NAME=ARN", "from a secret"),
			tool.Flag{Name: "efs", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "mount the file system `ID` of EFS at /work and run there"},
			tool.Flag{Name: "fargate", Effect: tool.SetsBytes,
				Usage: "run on Fargate"},
			tool.Shared("time", "time limit of an attempt, such as 4h, after which another one follows: `TIME`"),
		)...),
		Action: submitAWSBatch,
	}
}

func parseAWSBatch(cmd *cli.Command) (a submit.AWSBatch, err error) {
	a = submit.AWSBatch{Image: cmd.String("image"), Queue: cmd.String("queue"), Role: cmd.String("role"),
		ExecutionRole: cmd.String("execution-role"), Secrets: slices.Clone(cmd.StringSlice("secret")),
		FileSystem: cmd.String("efs"), Fargate: cmd.Bool("fargate"), Time: cmd.Duration("time")}
	a.Job, err = parseJob(cmd)
	return a, err
}

func submitAWSBatch(ctx context.Context, cmd *cli.Command) error {
	a, err := parseAWSBatch(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &a.Job, a.Script)
}

func submitHFJobsCommand() *cli.Command {
	return &cli.Command{
		Name:      "hf-jobs",
		Usage:     "print a script that runs a job of the hub for each part and one that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints a shell script that calls the CLI of the hub (hf jobs run): it starts a job for each\n" +
			"part, waits for all, starts those that failed again, which resume, and runs the job that\n" +
			"finishes. The machines share no disk: the output is an object, s3://BUCKET/KEY.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit hf-jobs --parts 9 --image I -- ggconv hf://o/m s3://bkt/m | sh"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: jobFlags(nil, tool.Group("Hugging Face Jobs",
			imageFlag(),
			tool.Flag{Name: "flavor", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "run on machines of this `FLAVOR`, such as cpu-upgrade"},
			tool.Shared("namespace", "run as this user or organization: `NAMESPACE`"),
			secretsFlag("NAME", "to its value where the script runs"),
			tool.Flag{Name: "volume", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "mount `SOURCE:/PATH` for inputs, such as hf://org/model:/model; repeatable"},
			tool.Shared("time", "time limit of a job, such as 4h: `TIME`"),
		)...),
		Action: submitHFJobs,
	}
}

func parseHFJobs(cmd *cli.Command) (h submit.HFJobs, err error) {
	h = submit.HFJobs{Image: cmd.String("image"), Flavor: cmd.String("flavor"), Namespace: cmd.String("namespace"),
		Secrets: slices.Clone(cmd.StringSlice("secret")), Volumes: slices.Clone(cmd.StringSlice("volume")),
		Time: cmd.Duration("time")}
	h.Job, err = parseJob(cmd)
	return h, err
}

func submitHFJobs(ctx context.Context, cmd *cli.Command) error {
	h, err := parseHFJobs(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &h.Job, h.Script)
}

func submitSkyPilotCommand() *cli.Command {
	return &cli.Command{
		Name:      "skypilot",
		Usage:     "print a task of SkyPilot with a node for each part and one that finishes",
		ArgsUsage: commandArgs,
		Description: "Prints YAML for sky jobs launch: a pipeline of a task on as many nodes as there are parts, and\n" +
			"a task that finishes. When a node is taken away the task starts again, and parts resume.\n" +
			"The nodes share no disk: the output is an object, s3://BUCKET/KEY.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool submit skypilot --parts 9 --setup CODE -- ggconv hf://o/m s3://bkt/m"},
			Result:   tool.Prints[submitResult](),
		}.Metadata(),
		Flags: jobFlags([]string{"cpus", "mem"}, tool.Group("SkyPilot",
			tool.Flag{Name: "setup", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "install the commands on each node with the shell code `TEXT`"},
			tool.Shared("image", "or run the commands of `IMAGE`, which has a shell and what else SkyPilot needs"),
			tool.Flag{Name: "infra", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "run at this `PLACE`, such as aws/us-east-1"},
			tool.Flag{Name: "spot", Effect: tool.SetsBytes,
				Usage: "run on nodes that may be taken away"},
			secretsFlag("NAME", "that sky jobs launch --secret NAME takes"),
		)...),
		Action: submitSkyPilot,
	}
}

func parseSkyPilot(cmd *cli.Command) (s submit.SkyPilot, err error) {
	s = submit.SkyPilot{Setup: cmd.String("setup"), Image: cmd.String("image"), Infra: cmd.String("infra"),
		Spot: cmd.Bool("spot"), Secrets: slices.Clone(cmd.StringSlice("secret"))}
	s.Job, err = parseJob(cmd)
	return s, err
}

func submitSkyPilot(ctx context.Context, cmd *cli.Command) error {
	s, err := parseSkyPilot(cmd)
	if err != nil {
		return err
	}
	return printJob(ctx, cmd, &s.Job, s.Manifest)
}
