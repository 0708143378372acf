package main

import (
	"strings"
	"testing"
)

// TestUsageErrors checks the messages for unknown and missing flags and verbs: with both dashes and a suggestion, not
// the texts of the flag library.
func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"info x.gguf":                       `unknown verb "info", did you mean inspect?`,
		"sha256sum x.gguf":                  "did you mean hash?",
		"quantize x.gguf":                   "ggquant quantizes",
		"frobnicate x":                      "want inspect, ",
		"":                                  "want a verb: inspect, ",
		"imatrix shw x":                     "did you mean show?",
		"submit sge x":                      "want slurm, k8s, kueue, argo, aws-batch, hf-jobs, skypilot",
		"inspect --foo x":                   "unknown flag --foo (see ggtool inspect --help)",
		"inspect -foo x":                    "unknown flag --foo",
		"inspect --jsn x":                   "unknown flag --jsn, did you mean --json?",
		"hash -c list x":                    "unknown flag -c, did you mean --check?",
		"--json inspect x":                  "unknown flag --json: it goes after a verb, such as inspect",
		"inspect x --get":                   "--get has no value: want --get KEY",
		"inspect x --parallel many":         `--parallel "many": want a whole number, 0 or more`,
		"submit slurm --time 4 ggquant":     `--time "4": want a time such as`,
		"imatrix check x":                   "want --model FILE",
		"imatrix remap a b":                 "want --model FILE (see ggtool imatrix remap --help)",
		"release --source a -o b --type q4": "Q4_K_M",
	} {
		code, _, err := call(strings.Fields(args)...)
		if code != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: exit code %d, %v; want %q", args, code, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "flag provided") ||
			strings.Contains(err.Error(), "Required flag") || strings.Contains(err.Error(), "needs an argument")) {
			t.Errorf("%q: the library's words: %v", args, err)
		}
	}
}
