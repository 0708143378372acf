package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestSubmit(t *testing.T) {
	slurm, k8s := expect(t, "submit", "slurm"), expect(t, "submit", "k8s")
	command := []string{"--parts", "16", "--", "ggquant", "--imatrix", "a b", "in", "--", "-out", "Q4_K_M"}
	slurm(0, "\n'ggquant' '--part' 'auto/16' '--resume' '--imatrix' 'a b' 'in' '--' '-out' 'Q4_K_M' &\n", command...)
	slurm(0, "\n'ggquant' '--finish' '--imatrix' 'a b' 'in' '--' '-out' 'Q4_K_M' &\n", command...)
	k8s(0, "completions: 16\n", append([]string{"--image", "i", "--claim", "c"}, command...)...)
	slurm(2, "0 parts: want 1 to", "--", "ggquant", "in", "Q8_0")
	slurm(2, "no command", "--parts", "2")
	slurm(2, "--part: parts, --resume", "--parts", "2", "--", "ggquant", "--part", "1/2", "in", "Q8_0")
	slurm(2, "is no size", "--parts", "2", "--mem", "much", "--", "ggquant", "in", "Q8_0")
	k8s(2, "do not run as root", append([]string{"--image", "i", "--claim", "c", "--user", "0"}, command...)...)
	k8s(2, "neither a claim nor", append([]string{"--image", "i"}, command...)...)

	text := slurm(0, "", command...)
	var r submitResult
	if err := json.Unmarshal([]byte(slurm(0, "", append([]string{"--json"}, command...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Job != text || r.Name != "ggquant" || r.Parts != 16 || r.Scheduler != "slurm" || !slices.Equal(r.Finish, append([]string{"ggquant", "--finish"}, command[4:]...)) {
		t.Errorf("%+v", r)
	}
	if !strings.HasPrefix(text, "#!/bin/sh\n") {
		t.Error(text)
	}
}
