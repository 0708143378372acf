package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/publish/card"
	"ggforge/publish/push"
)

func pushCommand() *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "publish a folder on the Hugging Face hub, or as objects of S3",
		ArgsUsage: "DIR TO",
		Description: "TO is hf://ORG/NAME, hf://ORG/NAME@BRANCH or s3://BUCKET/PREFIX. The folder must be\n" +
			"what its SHA256SUMS and manifest.json have; hidden files, temporary files and journals\n" +
			"are left out, links are refused. A repository that is not there is created. What the\n" +
			"server has is not sent again; all files appear in one commit, after which the hub's list\n" +
			"is compared with the folder. Without a change there is no commit. After an interruption\n" +
			"the same command sends only what the server does not have.\n\n" +
			"The token is that of HF_TOKEN, or of the file that hf auth login writes; HF_ENDPOINT is\n" +
			"the hub. docs/publishing.md has more.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"upload"},
			Examples: []string{
				"ggtool push --dry-run out hf://org/Model-GGUF",
				"ggtool push --private out hf://org/Model-GGUF",
				"ggtool push out s3://bucket/models/Model-GGUF",
			},
			Result: tool.Prints[push.Result](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Shared("dry-run", "print what would be sent; change nothing on the server"),
			tool.Shared("private", "create the repository as a private one; refuse one that is public"),
			tool.Shared("pull-request", "open a pull request instead of changing the branch"),
			tool.Shared("message", "the commit's message is `TEXT`"),
			tool.Flag{Name: "uploads", Value: tool.Count, Unit: "parts", Default: uint(4), Effect: tool.RunsOnly,
				Category: tool.CategoryRun, Usage: "send `N` parts at once"},
			tool.Shared("force", "replace objects of S3 that have another content").In(tool.CategoryOutput),
			tool.JSONFlag(), tool.ThreadsFlag(), tool.ProgressFlag(),
		),
		Action: pushFolder,
	}
}

// pushRequest has the flags and arguments.
type pushRequest struct {
	Dir, To      string
	DryRun, JSON bool
	Push         push.Options
}

func parsePush(cmd *cli.Command) (r pushRequest, err error) {
	args, err := tool.Args(cmd, 2, 2)
	if err != nil {
		return r, err
	}
	r = pushRequest{Dir: args[0], To: args[1], DryRun: cmd.Bool("dry-run"), JSON: cmd.Bool("json")}
	if r.Push, err = pushOptions(cmd); err != nil {
		return r, err
	}
	if r.Push.Parallel, err = tool.CountValue(cmd, "uploads"); err != nil {
		return r, err
	}
	if r.Push.Parallel == 0 {
		return r, fault.Errorf(fault.Usage, "--uploads 0: want at least 1")
	}
	r.Push.Force = cmd.Bool("force")
	return r, nil
}

// pushOptions returns the settings that push and release share.
func pushOptions(cmd *cli.Command) (push.Options, error) {
	remote := tool.Remote()
	opt := push.Options{Private: cmd.Bool("private"), PullRequest: cmd.Bool("pull-request"),
		Message: cmd.String("message"), Workers: tool.Workers(cmd),
		Endpoint: remote.Endpoint, S3Endpoint: remote.S3Endpoint, S3Region: remote.S3Region,
		Warn: func(text string) { tool.Warning(cmd)(text) }, Note: func(text string) { tool.Note(cmd, text) },
	}
	var err error
	if opt.Progress, err = pushProgress(cmd); err != nil || !tool.MayRead(cmd) {
		return opt, err
	}
	opt.Token, err = tool.HubToken()
	return opt, err
}

// pushProgress returns the callback that --progress asks for, nil for none.
func pushProgress(cmd *cli.Command) (func(push.Progress), error) {
	if shown, err := tool.NewProgress(cmd); shown == nil || err != nil {
		return nil, err
	}
	part, start, ended := "", time.Now(), false
	var show func(tool.Work)
	return func(p push.Progress) {
		if p.Part != part {
			part, start, ended = p.Part, time.Now(), false
			show, _ = tool.NewWork(cmd) // the time left is that of the part
		}
		if ended {
			return
		}
		ended = p.Done >= p.Total
		rate := float64(p.Done) / 1e6 / max(time.Since(start).Seconds(), 1e-3)
		show(tool.Work{Done: float64(p.Done) / float64(p.Total),
			Note: fmt.Sprintf("%s: %s of %s, %.3g MB/s", part, tool.Bytes(p.Done), tool.Bytes(p.Total), rate)})
	}, nil
}

func pushFolder(ctx context.Context, cmd *cli.Command) error {
	r, err := parsePush(cmd)
	if err != nil {
		return err
	}
	p, err := push.Prepare(r.Dir, r.To, r.Push)
	if err != nil {
		return err
	}
	w := tool.InfoWriter(cmd)
	run := p.Run
	if r.DryRun {
		w, run = tool.Output(ctx, cmd), p.Predict
	}
	result, err := run(ctx)
	if err != nil {
		return keptPush(err)
	}
	if r.DryRun && card.HubModel(r.To) != "" {
		paths := slices.Clone(result.Others)
		for _, f := range result.Files {
			paths = append(paths, f.Name)
		}
		warnOfNames(cmd, paths)
	}
	if r.JSON {
		return tool.WriteJSON(tool.Output(ctx, cmd), result)
	}
	return printPush(w, result, r.DryRun)
}

// keptPush adds to an error of a push that it can be resumed.
func keptPush(err error) error {
	return tool.Kept(err, "what the server has stays: run the same command again to resume")
}

// printPush prints the result of a push.
func printPush(w io.Writer, r *push.Result, dry bool) error {
	counts, changed := map[push.State]int{}, 0
	for _, f := range r.Files {
		counts[f.State]++
		if f.State != push.Unchanged {
			changed++
			fmt.Fprintf(w, "%-8s  %12d  %s\n", f.State, f.Bytes, f.Name)
		}
	}
	for _, name := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", name)
	}
	where := r.To
	if r.PullRequest != "" {
		where = r.PullRequest
	} else if r.Page != "" {
		where = r.Page
	}
	text := fmt.Sprintf("%s: %d files, %d unchanged", where, len(r.Files), counts[push.Unchanged])
	if n := counts[push.Stored]; n > 0 {
		text += fmt.Sprintf(", %d stored on the server already", n)
	}
	switch {
	case dry:
		text += fmt.Sprintf(", %d to send, at most %s", counts[push.ToSend], tool.Bytes(r.Sent))
		if r.Created {
			text += "; the repository would be created"
		}
	case !r.Changed:
		text += ": nothing to publish"
	default:
		text += fmt.Sprintf(", %d sent (%s); %.2f s", counts[push.Sent], tool.Bytes(r.Sent), r.Seconds)
		if r.Commit != "" {
			text += fmt.Sprintf("; commit %s/commit/%s", r.Page, r.Commit)
		}
	}
	if n := len(r.Others); n > 0 {
		text += fmt.Sprintf("; other files there: %d", n)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
