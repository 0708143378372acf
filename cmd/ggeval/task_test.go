package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/eval/evaltest"
)

const taskData = "../../eval/tasks/testdata/"

// taskFiles are the files of a made-up set of each kind.
var taskFiles = map[string]string{"hellaswag": "hellaswag.txt", "winogrande": "winogrande.csv",
	"multiple-choice": "multiple-choice.bin"}

// TestTask compares the scores after each task with those of llama-perplexity on its exact path, of all tasks and of
// 15 that are drawn.
func TestTask(t *testing.T) {
	for kind, file := range taskFiles {
		for _, draw := range []string{"", "-15"} {
			want, err := os.ReadFile(taskData + kind + draw + ".want")
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"task", kind, "-f", taskData + file, "--via", "f32", "--compat", "llama.cpp", "--quiet",
				gollama}
			if draw != "" {
				args = append(args, "--tasks", "15")
			}
			_, out, _, err := call(args...)
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(s string) bool { return s == "" })
			wanted := strings.Split(strings.TrimSpace(string(want)), "\n")
			if last := lines[len(lines)-1]; len(lines) != len(wanted)+1 || !strings.Contains(last, "by sums of ln p") {
				t.Fatalf("%s%s: %d lines, want %d; the last: %s", kind, draw, len(lines), len(wanted)+1, last)
			}
			for i, w := range wanted {
				if !evaltest.SameScores(lines[i], w) {
					t.Errorf("%s%s: %q, want %q", kind, draw, lines[i], w)
				}
			}
		}
	}
}

// TestTaskSlips checks what is right without --compat: the last task of a file is scored, and the second choice of a
// Winogrande task by its own sentence.
func TestTaskSlips(t *testing.T) {
	data, err := os.ReadFile(taskData + "winogrande.csv")
	if err != nil {
		t.Fatal(err)
	}
	once := filepath.Join(t.TempDir(), "once.csv")
	if err := os.WriteFile(once, data[:len(data)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(file string, args ...string) taskResult {
		_, out, _, err := call(append([]string{"task", "winogrande", "-f", file, gollama, "--json", "--progress", "none"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return result[taskResult](t, out)
	}
	right, tool := run(once), run(once, "--compat", "reference")
	if right.Tasks != 104 || tool.Tasks != 103 {
		t.Errorf("%d tasks, and %d of llama-perplexity", right.Tasks, tool.Tasks)
	}
	first, second := 0, 0
	for i := range tool.Models[0].Means {
		a, b := right.Models[0].Means[i], tool.Models[0].Means[i]
		if a[0] != b[0] {
			first++
		}
		if a[1] != b[1] {
			second++
		}
	}
	if first != 0 || second < 5 || second > 100 {
		t.Errorf("%d means of first choices and %d of second ones differ", first, second)
	}
}

// TestTaskModels compares models: the first one of several has the figures that it has alone, and the others' changes
// follow from the outcomes. The page has all of them.
func TestTaskModels(t *testing.T) {
	files := quantized(t, gollama, "Q8_0", "Q2_K")
	page := filepath.Join(t.TempDir(), "page.html")
	args := append([]string{"task", "hellaswag", "-f", taskData + "hellaswag.txt", "--progress", "none", "--html", page, gollama},
		files...)
	_, out, _, err := call(append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	r := result[taskResult](t, out)
	_, alone, _, err := call("task", "hellaswag", "-f", taskData+"hellaswag.txt", "--progress", "none", "--json", gollama)
	if err != nil {
		t.Fatal(err)
	}
	base := result[taskResult](t, alone).Models[0]
	if len(r.Models) != 3 || !slices.Equal(base.Running, r.Models[0].Running) || r.Models[0].Change != nil {
		t.Fatalf("%+v", r)
	}
	for _, m := range r.Models[1:] {
		lost, gained := 0, 0
		for i, right := range m.Right {
			if base.Right[i] && !right {
				lost++
			}
			if right && !base.Right[i] {
				gained++
			}
		}
		if c := m.Change; c == nil || c.Lost != lost || c.Gained != gained ||
			math.Abs(float64(c.Accuracy.Mean-(m.Accuracy-base.Accuracy))) > 1e-12 || c.Margin.Mean == 0 {
			t.Errorf("%s: %+v, want %d lost and %d gained", m.Model, m.Change, lost, gained)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "Q2_K") || !strings.Contains(string(html), "gained") {
		t.Error("the page lacks figures", err)
	}
	_, out, _, err = call(append(args, "--force")...)
	if err != nil || !strings.Contains(out, "margin less [1]'s") || !strings.Contains(out, "40 tasks of hellaswag") {
		t.Error(out, err)
	}
}

// TestTaskRefused checks files and models that cannot be scored, and what is noticed.
func TestTaskRefused(t *testing.T) {
	ending := textOf(t, "func\n0\nx\nx y\nx z\nx w\n")
	_, _, log, err := call("task", "hellaswag", "-f", ending, gollama, "--progress", "none")
	if err != nil || !strings.Contains(log, "line 1: the tokens of answer 1 are the beginning") {
		t.Error(log, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"hellaswag", gollama, "-f", textOf(t, "a\nb\n")}, 3, "2 lines, want six"},
		{[]string{"multiple-choice", gollama, "-f", textOf(t, "abcdefgh")}, 3, "tasks in a file of 8 bytes"},
		{[]string{"winogrande", gollama, "-f", textOf(t, "")}, 5, "no task of kind winogrande"},
		{[]string{"hellaswag", checkpointOf(t, "xlm-roberta", 1), "-f", ending}, 4, "does not predict"},
	} {
		code, _, _, err := call(append([]string{"task", "--progress", "none"}, c.args...)...)
		if code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %d, %v, want %d with %s", c.args, code, err, c.code, c.want)
		}
	}
}
