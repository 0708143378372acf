package interop

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/tokenizer/vocab"
)

// evaluationFile has the table of the evaluator's comparisons, seen from this package. The text before the table is
// written by hand.
const evaluationFile = "../../docs/evaluation.md"

// columns of the table, and the tests that fill them.
var columns = []string{"perplexity", "embeddings", "importance matrix", "same bits"}

// found counts the results of a test over the models of one architecture (general.architecture).
type found struct {
	first                      bool // one compared model is enough
	models, ran, equal, differ int
	not                        map[string]int // why a model was not compared → how many
}

// evaluations are the results of this run, by column and architecture.
var evaluations = map[string]map[string]*found{}

// reasons are those of skipped tests, by name.
var reasons = map[string]string{}

// skip skips a test and notes why, for the table; with "" the column does not apply to
// such a model.
func skip(t *testing.T, why any) {
	t.Helper()
	text := reason(fmt.Sprint(why))
	reasons[t.Name()] = text
	t.Skip(cmp.Or(text, "does not apply to such a model"))
}

var (
	logTime = regexp.MustCompile(`(?m)^(\d+\.){3}\d+ ([A-Z] )?`)
	// the first of several keys or tensors is enough
	unknown   = regexp.MustCompile(`^((?:metadata keys|tensors) not supported by the .*evaluator: [^ ,;]+)[ ,;].*$`)
	spaces    = regexp.MustCompile(` +`)
	filePaths = regexp.MustCompile(`(/[\w.+-]+)+(: )?|\./[\w./-]+:\d+: `)
	noAnswer  = regexp.MustCompile(`^Post "[^"]*": EOF:? ?`) // of net/http; the runtime's own message follows
)

// reason returns the essence of a message, without what differs from run to run.
func reason(why string) string {
	why, ok := strings.CutPrefix(why, "the runtime: ")
	why, _, _ = strings.Cut(strings.TrimSpace(logTime.ReplaceAllString(why, "")), "\n")
	why = strings.TrimSpace(filePaths.ReplaceAllString(noAnswer.ReplaceAllString(why, ""), ""))
	why = unknown.ReplaceAllString(spaces.ReplaceAllString(why, " "), "$1")
	for _, cause := range []string{"ggeval: ", "llama_model_load: ", "error loading model: ", "error loading model ",
		"hyperparameters: ", "check_tensor_dims: "} {
		why = strings.TrimPrefix(why, cause)
	}
	switch {
	case ok && why == "":
		return "the runtime ends without a message"
	case ok:
		return "the runtime: " + why
	}
	return why
}

// everyModel calls f with a file in F32, a path in the chroot, of every made-up model of
// an architecture that can be run, or of the first of each that is not skipped if only the
// first are wanted.
// The results of f are a column of the table.
func everyModel(t *testing.T, column string, first bool, f func(t *testing.T, file string)) {
	t.Helper()
	if !slices.Contains(columns, column) {
		t.Fatalf("no column %q", column)
	}
	evaluations[column] = map[string]*found{}
	for _, s := range hftest.Specs() {
		if _, err := arch.Lookup(s.Class()); err != nil || s.Target != "" || s.Base != nil {
			continue
		}
		golden, err := os.ReadFile(filepath.Join(archGoldens, s.Name+".txt"))
		must(t, err)
		names := hftest.Architectures(string(golden))
		for _, v := range s.All() {
			name := names[v.Name]
			if slices.Contains(v.Flags, "--mtp") || !slices.Contains(eval.Supported(), name) {
				continue // a draft model alone, or an architecture without an evaluator
			}
			x := evaluations[column][name]
			if x == nil {
				x = &found{first: first, not: map[string]int{}}
				evaluations[column][name] = x
			}
			if first && x.equal+x.differ > 0 {
				continue
			}
			x.models++
			t.Run(s.Name+"/"+v.Name, func(t *testing.T) {
				defer x.note(t)
				_, err := s.Write(root+work+"/specs/"+v.Name, v)
				must(t, err)
				dir, file := root+work+"/specs/"+v.Name+"/"+s.Name, work+"/f32.gguf"
				convertBy(t, dir, root+file, "f32", s.PreTokenizer(), s.Arguments(dir, v)...)
				if got := architectureOf(t, root+file); got != name {
					t.Fatalf("architecture %q, want %q", got, name)
				}
				f(t, file)
			})
		}
	}
}

// architectureOf returns the architecture that a file names.
func architectureOf(t *testing.T, path string) string {
	t.Helper()
	m, err := model.Open(path)
	must(t, err)
	defer m.Close()
	return m.Architecture()
}

