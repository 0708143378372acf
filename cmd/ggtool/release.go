package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/internal/io/part"
	"ggforge/publish/card"
	"ggforge/publish/naming"
	"ggforge/publish/push"
	"ggforge/publish/release"
)

func releaseCommand() *cli.Command {
	return &cli.Command{
		Name:      "release",
		Usage:     "make all files of a published model from one plan",
		ArgsUsage: "PLAN.yaml, or --source SOURCE --output DIR --type TYPE...",
		Description: "Writes quantized models, all from one read of the source, their shards, the\n" +
			"importance matrix, the vision or audio encoder, Modelfiles, pages about the models,\n" +
			"measurements (quality.json), the model card, SHA256SUMS, manifest.json, and on request\n" +
			"a provenance statement and a signature.\n" +
			"docs/publishing.md describes PLAN.yaml, and --schema prints its JSON schema. Paths\n" +
			"in it are relative to its folder.\n\n" +
			"Files that an earlier run has made from the same inputs with the same options are\n" +
			"not made again: a second run does nothing, and the run after a killed one resumes.\n" +
			"The state is in DIR/.ggtool-release, which is not to be published.\n\n" +
			"--push publishes the folder afterwards, as ggtool push does.\n\n" +
			"Several processes can share the models: each makes its --part, then one makes all other\n" +
			"files with --finish, and pushes.\n\n" +
			"TYPE may be followed by keys of an output of a plan: Q4_K_M,size=4G or\n" +
			"Q4_K_M,like=Q4_0,name=Q4_0_best.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"source output type max-size calibrate imatrix effort mmproj evaluate " +
					"base-model pages provenance key push dry-run force json"),
			Elsewhere: []string{"publish"},
			Examples: []string{
				"ggtool release --dry-run docs/examples/gollama.yaml",
				"ggtool release docs/examples/gollama.yaml",
				"ggtool release --source hf://org/Model -o out --type Q4_K_M --type Q6_K",
			},
			Result: tool.Prints[releaseResult](),
		}.Metadata(),
		Flags: tool.Flags(slices.Concat(planFlags(), tool.Group(tool.CategoryOutput,
			tool.Shared("dry-run", "print the files to make, their sizes, and an estimate of the time; write nothing"),
			tool.Shared("schema", "print the JSON schema of plans"),
			tool.Shared("cache", "keep downloaded weights of a remote source in `DIR`"),
			tool.Flag{Name: "keep", Effect: tool.RunsOnly,
				Usage: "keep files of earlier runs that the plan no longer has; they are not in the card, the sums " +
					"and the manifest"},
			tool.ForceFlag(), tool.JSONFlag(), tool.ThreadsFlag(), tool.ProgressFlag(),
		), tool.Group("Parts",
			tool.Shared("part", "make only share `K/N` of the models and encoders, for --finish; "+part.AutoHelp+
				". The same command resumes"),
			tool.Shared("part-files", "parts are in folders in `DIR`, instead of in the output's folder for state"),
			tool.Shared("finish", "take what all parts have made, and make the rest"),
		), tool.Group("Publishing",
			tool.Flag{Name: "push", Value: tool.Text, Effect: tool.NamesOutput, Refused: tool.InParts,
				Usage: "push the folder to `TO` when it is whole: hf://ORG/NAME[@BRANCH] or s3://BUCKET/PREFIX"},
			withPush(tool.Shared("private", "create the repository as a private one; refuse one that is public")),
			withPush(tool.Shared("pull-request", "open a pull request instead of changing the branch")),
			withPush(tool.Shared("message", "the commit's message is `TEXT`")),
		))...),
		Action: makeRelease,
	}
}

// withPush returns a flag that goes with --push.
func withPush(f tool.Flag) tool.Flag {
	f.With, f.Refused = []string{"push"}, tool.InParts
	return f
}

// withKey returns a flag that goes with --key.
func withKey(f tool.Flag) tool.Flag {
	f.With = []string{"key"}
	return f
}

