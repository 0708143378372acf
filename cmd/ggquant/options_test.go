package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/flagtest"
	"ggforge/cmd/internal/runs"
	"ggforge/convert"
	"ggforge/test/hftest"
	"ggforge/writer"
)

func TestEveryFlag(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	set := func(field, want string, args ...string) flagtest.Row {
		return flagtest.Row{Field: field, Want: want, Args: args}
	}
	recipe := filepath.Join(t.TempDir(), "recipe.txt")
	if err := os.WriteFile(recipe, []byte("attn_v=q8_0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rows := map[string]flagtest.Row{
		"dry-run": set("DryRun", "true", "--dry-run"),
		"json":    set("JSON", "true", "--json"),
		"strict":  set("Quantize.Strict", "true", "--strict"),

		"hide-imatrix": set("Quantize.HideMatrix", "true", "--hide-imatrix"),
		"prune-layers": set("Quantize.PruneLayers", "[3 7 5]", "--prune-layers", "3,7", "--prune-layers", "5"),
		"override-kv":  set("Quantize.Override", "[{Key:k Value:3}]", "--override-kv", "k=int:3"),
		"keep-split":   set("Quantize.KeepSplit", "true", "--keep-split"),
		"max-size":     set("Quantize.SplitMaxBytes", "2000000", "--max-size", "2M"),
		"max-tensors":  set("Quantize.SplitMaxTensors", "4", "--max-tensors", "4"),

		"calibrate":          set("Calibration.File", "t", "--calibrate", "t"),
		"effort":             set("Calibration.Effort", "high", "--effort", "high", "--calibrate", "t"),
		"hessian":            set("Calibration.Moments", "h", "--hessian", "h", "--effort", "high"),
		"tune-norms":         set("Calibration.TuneNorms", "true", "--tune-norms", "--effort", "best", "--calibrate", "t"),
		"ctx-size":           set("Calibration.Text.Chunk", "64", "--ctx-size", "64", "--calibrate", "t"),
		"chunks":             set("Calibration.Text.Chunks", "3", "--chunks", "3", "--calibrate", "t"),
		"process-output":     set("Calibration.Output", "true", "--process-output", "--calibrate", "t"),
		"nextn":              set("Calibration.NextN", "true", "--nextn", "--calibrate", "t"),
		"chats":              set("Calibration.Text.ParseSpecial", "true", "--chats", "--calibrate", "t"),
		"template":           set("Calibration.Chats.Template", "n", "--template", "n", "--chats", "--calibrate", "t"),
		"template-arguments": set("Calibration.Chats.Variables.Names", "[a]", "--template-arguments", `{"a": 1}`, "--chats", "--calibrate", "t"),
		"parse-special":      set("Calibration.Text.ParseSpecial", "true", "--parse-special", "--calibrate", "t"),

		"recipe":      set("Types.Recipe.Path", recipe, "--recipe", recipe),
		"target-bpw":  set("Types.Targets", "[3.5 bits per weight]", "--target-bpw", "3.5", "--calibrate", "t"),
		"target-size": set("Types.Targets", "[4200000000 bytes]", "--target-size", "4.2GB", "--calibrate", "t"),
		"like":        set("Types.Targets", "[the size of Q2_K]", "--like", "q2_k", "--calibrate", "t"),
		"target-kld":  set("Types.Targets", "[a divergence of 0.01]", "--target-kld", "0.01", "--calibrate", "t"),
		"types": set("Types.Allowed", "[attn=Q4_K,Q5_K]", "--types", "attn=q4_k,q5_k", "--like", "q2_k",
			"--calibrate", "t"),
		"measure":     set("Types.Measure", "3", "--measure", "3", "--like", "q2_k", "--calibrate", "t"),
		"save-recipe": set("Types.Save", "r", "--save-recipe", "r"),

		"output":          set("Out", "o.gguf", "--output", "o.gguf"),
		"out-dir":         set("OutDir", "d", "--out-dir", "d"),
		"name-template":   set("NameTemplate", "{ftype}", "--name-template", "{ftype}", "--out-dir", "d"),
		"max-buffer-size": set("Write.MaxBuffer", "524288", "--max-buffer-size", "0.5"),
		"compat":          set("Quantize.Reference", "true", "--compat", "reference"),
		"threads":         set("Write.Workers", "3", "--threads", "3"),
		"work-dir": set("OutDir", filepath.FromSlash("w/ggforge-upload-39c9dcc641879293"), "--work-dir", "w",
			"--out-dir", "s3://bkt/q"),
		"force":    set("Write.Force", "true", "--force"),
		"progress": set("Write.Progress", "nil", "--progress", "none"),
		"remote":   set("In", "hf://IN", "--remote"),
		"via":      set("Convert.Type", "f32", "--via", "f32"),
	}
	maps.Copy(rows, flagtest.Checkpoint)
	maps.Copy(rows, flagtest.Runs)
	maps.Copy(rows, flagtest.Quantization(t))
	flagtest.Check(t, command, runs.ParseQuantize, []string{"IN", "Q4_K_M"}, rows)
}

// TestCheckpointFlags checks that flags for checkpoints alone are refused for a file, and that flags for both are not.
func TestCheckpointFlags(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	for _, f := range tool.Declarations(command()) {
		row, ok := flagtest.Checkpoint[f.Name]
		if !ok {
			continue
		}
		code, _, err := call(append(row.Args, "--dry-run", in, "Q4_0")...)
		refused := code == 2 && strings.Contains(err.Error(), "--"+f.Name+" is for checkpoints")
		if refused == (f.Inputs == 0) || !refused && code != 0 {
			t.Errorf("--%s, for %v: exit code %d, %v", f.Name, f.Inputs, code, err)
		}
	}
	if code, _, err := call("--compat", "reference", "--dry-run", in, "Q4_0"); code != 0 {
		t.Errorf("--compat: exit code %d, %v", code, err)
	}
}

// TestConverterFlags checks that the output for a checkpoint is that for the file that ggconv makes of it with the same
// flags.
func TestConverterFlags(t *testing.T) {
	mistral, metadata := t.TempDir(), filepath.Join(t.TempDir(), "m.json")
	if err := hftest.WriteMistral(mistral, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(metadata, []byte(`{"general.description":"d"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir   string
		flags []string
		opt   convert.Options
	}{
		"names": {gollama, []string{"--model-name", "x", "--metadata", metadata},
			convert.Options{ModelName: "x", Override: metadata}},
		"class":   {gollama, []string{"--arch", "MistralForCausalLM"}, convert.Options{Class: "MistralForCausalLM"}},
		"fused":   {gollama, []string{"--fuse-qkv"}, convert.Options{FuseQKV: true}},
		"mistral": {mistral, []string{"--mistral-format"}, convert.Options{Mistral: true}},
	} {
		job, err := convert.Prepare(t.Context(), c.dir, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file, two, one := filepath.Join(dir, "file"), filepath.Join(dir, "two"), filepath.Join(dir, "one")
		if _, err := job.Write(t.Context(), file, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		job.Close()
		must(t, file, two, "Q4_0")
		must(t, append(c.flags, c.dir, one, "Q4_0")...)
		same(t, two, one)
		if code, _, err := call("--dry-run", c.dir, "Q4_0"); name == "mistral" && code != 3 {
			t.Errorf("%s without the flag: exit code %d, %v", name, code, err)
		}
	}
}

// TestOutputIsInput checks that no file that the run reads can be its output.
func TestOutputIsInput(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	im := matrixFile(t, filepath.Join(dir, "im.dat"), 256, "blk.0.attn_v.weight")
	rules := filepath.Join(dir, "rules.txt")
	if err := os.WriteFile(rules, []byte("attn_v=q8_0"), 0o666); err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(dir, "checkpoint")
	if err := os.CopyFS(checkpoint, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{writer.Suffix, writer.Suffix + ".rows"} {
		path := ggufModel(t, filepath.Join(dir, "out.gguf"+suffix), 256, nil)
		if code, _, err := call("--progress", "none", path, filepath.Join(dir, "out.gguf"), "Q4_0"); code != 2 ||
			!strings.Contains(err.Error(), "output equals input") {
			t.Errorf("%s: exit code %d, %v", filepath.Base(path), code, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	recipe := filepath.Join(dir, "recipe.txt")
	if err := os.WriteFile(recipe, []byte("ffn_down=q8_0"), 0o666); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--progress", "none", "--force", "--imatrix", im, "--tensor-type-file", rules, "--recipe", recipe}
	for path, input := range map[string]string{
		in: in, im: in, rules: in, recipe: in,
		filepath.Join(checkpoint, "config.json"): checkpoint, filepath.Join(checkpoint, "tokenizer.model"): checkpoint,
		filepath.Join(checkpoint, "model.safetensors"): checkpoint,
	} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		args := append(flags, input, path, "Q4_0")
		if input == checkpoint { // its tensors do not match the matrix
			args = []string{"--progress", "none", "--force", input, path, "Q4_0"}
		}
		code, _, err := call(args...)
		if code != 2 || !strings.Contains(err.Error(), "output equals input") {
			t.Errorf("%s: exit code %d, %v", filepath.Base(path), code, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s has changed: %v", filepath.Base(path), err)
		}
	}
	// a matrix is an input even if filters leave no entry
	if code, _, err := call("--progress", "none", "--force", "--imatrix", im, "--include-weights", "nothing", in, im,
		"Q4_0"); code != 2 {
		t.Errorf("matrix without entries: exit code %d, %v", code, err)
	}
	for _, args := range [][]string{{"-", "Q4_0"}, {in, "-", "Q4_0"}, {in, "Q4_0", "--imatrix", "-"},
		{in, "Q4_0", "--out-dir", "-"}, {in, "Q4_0", "--tensor-type-file", "-"}} {
		if code, _, err := call(args...); code != 2 ||
			!strings.Contains(err.Error(), "standard input and output are not supported") {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
}

func TestDocumented(t *testing.T) { flagtest.Documented(t, command()) }

func TestTree(t *testing.T) { flagtest.Tree(t, command) }
