package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/flagtest"
	"ggforge/test/hftest"
)

// call runs the command in this process and returns its exit code and its standard output and standard error.
func call(args ...string) (code int, out, log string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &stdout, &stderr
	err = tool.Run(context.Background(), cmd, append([]string{"ggeval"}, args...))
	return tool.Code(err), stdout.String(), stderr.String(), err
}

// gollama is a small trained model.
const gollama = "../../test/testdata/gollama"

// checkpointOf writes the checkpoint of a spec.
func checkpointOf(t *testing.T, name string, seed uint64) string {
	t.Helper()
	dir, err := hftest.Lookup(name).Write(t.TempDir(), hftest.Variant{Seed: seed, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// textOf writes a text and returns the file.
func textOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// source returns text of the kind that gollama was trained on.
func source(t *testing.T, bytes int) string {
	t.Helper()
	data, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	return string(data[:min(bytes, len(data))])
}

func TestEveryFlag(t *testing.T) {
	set := func(field, want string, args ...string) flagtest.Row {
		return flagtest.Row{Field: field, Want: want, Args: args}
	}
	common := map[string]flagtest.Row{
		"file":      set("File", "t2", "--file", "t2"),
		"escape":    set("Escapes", "true", "--escape"),
		"no-escape": {Field: "Escapes", Args: []string{"--no-escape"}, None: true},
		"ctx-size":  set("Text.Chunk", "64", "--ctx-size", "64"),
		"chunks":    set("Text.Chunks", "3", "--chunks", "3"),
		"json":      set("JSON", "true", "--json"),
		"threads":   set("Workers", "77", "--threads", "77"),
		"progress":  set("Show", "nil", "--progress", "none"),
		"via":       set("Convert.Type", "f32", "--via", "f32"),
	}
	maps.Copy(common, flagtest.Checkpoint)
	with := func(rows map[string]flagtest.Row) map[string]flagtest.Row {
		all := maps.Clone(common)
		maps.Copy(all, rows)
		return all
	}
	chats := func(rows map[string]flagtest.Row, loss bool) map[string]flagtest.Row {
		rows["chats"] = set("Text.ParseSpecial", "true", "--chats")
		rows["template"] = set("Chats.Template", "n", "--template", "n", "--chats")
		rows["template-arguments"] = set("Chats.Variables.Names", "[a]", "--template-arguments", `{"a": 1}`, "--chats")
		if loss {
			base := []string{"MODEL", "MODEL", "-f", "t", "--chats"}
			if rows["kl-divergence-base"].Args == nil {
				base = base[1:]
			}
			rows["loss"] = flagtest.Row{Field: "Chats.Answers", Want: "false", Args: []string{"--loss", "all"}, Base: base}
		}
		return rows
	}
	source := set("Source", "s", "--source", "s")
	special := set("Text.ParseSpecial", "true", "--parse-special")
	stride := set("Text.Stride", "8", "--stride", "8")
	html, force := set("HTML", "t2.html", "--html", "t2.html"), set("Force", "true", "--force")
	part, finish := set("Shares.Part", "3-of-16", "--part", "3/16", "--part-files", "x"),
		set("Shares.Finish", "true", "--finish", "--part-files", "x")
	parts := set("Shares.Name", "x", "--part-files", "x", "--finish")
	cache := map[string]flagtest.Row{
		"cache-type-k": set("Cache", "q8_0:f16", "--cache-type-k", "q8_0"),
		"cache-type-v": set("Cache", "f16:iq4_nl", "--cache-type-v", "IQ4_NL"),
		"no-cache-rotation": set("Cache.Unrotated", "true", "--no-cache-rotation", "--cache-type-k", "q8_0",
			"--cache-type-v", "q4_0"),
	}
	checked := map[string]bool{}
	t.Run("perplexity", func(t *testing.T) {
		checked["perplexity"] = true
		rows := with(map[string]flagtest.Row{
			"source": source, "stride": stride, "remote": set("Path", "hf://MODEL", "--remote"), "html": html, "force": force,
			"part": part, "finish": finish, "part-files": parts, "parse-special": special,
			"save-logits": set("Logits", "t2", "--save-logits", "t2"),
		})
		maps.Copy(rows, cache)
		flagtest.Check(t, perplexityCommand, parsePerplexity, []string{"MODEL", "-f", "t"}, chats(rows, true))
	})
	t.Run("compare", func(t *testing.T) {
		checked["compare"] = true
		rows := with(flagtest.Quantization(t, "--type", "iq4_xs"))
		maps.Copy(rows, cache)
		maps.Copy(rows, map[string]flagtest.Row{
			"source": source, "stride": stride, "remote": set("Models", "[hf://MODEL]", "--remote"), "html": html, "force": force,
			"part": part, "finish": finish, "part-files": parts, "parse-special": special,
			"type":               set("Recipes", "[Q4_K_M Q8_0]", "--type", "q4_k", "--type", "Q8_0"),
			"kl-divergence-base": set("Saved", "t2", "--kl-divergence-base", "t2"),
			"cache-types":        set("Caches", "[q8_0 q8_0:q4_0]", "--cache-types", "q8_0,q8_0:q4_0"),
		})
		flagtest.Check(t, compareCommand, parseCompare, []string{"BASE", "MODEL", "-f", "t"}, chats(rows, true))
	})
	t.Run("sensitivity", func(t *testing.T) {
		checked["sensitivity"] = true
		flagtest.Check(t, sensitivityCommand, parseSensitivity, []string{"MODEL", "-f", "t"},
			with(map[string]flagtest.Row{
				"remote": set("Path", "hf://MODEL", "--remote"), "force": force,
				"types":            set("Measure.Types", "[Q2_K IQ4_XS]", "--types", "q2_k, IQ4_XS,Q2_K"),
				"group":            set("Measure.Group", "layer", "--group", "layer"),
				"imatrix":          set("Measure.Matrix", "t2", "--imatrix", "t2"),
				"allow-requantize": set("Measure.AllowRequantize", "true", "--allow-requantize"),
				"output":           set("Output", "t2.json", "--output", "t2.json"),
			}))
	})
	t.Run("imatrix", func(t *testing.T) {
		checked["imatrix"] = true
		flagtest.Check(t, imatrixCommand, parseImatrix, []string{"MODEL", "-f", "t", "-o", "o"},
			chats(with(map[string]flagtest.Row{
				"source": source, "output": set("Out", "o2", "--output", "o2"), "format": set("Format", "dat", "--format", "dat"),
				"process-output": set("Collect.Output", "true", "--process-output"),
				"parse-special":  special,
				"chunk":          set("Text.Skip", "2", "--chunk", "2"),
				"nextn":          set("NextN", "true", "--nextn"),
				"in-file":        set("Merged", "[a]", "--in-file", "a"),
				"save-every":     set("Collect.Every", "5", "--save-every", "5"),
				"remote":         set("Path", "hf://MODEL", "--remote"), "force": force,
				"sum-chunks": set("Collect.Group", "5", "--sum-chunks", "5"),
				"part-files": set("Shares.Name", "x", "--part-files", "x", "--finish", "--sum-chunks", "2"),
				"part":       set("Shares.Part", "3-of-16", "--part", "3/16", "--sum-chunks", "5"),
				"finish":     set("Shares.Finish", "true", "--finish", "--sum-chunks", "5"),
			}), false))
	})
	t.Run("embed", func(t *testing.T) {
		checked["embed"] = true
		rows := with(map[string]flagtest.Row{
			"text": set("Texts", "[t2]", "--text", "t2"), "pooling": set("Pooling", "mean", "--pooling", "mean"),
			"normalize": set("Norm", "{kind:1}", "--normalize", "1"),
			"base":      set("Base", "b", "--base", "b"), "output": set("Out", "o", "--output", "o"), "force": force,
			"remote": set("Path", "hf://MODEL", "--remote"),
		})
		delete(rows, "ctx-size")
		delete(rows, "chunks")
		flagtest.Check(t, embedCommand, parseEmbed, []string{"MODEL", "-f", "t"}, rows)
	})
	t.Run("task", func(t *testing.T) {
		checked["task"] = true
		rows := with(flagtest.Quantization(t, "--type", "iq4_xs"))
		maps.Copy(rows, map[string]flagtest.Row{
			"type":  set("Recipes", "[Q4_K_M Q8_0]", "--type", "q4_k", "--type", "Q8_0"),
			"tasks": set("Tasks", "7", "--tasks", "7"), "compat": set("LikeTool", "true", "--compat", "reference"),
			"remote": set("Paths", "[hf://MODEL]", "--remote"), "html": html, "force": force,
		})
		for _, name := range []string{"escape", "no-escape", "ctx-size", "chunks"} {
			delete(rows, name)
		}
		maps.Copy(rows, cache)
		flagtest.Check(t, taskCommand, parseTask, []string{"hellaswag", "MODEL", "-f", "t"}, rows)
	})
	t.Run("score", func(t *testing.T) {
		checked["score"] = true
		rows := with(flagtest.Quantization(t, "--type", "iq4_xs"))
		maps.Copy(rows, map[string]flagtest.Row{
			"type":          set("Recipes", "[Q4_K_M Q8_0]", "--type", "q4_k", "--type", "Q8_0"),
			"max-length":    set("MaxLength", "7", "--max-length", "7"),
			"parse-special": set("ParseSpecial", "true", "--parse-special"),
			"output":        set("Out", "o", "--output", "o"),
			"remote":        set("Paths", "[hf://MODEL]", "--remote"), "force": force,
		})
		for _, name := range []string{"escape", "no-escape", "ctx-size", "chunks"} {
			delete(rows, name)
		}
		maps.Copy(rows, cache)
		flagtest.Check(t, scoreCommand, parseScore, []string{"MODEL", "-f", "t"}, rows)
	})
	t.Run("trajectory", func(t *testing.T) {
		checked["trajectory"] = true
		rows := with(flagtest.Quantization(t, "--type", "iq4_xs"))
		maps.Copy(rows, map[string]flagtest.Row{
			"type":    set("Recipes", "[Q4_K_M Q8_0]", "--type", "q4_k", "--type", "Q8_0"),
			"predict": set("N", "7", "--predict", "7"), "parse-special": special,
			"paths":              {Field: "From", Want: "t2", Args: []string{"--paths", "t2"}, Base: []string{"MODEL"}, Needed: true},
			"chats":              set("Chats.Prompts", "true", "--chats"),
			"template":           set("Chats.Template", "n", "--template", "n", "--chats"),
			"template-arguments": set("Chats.Variables.Names", "[a]", "--template-arguments", `{"a": 1}`, "--chats"),
			"output":             set("Out", "o", "--output", "o"),
			"remote":             set("Paths", "[hf://BASE hf://MODEL]", "--remote"), "force": force,
		})
		for _, name := range []string{"escape", "no-escape", "ctx-size", "chunks"} {
			delete(rows, name)
		}
		flagtest.Check(t, trajectoryCommand, parseTrajectory, []string{"BASE", "MODEL", "-f", "t"}, rows)
	})
	t.Run("serve", func(t *testing.T) {
		checked["serve"] = true
		rows := maps.Clone(flagtest.Checkpoint)
		maps.Copy(rows, map[string]flagtest.Row{
			"address":      set("Address", "localhost:1", "--address", "localhost:1"),
			"allow-remote": set("AllowRemote", "true", "--allow-remote"),
			"threads":      common["threads"], "via": common["via"], "json": common["json"],
			"remote": set("Path", "hf://MODEL", "--remote"),
		})
		flagtest.Check(t, serveCommand, parseServe, []string{"MODEL"}, rows)
	})
	var verbs []*cli.Command = command().Commands
	for _, verb := range verbs {
		if !checked[verb.Name] {
			t.Errorf("the flags of %s are not checked", verb.Name)
		}
	}
	if n := len(command().Flags); n > 0 {
		t.Errorf("%d flags before the verb are not checked", n)
	}
}

func TestDocumented(t *testing.T) { flagtest.Documented(t, command().Commands...) }

// TestArguments checks what is refused before any work.
func TestArguments(t *testing.T) {
	text := textOf(t, "package main")
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "want a verb"},
		{"guess", `unknown verb "guess"`},
		{"perplexity", "want MODEL"},
		{"perplexity m", "name it with -f FILE"},
		{"perplexity m n -f t", "surplus argument"},
		{"compare m -f t", "want BASE [MODEL...]"},
		{"compare m n", "name it with -f FILE"},
		{"perplexity m -f -", "standard input"},
		{"perplexity m -f t --escape --no-escape", "want one of them"},
		{"perplexity m -f t --via q4_0", "--via"},
		{"perplexity m -f t -c x", "want a whole number"},
		{"perplexity m -f t -c 99999999999", "want at most"},
		{"compare m -f t --recipe Q9", `unknown quantization type "Q9"`},
		{"compare m -f t --recipe Q4_0,Q8_0", `unknown quantization type "Q4_0,Q8_0"`},
		{"compare m n -f t --imatrix x", "--imatrix goes with --type"},
		{"compare --recipe Q4_0 -f t", "want BASE [MODEL...]"},
		{"perplexity m -f t --part 1/2", "want --part-files OUT"},
		{"perplexity m -f t --part 0/2 --parts o", "--part: \"0/2\": part 0, want 1 to 2"},
		{"perplexity m -f t --part 1/2 --finish --parts o", "want one of them"},
		{"perplexity m -f t --parts o", "--part-files goes with one of --part, --finish"},
		{"perplexity m -f t --parts o --part 1/2 --html h",
			"--html goes with --finish: a part is not the whole output"},
		{"compare m n -f t --finish", "want --part-files OUT"},
		{"imatrix m -f t -o o --part 1/2", "want --sum-chunks N"},
		{"imatrix m -f t -o o --finish", "want --sum-chunks N"},
		{"imatrix m -f t -o o --finish --sum-chunks 2 --save-every 2", "is run again"},
		{"imatrix m -f t -o o --sum-chunks 2 --save-every 3", "want a multiple of --sum-chunks 2"},
		{"imatrix -o o --in-file a --part 1/2 --sum-chunks 1", "no MODEL"},
		{"imatrix m -f t -o o --source s --chunk 1", "want one of them"},
		{"compare m --kl-divergence-base x --stride 9", "--stride"},
		{"task hellaswag -f t", "want KIND MODEL..."},
		{"task mmlu m -f t", "want hellaswag, winogrande or multiple-choice"},
		{"task winogrande m", "name their file with -f FILE"},
		{"task winogrande m -f t --compat x", "--compat"},
		{"task winogrande m -f t --imatrix x", "--imatrix goes with --type"},
		{"trajectory -f t", "want [BASE] MODEL..."},
		{"trajectory m -f t", "only a BASE"},
		{"trajectory m n", "no prompts"},
		{"trajectory m n -f t --predict 0", "--predict 0"},
		{"trajectory m --paths a --predict 3", "--paths and --predict"},
		{"trajectory m --paths a -f b", "--paths and --file"},
		{"score -f t", "want MODEL..."},
		{"score m", "name their file with -f FILE"},
		{"score m -f t --max-length x", "--max-length"},
		{"score m -f t --type Q9", `unknown quantization type "Q9"`},
		{"serve", "want MODEL"},
		{"serve m --address 0.0.0.0:8080", "--allow-remote"},
		{"serve m --address :8080", "--allow-remote"},
		{"sensitivity", "want MODEL"},
		{"sensitivity m", "name it with -f FILE"},
		{"sensitivity m -f t --types Q4_K,Q9", `unknown tensor type "Q9"`},
		{"sensitivity m -f t --types ,", `unknown tensor type ""`},
		{"sensitivity m -f t --group head", `--group "head"`},
		{"sensitivity " + gollama + " -f " + text + " -o " + text, "output equals input"},
		{"perplexity " + gollama + " -f " + text + " -c 2", "want at least 4 tokens"},
		{"perplexity " + gollama + " -f " + text + " -c 10 --stride 255", "want less"},
		{"perplexity " + gollama + " -f " + filepath.Dir(text), "want a file with the text"},
		{"perplexity " + gollama + "/tokenizer.model --arch x -f " + text, "--arch is for checkpoints"},
	} {
		if code, _, _, err := call(strings.Fields(c.args)...); code != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want 2 with %q", c.args, code, err, c.want)
		}
	}
	if code, _, _, err := call("perplexity", gollama, "-f", text+"x"); code != 1 {
		t.Errorf("no file: exit code %d, %v", code, err)
	}
}

func TestTree(t *testing.T) { flagtest.Tree(t, command) }
