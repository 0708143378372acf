package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/flagtest"
)

func TestEveryFlag(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.txt")
	if err := os.WriteFile(rules, []byte("attn_v=q8_0"), 0o666); err != nil {
		t.Fatal(err)
	}
	set := func(field, want string, args ...string) flagtest.Row {
		return flagtest.Row{Field: field, Want: want, Args: args}
	}
	rows := map[string]flagtest.Row{
		"dry-run": set("DryRun", "true", "--dry-run"),
		"json":    set("JSON", "true", "--json"),
		"strict":  set("Quantize.Strict", "true", "--strict"),

		"allow-requantize":     set("Quantize.AllowRequantize", "true", "--allow-requantize"),
		"leave-output-tensor":  set("Quantize.LeaveOutputTensor", "true", "--leave-output-tensor"),
		"pure":                 set("Quantize.Pure", "true", "--pure"),
		"imatrix":              set("Quantize.Matrix", "im.dat", "--imatrix", "im.dat"),
		"include-weights":      set("Quantize.IncludeWeights", "[a,b c]", "--include-weights", "a,b", "--include-weights", "c"),
		"exclude-weights":      set("Quantize.ExcludeWeights", "[a]", "--exclude-weights", "a"),
		"hide-imatrix":         set("Quantize.HideMatrix", "true", "--hide-imatrix"),
		"output-tensor-type":   set("Quantize.OutputTensorType", "Q8_0", "--output-tensor-type", "q8_0"),
		"token-embedding-type": set("Quantize.TokenEmbeddingType", "Q8_0", "--token-embedding-type", "q8_0"),
		"tensor-type":          set("Quantize.TensorTypes", "[a=Q8_0 b=Q4_0]", "--tensor-type", "a=q8_0", "--tensor-type", "b=q4_0"),
		"tensor-type-file":     set("Quantize.TensorTypes", "[attn_v=Q8_0]", "--tensor-type-file", rules),
		"prune-layers":         set("Quantize.PruneLayers", "[3 7 5]", "--prune-layers", "3,7", "--prune-layers", "5"),
		"override-kv":          set("Quantize.Override", "[{Key:k Value:3}]", "--override-kv", "k=int:3"),
		"keep-split":           set("Quantize.KeepSplit", "true", "--keep-split"),
		"split-max-size":       set("Quantize.SplitMaxBytes", "2000000", "--split-max-size", "2M"),
		"split-max-tensors":    set("Quantize.SplitMaxTensors", "4", "--split-max-tensors", "4"),

		"out-dir":         set("OutDir", "d", "--out-dir", "d"),
		"name-template":   set("NameTemplate", "{ftype}", "--name-template", "{ftype}", "--out-dir", "d"),
		"max-buffer-size": set("Write.MaxBuffer", "524288", "--max-buffer-size", "0.5"),
		"compat":          set("Quantize.Reference", "true", "--compat", "reference"),
		"threads":         set("Write.Workers", "3", "--threads", "3"),
		"force":           set("Write.Force", "true", "--force"),
		"progress":        set("Write.Progress", "nil", "--progress", "none"),
		"via":             set("Convert.Type", "f32", "--via", "f32"),
	}
	maps.Copy(rows, flagtest.Checkpoint)
	flagtest.Check(t, command, parse, []string{"IN", "Q4_K_M"}, rows)
}

// TestCheckpointFlags checks that flags which only mean something for a checkpoint
// are refused for a file, and that those of both kinds are not.
func TestCheckpointFlags(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	for name, row := range flagtest.Checkpoint {
		if row.Err != "" {
			continue
		}
		code, _, err := call(append(row.Args, "--dry-run", in, "Q4_0")...)
		if code != 2 || !strings.Contains(err.Error(), "--"+name+" is for checkpoints") {
			t.Errorf("--%s: exit code %d, %v", name, code, err)
		}
	}
	if code, _, err := call("--compat", "reference", "--dry-run", in, "Q4_0"); code != 0 {
		t.Errorf("--compat: exit code %d, %v", code, err)
	}
}

func TestDocumented(t *testing.T) { flagtest.Documented(t, command()) }