// planFlags returns the flags that replace a plan.
func planFlags() []tool.Flag {
	return tool.Group("Instead of a plan",
		tool.Shared("source", "the model is `SOURCE`: a checkpoint directory, a GGUF file, hf://ORG/NAME[@REVISION], or a "+
			"folder or file of objects, s3://BUCKET/KEY"),
		tool.Shared("output", "write into `DIR`; also with a plan, whose output it replaces"),
		tool.Flag{Name: "type", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "write a model of `TYPE`; repeatable"},
		tool.Flag{Name: "layout", Value: tool.Text, Choices: tool.Names("flat", "folders"), Effect: tool.SetsBytes,
			Usage: "`HOW` files are laid out: flat, or folders, one for each type"},
		tool.Shared("max-size", "write shards of at most `SIZE` bytes of tensors ("+tool.SizeHelp+")",
			"split-max-size"),
		tool.Shared("via", "take the weights of a checkpoint as if converted to `TYPE` first: auto, f32, f16 or bf16"),
		tool.Shared("name-template", "name files `NAME` (default: "+naming.DefaultTemplate+"), as ggquant does"),
		tool.Shared("model-name", "call the model of a checkpoint `NAME`"),
		tool.Shared("calibrate", "make the importance matrix from the text in `FILE`"),
		tool.Shared("imatrix", "use the importance matrix in `FILE`"),
		runs.EffortFlag("what --calibrate does: matrix, high or best (`EFFORT`), as for ggquant"),
		tool.Shared("ctx-size", "cut texts into chunks of `N` tokens"),
		tool.Shared("chunks", "calibrate with `N` chunks, as ggquant takes them (0: all)"),
		tool.Shared("process-output", "collect importance for the output matrix, too"),
		tool.Flag{Name: "mmproj", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "write the vision or audio encoder in `TYPE`: f32, f16, bf16 or q8_0; repeatable"},
		tool.Flag{Name: "evaluate", Value: tool.File, Effect: tool.ReadsFile,
			Usage: "measure all models over the text in `FILE`"},
		tool.Flag{Name: "evaluate-chunks", With: []string{"evaluate"}, Value: tool.Count, Unit: "chunks",
			Effect: tool.SetsBytes,
			Usage:  "use only its first `N` chunks (0: all)"},
		tool.Shared("base-model", "the hub's model `ORG/NAME` that was quantized, for the card"),
		tool.Shared("quantized-by", "the card names `NAME` as the one who quantized it"),
		tool.Shared("repository", "the card's commands name the hub's repository `ORG/NAME` of the files; --push sets it, too"),
		tool.Flag{Name: "template", Value: tool.File, Effect: tool.ReadsFile,
			Usage: "use the card's template in `FILE`"},
		tool.Flag{Name: "pages", Effect: tool.SetsBytes,
			Usage: "write an HTML page about each model, as ggtool inspect --html does"},
		tool.Flag{Name: "modelfile", Effect: tool.SetsBytes,
			Usage: "write a Modelfile for Ollama about each model, as ggtool modelfile does"},
		tool.Flag{Name: "provenance", Effect: tool.SetsBytes,
			Usage: "write provenance.json, a SLSA provenance statement, and with --key its signed form"},
		keyFlag(), withKey(certificateFlag()),
		tool.Flag{Name: "no-card", Effect: tool.SetsBytes,
			Usage: "write no card"},
	)
}

// releaseRequest has the flags and arguments.
type releaseRequest struct {
	Plan         *release.Plan
	DryRun, JSON bool
	Schema       bool
	Make         release.Options
	To           string // where to push the folder; "" for nowhere
	Push         push.Options
}

