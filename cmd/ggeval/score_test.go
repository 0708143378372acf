package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answers runs ggeval score over requests and returns the lines of its output.
func answers(t *testing.T, requests []string, args ...string) (list []map[string]any) {
	t.Helper()
	file := textOf(t, strings.Join(requests, "\n")+"\n")
	_, out, _, err := call(append([]string{"score", "-f", file, "--progress", "none"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		var a map[string]any
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, a)
	}
	return list
}

// TestScore checks answers against each other: the same question in other words has the same answer, and the
// probability of a whole is the product of those of its parts.
func TestScore(t *testing.T) {
	a := answers(t, []string{
		`{"context": "func main() {\n", "continuation": "\tfmt.Println(x)", "id": "pair"}`,
		`{"prompt": "func main() {\n", "choices": ["\tfmt.Println(x)", "}", " return"]}`,
		`{"context": "func main() {", "continuation": "\n}"}`,
		`{"text": "package main\n"}`,
		`{"context": "", "continuation": "package main\n"}`,
		`{"context": [1, 300, 400], "continuation": [500, 501]}`,
		`{"context": [1, 300, 400], "continuation": [500]}`,
		`{"context": [1, 300, 400, 500], "continuation": [501]}`,
		`{"text": [300, 400]}`,
		`{"context": [], "continuation": [300, 400]}`,
	}, gollama)
	if len(a) != 10 {
		t.Fatalf("%d lines", len(a))
	}
	p := func(i int) float64 { return a[i]["logprob"].(float64) }
	choices := a[1]["choices"].([]any)
	choice := func(i int) map[string]any { return choices[i].(map[string]any) }
	near := func(what string, x, y float64) {
		if math.Abs(x-y) > 1e-9*math.Abs(y) || math.IsNaN(x) {
			t.Errorf("%s: %v and %v", what, x, y)
		}
	}
	near("a choice is a pair", choice(0)["logprob"].(float64), p(0))
	near("a blank at the context's end goes to the continuation", choice(1)["logprob"].(float64), p(2))
	near("a text is a pair without a context", p(3), p(4))
	near("the product of both tokens", p(5), p(6)+p(7))
	near("a text of tokens", p(8), p(9))
	if a[0]["id"] != "pair" || a[1]["id"] != nil || a[0]["line"] != 1. || a[0]["bytes"] != 15. || a[2]["bytes"] != 2. {
		t.Errorf("%v", a)
	}
	near("mean", a[0]["mean"].(float64), p(0)/a[0]["tokens"].(float64))
	best, byMean, byByte := 0, 0, 0
	for i := range choices {
		of := func(i int, per string) float64 {
			d := 1.
			if per != "" {
				d = choice(i)[per].(float64)
			}
			return choice(i)["logprob"].(float64) / d
		}
		if of(i, "") > of(best, "") {
			best = i
		}
		if of(i, "tokens") > of(byMean, "tokens") {
			byMean = i
		}
		if of(i, "bytes") > of(byByte, "bytes") {
			byByte = i
		}
	}
	if a[1]["largest"] != float64(best) || a[1]["largest_mean"] != float64(byMean) || a[1]["largest_per_byte"] != float64(byByte) {
		t.Errorf("%v: want %d, %d, %d", a[1], best, byMean, byByte)
	}
}

// TestScoreGreedy checks that a continuation counts as the greedy one if each of its tokens is the most probable one:
// of all tokens exactly one is, apart from equal ones.
func TestScoreGreedy(t *testing.T) {
	var list []string
	for id := range 4096 {
		list = append(list, fmt.Sprintf(`{"context": [1, 300, 400], "continuation": [%d]}`, id))
	}
	first := answers(t, list, gollama)
	best, greedy, sum := 0, -1, 0.0
	for i, a := range first {
		p := a["logprob"].(float64)
		sum += math.Exp(p)
		if p > first[best]["logprob"].(float64) {
			best = i
		}
		if a["is_greedy"].(bool) {
			greedy = i
		}
	}
	if greedy != best || math.Abs(sum-1) > 1e-5 {
		t.Errorf("token %d is the most probable one, and %d is called greedy; probabilities add up to %v", best, greedy, sum)
	}
	two := answers(t, []string{fmt.Sprintf(`{"context": [1, 300, 400], "continuation": [%d, 1999]}`, best)}, gollama)
	if two[0]["is_greedy"].(bool) {
		t.Error("the second token is not the most probable one")
	}
}

// TestScoreWindows compares long contexts and texts with what they are cut to.
func TestScoreWindows(t *testing.T) {
	a := answers(t, []string{
		`{"context": [1, 300, 301, 302, 303], "continuation": [400, 401]}`,
		`{"text": [300, 301, 302, 303, 304, 305]}`,
	}, gollama, "--max-length", "4")
	b := answers(t, []string{
		`{"context": [301, 302, 303], "continuation": [400, 401]}`,
		`{"context": [1], "continuation": [300, 301, 302, 303]}`,
		`{"context": [301, 302, 303], "continuation": [304, 305]}`,
	}, gollama)
	p := func(x map[string]any) float64 { return x["logprob"].(float64) }
	if p(a[0]) != p(b[0]) || math.Abs(p(a[1])-p(b[1])-p(b[2])) > 1e-9 || a[0]["cut"] != true || a[1]["cut"] != true ||
		b[0]["cut"] != nil {
		t.Errorf("%v\n%v", a, b)
	}
}

// TestScoreModels runs models side by side, and writes the answers to a file: the same lines, with the names of models.
// Recipes have the answers of files.
func TestScoreModels(t *testing.T) {
	requests := []string{`{"context": "package", "continuation": " main"}`, `{"text": "func f() {}"}`}
	file := textOf(t, strings.Join(requests, "\n"))
	q := quantized(t, gollama, "Q4_K_M")[0]
	out := filepath.Join(t.TempDir(), "answers.jsonl")
	args := []string{"score", gollama, q, "--type", "Q4_K_M", "-f", file, "--progress", "none", "-o", out}
	_, printed, log, err := call(append(args, "--json")...)
	if err != nil {
		t.Fatal(err, log)
	}
	r := result[scoreResult](t, printed)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 6 || r.Output != out || r.Bytes != int64(len(data)) || len(r.Models) != 3 || r.Requests != 2 ||
		r.Answers != nil || r.Models[2].Recipe != "Q4_K_M" {
		t.Fatalf("%s\n%+v", data, r)
	}
	_, alone, _, err := call("score", gollama, "-f", file, "--progress", "none", "--json")
	if err != nil {
		t.Fatal(err)
	}
	base := result[scoreResult](t, alone)
	var sums [3]float64
	for i, line := range lines {
		var a answerResult
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		want := []string{gollama, q, gollama + " as Q4_K_M"}[i%3]
		if a.Line != 1+i/3 || a.Model != want {
			t.Errorf("line %d: %s, want %s", i, line, want)
		}
		sums[i%3] += float64(a.LogP)
		if i%3 == 0 && a.LogP != base.Answers[i/3].LogP {
			t.Errorf("line %d: %v, alone %v", i, a.LogP, base.Answers[i/3].LogP)
		}
	}
	if sums[1] != sums[2] || sums[0] == sums[1] || math.Abs(sums[0]-float64(r.Models[0].LogP)) > 1e-12 {
		t.Errorf("%v", sums)
	}
	if code, _, _, err := call(args...); code != 2 || !strings.Contains(err.Error(), "exists") {
		t.Error(code, err)
	}
	_, printed, _, err = call(append(args, "--force")...)
	if err != nil || !strings.Contains(printed, "answers to 2 requests") || !strings.Contains(printed, "gollama as Q4_K_M: llama") {
		t.Error(printed, err)
	}
	again, err := os.ReadFile(out)
	if err != nil || !slices.Equal(again, data) {
		t.Error("another file", err)
	}
}

// TestScoreRefused checks requests and models that cannot be scored.
func TestScoreRefused(t *testing.T) {
	good := textOf(t, `{"text": "a"}`)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{gollama, "-f", textOf(t, "{\"text\": \"a\"}\n{\"text\": 1}")}, 3, "line 2: \"text\""},
		{[]string{gollama, "-f", textOf(t, "{\"text\": \"a\"}\n\n{\"context\": \"a\", \"continuation\": \"\"}")}, 5, "line 3: the continuation adds no token"},
		{[]string{gollama, "-f", textOf(t, `{"text": [1, 99999]}`)}, 5, "line 1: element 1 is token 99999"},
		{[]string{gollama, "-f", textOf(t, "")}, 5, "no requests"},
		{[]string{gollama, "-f", t.TempDir()}, 2, "want a file with requests"},
		{[]string{gollama, "-f", good, "-o", good}, 2, "output equals input"},
		{[]string{checkpointOf(t, "xlm-roberta", 1), "-f", good}, 4, "does not predict"},
	} {
		code, _, _, err := call(append([]string{"score", "--progress", "none"}, c.args...)...)
		if code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %d, %v, want %d with %s", c.args, code, err, c.code, c.want)
		}
	}
}

// TestTaskRecipes checks that a recipe has the outcomes of the file that it would write.
func TestTaskRecipes(t *testing.T) {
	q := quantized(t, gollama, "Q2_K")[0]
	_, out, _, err := call("task", "winogrande", "-f", taskData+"winogrande.csv", "--progress", "none", "--json", gollama, q,
		"--type", "Q2_K", "--tasks", "20")
	if err != nil {
		t.Fatal(err)
	}
	r := result[taskResult](t, out)
	if len(r.Models) != 3 || r.Models[2].Recipe != "Q2_K" || r.Models[1].Recipe != "" {
		t.Fatalf("%+v", r.Models)
	}
	for i, means := range r.Models[1].Means {
		if !slices.Equal(means, r.Models[2].Means[i]) {
			t.Errorf("task %d: %v, of the file %v", i, r.Models[2].Means[i], means)
		}
	}
	if slices.Equal(r.Models[0].Means[0], r.Models[1].Means[0]) {
		t.Error("the base has the same figures")
	}
}