// runnable returns the evaluator of a model; file is its path in the chroot. It skips the test if the model is not
// supported, or is refused as broken (a key is missing, for example) and the runtime does not run it either.
func runnable(t *testing.T, m *model.Model, file string) *eval.Model {
	t.Helper()
	e, err := eval.New(m)
	if errors.Is(err, fault.Broken) {
		if out, bench := exec.Command("chroot", root, "timeout", "20", "llama-bench", "-m", file, "-p", "16", "-n", "0",
			"-r", "1", "-t", "1", "-ngl", "0").CombinedOutput(); bench == nil {
			t.Fatalf("the runtime runs the model, our evaluator refuses it: %v\n%s", err, tail(out))
		}
		skip(t, err)
	}
	if errors.Is(err, fault.Unsupported) {
		skip(t, err)
	}
	must(t, err)
	return e
}

// note counts how a test ended.
func (x *found) note(t *testing.T) {
	x.ran++
	switch why, ok := reasons[t.Name()]; {
	case t.Failed():
		x.differ++
	case !t.Skipped():
		x.equal++
	case !ok:
		x.not["no reason given"]++
	case why != "":
		x.not[why]++
	}
}

// cell returns the text of a cell, false if not all models ran.
func (x *found) cell() (string, bool) {
	if done := x.first && x.equal+x.differ > 0; done {
		x.not = nil
	} else if x.ran < x.models {
		return "", false
	}
	var list []string
	switch {
	case x.equal > 0 && x.first:
		list = append(list, "yes")
	case x.equal > 0:
		list = append(list, fmt.Sprintf("yes (%d)", x.equal))
	}
	if x.differ > 0 {
		list = append(list, fmt.Sprintf("**no** (%d)", x.differ))
	}
	for _, why := range slices.Sorted(maps.Keys(x.not)) {
		list = append(list, fmt.Sprintf("%d not compared", x.not[why])+
			note(strings.NewReplacer("|", "\\|", "\n", " ", "{", "(", "}", ")").Replace(why)))
	}
	if list == nil {
		return "-", true
	}
	return strings.Join(list, "; "), true
}

// TestEvaluateBits runs a model of each architecture at every width of vectors and with
// other numbers of workers: all figures must be the same to the last bit.
func TestEvaluateBits(t *testing.T) {
	start(t)
	text := root + work + "/text.txt"
	must(t, os.WriteFile(text, []byte(evalWords), 0o666))
	var settings []string
	for _, width := range []int{0, 128, 256, 512} {
		setting := fmt.Sprintf("simd=%d", width)
		out, err := evaluator(setting, "--version").CombinedOutput()
		if err != nil && strings.Contains(string(out), "larger than the simd length") { // Go ends the program
			t.Logf("%d bits are untested: the CPU has no such vectors", width)
			continue
		}
		must(t, err)
		if width > 0 && !strings.Contains(string(out), fmt.Sprintf("simd-%d)", width)) {
			t.Logf("%d bits are untested: %s", width, out)
			continue
		}
		settings = append(settings, setting)
	}
	everyModel(t, "same bits", true, func(t *testing.T, file string) {
		m, err := model.Open(root + file)
		must(t, err)
		defer m.Close()
		e := runnable(t, m, file)
		if _, err := vocab.New(m.Metadata); err != nil {
			skip(t, err)
		}
		figures := lossesOf
		if !e.Predicts() {
			figures = sumOfVectors
		}
		want := ""
		for _, setting := range settings {
			for _, workers := range []string{"1", "3"} {
				got := figures(t, setting, workers, root+file, text)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("GODEBUG=%s, %s workers: %s, want %s", setting, workers, got, want)
				}
			}
		}
	})
}

// lossesOf returns the figures of our command for a model and a text.
func lossesOf(t *testing.T, setting, workers, file, text string) string {
	t.Helper()
	var log bytes.Buffer
	cmd := evaluator(setting, "perplexity", file, "-f", text, "-c", "64", "--chunks", "3", "-t", workers, "--json",
		"--progress", "none")
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	var r struct {
		PPL, PPL_error, Loss json.Number
		Running              []json.Number
	}
	must(t, json.Unmarshal(out, &r))
	if len(r.Running) != 3 {
		t.Fatalf("%s", out)
	}
	return fmt.Sprint(r)
}

// sumOfVectors returns the size and the SHA-256 of our command's vectors of the lines of a text.
func sumOfVectors(t *testing.T, setting, workers, file, text string) string {
	t.Helper()
	out := root + work + "/vectors.bin"
	if log, err := evaluator(setting, "embed", file, "-f", text, "-o", out, "--force", "-t", workers, "--progress",
		"none").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	data, err := os.ReadFile(out)
	must(t, err)
	return fmt.Sprintf("%d bytes, %x", len(data), sha256.Sum256(data))
}

// evaluator returns our command with a setting of GODEBUG.
func evaluator(setting string, argv ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "ggeval"), argv...)
	cmd.Env = append(os.Environ(), "GODEBUG="+setting)
	return cmd
}