func parseRelease(cmd *cli.Command) (r releaseRequest, err error) {
	r = releaseRequest{DryRun: cmd.Bool("dry-run"), JSON: cmd.Bool("json"), Schema: cmd.Bool("schema")}
	r.Make = release.Options{
		Workers: tool.Workers(cmd), Force: cmd.Bool("force"), Keep: cmd.Bool("keep"),
		Program: runs.Program(),
		Remote:  tool.Remote(),
		Warn:    tool.Warning(cmd), Progress: tool.Parts(cmd), Note: func(text string) { tool.Note(cmd, text) },
		Page: pageOf, Index: indexOf,
	}
	if r.Make.Remote.Cache, err = tool.FileValue(cmd, "cache"); err != nil {
		return r, err
	}
	if r.Make.Write, err = tool.NewProgress(cmd); err != nil {
		return r, err
	}
	args, err := tool.Args(cmd, 0, 1)
	if err != nil || r.Schema {
		return r, err
	}
	if err := parseReleasePart(cmd, &r.Make); err != nil {
		return r, err
	}
	if r.To = cmd.String("push"); r.To != "" && tool.MayRead(cmd) {
		if r.Push, err = pushOptions(cmd); err != nil {
			return r, err
		}
		r.Push.Force = r.Make.Force
		r.Make.Repository = card.HubModel(r.To)
		if err := push.Check(r.To, r.Push); err != nil && (!r.DryRun || errors.Is(err, fault.Usage)) {
			return r, err
		}
	}
	if len(args) == 0 {
		r.Plan, err = planOf(cmd)
		return r, err
	}
	for _, f := range planFlags() {
		if name := f.Name; name != "output" && cmd.IsSet(name) {
			return r, fault.Errorf(fault.Usage, "--%s is for releases without a plan: set it in %s", name, args[0])
		}
	}
	if !tool.MayRead(cmd) {
		r.Plan = new(release.Plan)
	} else if r.Plan, err = release.Read(args[0]); err != nil {
		return r, err
	}
	out, err := tool.FileValue(cmd, "output")
	if out != "" {
		r.Plan.Output = out
	}
	return r, err
}

// parseReleasePart reads the flags about parts.
func parseReleasePart(cmd *cli.Command, opt *release.Options) (err error) {
	opt.Finish = cmd.Bool("finish")
	if opt.PartFiles, err = tool.FileValue(cmd, "part-files"); err != nil || !cmd.IsSet("part") {
		return err
	}
	p, err := part.Parse(cmd.String("part"), os.Getenv)
	if err != nil {
		return fmt.Errorf("--part: %w", err)
	}
	if opt.Finish {
		return fault.Errorf(fault.Usage, "--part and --finish: want one of them")
	}
	opt.Part, opt.Parts = p.K, p.N
	return tool.CheckCase(cmd, tool.InParts)
}

// releaseInParts returns the flags of ggtool release, and a function that checks the words after ggtool, as
// runs.InParts does for other commands. Both are nil for any other command.
func releaseInParts(command []string) (flags []tool.Flag, check func(context.Context, []string) (runs.Paths, error)) {
	if len(command) < 2 || path.Base(command[0]) != "ggtool" || command[1] != "release" {
		return nil, nil
	}
	for _, f := range tool.Declarations(releaseCommand()) {
		flags = append(flags, *f)
	}
	return flags, func(ctx context.Context, args []string) (p runs.Paths, err error) {
		err = tool.CheckArguments(ctx, releaseCommand(), args[1:], func(cmd *cli.Command) error {
			r, err := parseRelease(cmd)
			if err != nil {
				return err
			}
			p.Inputs = cmd.Args().Slice() // the plan
			p.Outputs = []string{cmp.Or(r.Plan.Output, "the folder of the plan")}
			return nil
		})
		return p, err
	}
}

