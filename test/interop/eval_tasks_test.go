package interop

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"ggforge/eval/evaltest"
)

// taskLine matches the line that llama-perplexity prints after a task.
var taskLine = regexp.MustCompile(`^\d+\t`)

// TestTasks compares the scores of ggeval task after each task with those of llama-perplexity, which gets the decoded
// weights of the model and runs its exact path: all tasks of the made-up sets, and 15 that are drawn.
func TestTasks(t *testing.T) {
	o := start(t)
	f32, importance, _ := o.calibrated(t)
	for _, recipe := range []string{"F32", "Q8_0", "Q4_K_M"} {
		file, decoded := f32, f32
		if recipe != "F32" {
			file, decoded = work+"/tasks.gguf", work+"/tasks-decoded.gguf"
			ours(t, "ggquant", "--force", "--progress", "none", "--imatrix", root+importance, root+f32, root+file, recipe)
			os.Remove(root + decoded)
			o.tool(t, "llama-quantize", "--allow-requantize", file, decoded, "F32")
		}
		for kind, set := range map[string]string{"hellaswag": "hellaswag.txt", "winogrande": "winogrande.csv",
			"multiple-choice": "multiple-choice.bin"} {
			for _, n := range []string{"", "15"} {
				t.Run(recipe+"/"+kind+n, func(t *testing.T) {
					data, err := os.ReadFile("../../eval/tasks/testdata/" + set)
					must(t, err)
					tasks := work + "/" + set
					must(t, os.WriteFile(root+tasks, data, 0o666))
					theirs := []string{"-m", decoded, "--" + kind, "-f", tasks, "-c", "128", "-np", "8"}
					mine := []string{"task", kind, root + file, "-f", root + tasks, "--compat", "llama.cpp", "--quiet"}
					count := map[string]int{"hellaswag": 40, "winogrande": 104, "multiple-choice": 40}[kind]
					if n != "" {
						count = 15
						theirs, mine = append(theirs, "--"+kind+"-tasks", n), append(mine, "--tasks", n)
					}
					printed := o.perplexity(t, regexp.MustCompile(fmt.Sprintf(`(?m)^%d\t`, count)), theirs...)
					want := map[string]string{}
					for line := range strings.Lines(printed) {
						if taskLine.MatchString(line) {
							number, _, _ := strings.Cut(line, "\t")
							want[number] = strings.TrimSpace(line)
						}
					}
					seen := 0
					for line := range strings.Lines(ours(t, "ggeval", mine...)) {
						number, _, _ := strings.Cut(line, "\t")
						if w := want[number]; taskLine.MatchString(line) && w != "" {
							if seen++; !evaltest.SameScores(strings.TrimSpace(line), w) {
								t.Errorf("%q, want %q", line, w)
							}
						}
					}
					if seen < count/2 || len(want) > count { // the tool may lose lines
						t.Errorf("%d lines of %d, of %d tasks", seen, len(want), count)
					}
				})
			}
		}
	}
}