// TestMain compares docs/evaluation.md with the results of the tests, if all ran, or writes it:
// the cells of architectures of which all models were tested.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := checkEvaluations(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func checkEvaluations() error {
	all := len(evaluations) == len(columns)
	for _, column := range evaluations {
		for _, x := range column {
			_, done := x.cell()
			all = all && done
		}
	}
	if !all && (!*docs || len(evaluations) == 0) {
		return nil
	}
	old, err := os.ReadFile(evaluationFile)
	if err != nil {
		return err
	}
	text := evaluationTable(string(old))
	switch {
	case text == string(old):
		return nil
	case *docs:
		return os.WriteFile(evaluationFile, []byte(text), 0o666)
	}
	return fmt.Errorf("%s differs from the results of the tests: run make evaluation", evaluationFile)
}

// evaluationTable returns the text with the cells that were found.
func evaluationTable(old string) string {
	title := "| architecture | " + strings.Join(columns, " | ") + " |\n"
	head, rest, _ := strings.Cut(old, title)
	cells := map[string][]string{}
	for name, row := range rowsOf(rest) {
		f := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "| "), " |"), " | ")
		if len(f) == 1+len(columns) && name != "---" {
			cells[name] = f[1:]
		}
	}
	for i, column := range columns {
		for name, x := range evaluations[column] {
			if text, ok := x.cell(); ok {
				if cells[name] == nil {
					cells[name] = slices.Repeat([]string{"not looked at"}, len(columns))
				}
				cells[name][i] = text
			}
		}
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		if slices.Contains(eval.Supported(), name) {
			rows = append(rows, fmt.Sprintf("| %s | %s |\n", name, strings.Join(cells[name], " | ")))
		}
	}
	return render(head+title+strings.Repeat("| --- ", 1+len(columns))+"|\n", rows, "r")
}

func TestReason(t *testing.T) {
	for why, want := range map[string]string{
		"the runtime: ": "the runtime ends without a message",
		"the runtime: 0.00.120.382 E llama_model_load: error loading model: done_getting_tensors: wrong " +
			"number\n0.00.127.478 E common_fit_params: encountered": "the runtime: done_getting_tensors: wrong number",
		"the runtime: ./tools/imatrix/imatrix.cpp:1430: GGML_ASSERT(!add_eos) failed":                  "the runtime: GGML_ASSERT(!add_eos) failed",
		"the runtime: Post \"http://runtime/embedding\": EOF: ./a/b.cpp:1: GGML_ASSERT(buffer) failed": "the runtime: GGML_ASSERT(buffer) failed",
		"the runtime: Post \"http://runtime/embedding\": EOF: ":                                        "the runtime ends without a message",
		"/opt/oracle/srv/a-b/f32.gguf: keys that nobody knows: a.b = 1":                                "keys that nobody knows: a.b = 1",
		"/a/f32.gguf: metadata keys not supported by the \"x\" evaluator: x.b = 1, x.c = 2; ggeval refuses": "metadata " +
			"keys not supported by the \"x\" evaluator: x.b",
		"": "",
	} {
		if got := reason(why); got != want {
			t.Errorf("%q: %q, want %q", why, got, want)
		}
	}
}

// TestEvaluationTable checks that the cells of architectures of which all models ran are new, and the others stay.
func TestEvaluationTable(t *testing.T) {
	defer func(old map[string]map[string]*found) { evaluations = old }(evaluations)
	evaluations = map[string]map[string]*found{
		"perplexity": {
			"llama": {models: 4, ran: 4, equal: 3, not: map[string]int{"a|b": 1}},
			"phi2":  {models: 2, ran: 1, equal: 1},
			"bert":  {models: 1, ran: 1},
		},
		"same bits":         {"llama": {first: true, models: 1, ran: 1, equal: 1}},
		"importance matrix": {"llama": {models: 2, ran: 2, equal: 1, differ: 1}},
	}
	const head = "Text.\n\n| architecture | perplexity | embeddings | importance matrix | same bits |\n| --- | --- | " +
		"--- | --- | --- |\n"
	got := evaluationTable(head + "| gone | a | b | c | d |\n| phi2 | old[^r1] | yes (2) | - | yes |\n\n[^r1]: c: d\n")
	want := head + "| bert | - | not looked at | not looked at | not looked at |\n" +
		"| llama | yes (3); 1 not compared[^r1] | not looked at | yes (1); **no** (1) | yes |\n" +
		"| phi2 | old[^r2] | yes (2) | - | yes |\n\n[^r1]: a\\|b\n[^r2]: c: d\n"
	if !slices.Contains(eval.Supported(), "bert") {
		want = strings.Replace(want, "| bert | - | not looked at | not looked at | not looked at |\n", "", 1)
	}
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again := evaluationTable(got); again != got {
		t.Errorf("the second time\n%s", again)
	}
}