// planOf returns the plan that the flags describe.
func planOf(cmd *cli.Command) (*release.Plan, error) {
	for _, need := range []string{"source", "output", "type"} {
		if !cmd.IsSet(need) {
			return nil, fault.Errorf(fault.Usage,
				"want PLAN.yaml, or --source, --output and --type; there is no --%s (see %s --help)", need,
				cmd.FullName())
		}
	}
	plan := map[string]any{}
	section := func(name string) map[string]any {
		m, _ := plan[name].(map[string]any)
		if m == nil {
			m = map[string]any{}
			plan[name] = m
		}
		return m
	}
	text := func(to map[string]any, key, flag string) {
		if cmd.IsSet(flag) {
			to[key] = cmd.String(flag)
		}
	}
	count := func(to map[string]any, key, flag string) {
		if cmd.IsSet(flag) {
			to[key] = cmd.Uint(flag)
		}
	}
	for key, flag := range map[string]string{"source": "source", "output": "output", "layout": "layout",
		"split": "max-size", "via": "via", "model_name": "model-name", "name_template": "name-template"} {
		text(plan, key, flag)
	}
	var outputs []any
	for _, s := range cmd.StringSlice("type") {
		parts := strings.Split(s, ",")
		if text := runs.PublishedTypeHint(parts[0]); text != "" {
			return nil, fault.Errorf(fault.Usage, "--type: %q is no type of ggquant: %s", parts[0], text)
		}
		one := map[string]any{"type": parts[0]}
		for _, p := range parts[1:] {
			key, value, ok := strings.Cut(p, "=")
			if !ok {
				return nil, fault.Errorf(fault.Usage,
					"--type %q: want TYPE or TYPE,KEY=VALUE,..., such as Q4_K_M,size=4G", s)
			}
			one[key] = value
		}
		if types, ok := one["types"].(string); ok {
			one["types"] = strings.ReplaceAll(types, "+", ",")
		}
		outputs = append(outputs, one)
	}
	plan["outputs"] = outputs
	if list := cmd.StringSlice("mmproj"); len(list) > 0 {
		plan["towers"] = list
	}
	for _, flag := range []string{"calibrate", "imatrix", "effort", "chunks", "process-output"} {
		if cmd.IsSet(flag) {
			c := section("calibration")
			text(c, "text", "calibrate")
			text(c, "matrix", "imatrix")
			text(c, "effort", "effort")
			count(c, "chunks", "chunks")
			if cmd.IsSet("calibrate") {
				count(c, "chunk", "ctx-size")
			}
			if cmd.Bool("process-output") {
				c["process_output"] = true
			}
		}
	}
	if cmd.IsSet("evaluate") {
		e := section("evaluation")
		text(e, "text", "evaluate")
		count(e, "chunk", "ctx-size")
		count(e, "chunks", "evaluate-chunks")
	}
	if !cmd.IsSet("calibrate") && !cmd.IsSet("evaluate") && cmd.IsSet("ctx-size") {
		return nil, fault.Errorf(fault.Usage, "--ctx-size goes with --calibrate or --evaluate")
	}
	for key, flag := range map[string]string{"base_model": "base-model", "quantized_by": "quantized-by",
		"template": "template", "repository": "repository"} {
		if cmd.IsSet(flag) {
			text(section("card"), key, flag)
		}
	}
	if cmd.Bool("pages") {
		plan["pages"] = true
	}
	if cmd.Bool("modelfile") {
		plan["modelfile"] = true
	}
	if cmd.Bool("provenance") {
		plan["provenance"] = true
	}
	for key, flag := range map[string]string{"key": "key", "certificate": "certificate"} {
		if cmd.IsSet(flag) {
			text(section("sign"), key, flag)
		}
	}
	if cmd.Bool("no-card") {
		section("card")["off"] = true
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	return release.Parse("flags", data)
}

// releaseResult is the JSON output.
type releaseResult struct {
	Model  string         `json:"model"`
	Output string         `json:"output"`
	Parts  []release.Item `json:"parts"`
	// Bytes is the size of the files to be made, with --dry-run, or of all files.
	Bytes int64          `json:"bytes"`
	Exact bool           `json:"exact"`           // whether Bytes is exact
	Files []release.File `json:"files,omitempty"` // not with --dry-run
	// Removed and Left are files of earlier runs that the plan no longer has.
	Removed []string `json:"removed,omitempty"`
	Left    []string `json:"left,omitempty"`
	// SigningKey is the SHA-256 of the public key of the signature.
	SigningKey string `json:"signing_key_sha256,omitempty"`
	// Part is set if the run made one part of the release: K/N.
	Part string `json:"part,omitempty"`
	// Pushed is what --push has done.
	Pushed *push.Result `json:"pushed,omitempty"`
}

func makeRelease(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRelease(cmd)
	if err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.Schema {
		_, err := w.Write(release.Schema())
		return err
	}
	cost := tool.StartCost(ctx)
	made, err := release.Prepare(ctx, r.Plan, r.Make)
	if err != nil {
		return err
	}
	defer made.Close()
	result := releaseResult{Model: made.Model, Output: r.Plan.Output, Parts: made.Items, SigningKey: made.SigningKey}
	if r.Make.Part > 0 {
		result.Part = fmt.Sprintf("%d/%d", r.Make.Part, r.Make.Parts)
	}
	if r.DryRun {
		if err := made.Predict(ctx); err != nil {
			return err
		}
		var seconds float64
		var paths []string
		result.Exact = true
		for _, it := range made.Items {
			paths = append(paths, it.Files...)
			if !it.Done {
				result.Bytes += it.Bytes
				result.Exact = result.Exact && it.Exact
				seconds += it.Seconds
			}
		}
		warnOfNames(cmd, paths)
		if r.JSON {
			return tool.WriteJSON(w, result)
		}
		for _, it := range made.Items {
			state, about := "to be made", ""
			if it.Done {
				state = "is there"
			}
			if !it.Exact {
				about = "about "
			}
			files := it.Files[0]
			if n := len(it.Files); n > 1 {
				files = fmt.Sprintf("%s and %d more", files, n-1)
			}
			fmt.Fprintf(w, "%-10s  %-9s  %s%d bytes  %s\n", state, it.Type, about, it.Bytes, files)
		}
		about := ""
		if !result.Exact {
			about = "about "
		}
		_, err := fmt.Fprintf(w,
			"%s%s to be written into %s, and as much room on the disk; that takes about %.3g s with %d workers\n",
			about, tool.Bytes(result.Bytes), r.Plan.Output, seconds, r.Make.Workers)
		if err == nil && r.To != "" {
			_, err = fmt.Fprintf(w, "then to be pushed to %s\n", r.To)
		}
		return err
	}
	result.Exact = true
	tool.NoteScalar(cmd)
	if err := made.Run(ctx); err != nil {
		return tool.Kept(err, "finished files stay: run the same command again to resume")
	}
	result.Files = made.Files()
	result.Removed, result.Left = made.Removed, made.Left
	for _, it := range made.Items {
		result.Bytes += it.Bytes
	}
	if r.To != "" {
		p, err := push.Prepare(r.Plan.Output, r.To, r.Push)
		if err != nil {
			return err
		}
		if result.Pushed, err = p.Run(ctx); err != nil {
			return keptPush(err)
		}
	}
	if r.JSON {
		return tool.WriteJSON(w, result)
	}
	var bytes int64
	w = tool.InfoWriter(cmd)
	for _, f := range result.Files {
		bytes += f.Bytes
		fmt.Fprintf(w, "%s  %12d  %-9s  %s\n", f.SHA256, f.Bytes, f.Type, f.Name)
	}
	of := ""
	if result.Part != "" {
		of = "part " + result.Part + " of "
	}
	_, err = fmt.Fprintf(w, "%s%s: %d files, %s; %s\n", of, r.Plan.Output, len(result.Files), tool.Bytes(bytes),
		cost.Stop(bytes))
	if err != nil || result.Pushed == nil {
		return err
	}
	return printPush(w, result.Pushed, false)
}
