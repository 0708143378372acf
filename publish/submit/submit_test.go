package submit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/fault"
)

func TestRefused(t *testing.T) {
	good := Job{Command: []string{"/opt/bin/ggquant", "in", "out", "Q4_K_M"}, Parts: 2}
	with := func(change func(j *Job)) Job {
		j := good
		j.Command = slices.Clone(good.Command)
		change(&j)
		return j
	}
	command := func(words ...string) Job { return with(func(j *Job) { j.Command = words }) }
	for want, j := range map[string]Job{
		"no command": command(),
		"ggtool runs in parts with one of [release] as":                    command("ggtool", "split", "a", "b"),
		`"bash" does not run in parts`:                                     command("/ggquant/bash", "a"),
		"ggeval runs in parts with one of [perplexity compare imatrix] as": command("ggeval", "embed", "a"),
		"ggeval has no arguments":                                          command("ggeval", "imatrix"),
		"ggquant has no arguments":                                         command("ggquant"),
		"--part=1/2: parts":                                                command("ggquant", "a", "--part=1/2"),
		"-finish: parts":                                                   command("ggconv", "-finish", "a"),
		"--resume: parts":                                                  command("ggconv", "a", "--resume"),
		"--dry-run: the command would": with(func(j *Job) {
			j.Command, j.Flags = []string{"ggconv", "--dry-run", "a"},
				[]Flag{{Names: []string{"dry-run"}, PrintsOnly: true}}
		}),
		"--help: the command would": command("ggconv", "--help", "a"),
		"a NUL cannot be":           command("ggconv", "a\x00b"),
		"0 parts: want 1 to 100000": with(func(j *Job) { j.Parts = 0 }),
		"100001 parts":              with(func(j *Job) { j.Parts = 100001 }),
		"a limit is below 0":        with(func(j *Job) { j.Memory = -1 }),
		"below 0: 0 parts at once, 0 retries, 0 CPUs, 0 bytes of memory, a grace of -1s": with(
			func(j *Job) { j.Grace = -time.Second }),
	} {
		s := Slurm{Job: j}
		script, err := s.Script()
		if script != "" || !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", j.Command, err, want)
		}
		k := Kubernetes{Job: j, Pods: Pods{Image: "i", Claim: "c"}}
		if manifest, err := k.Manifest(); manifest != nil || !errors.Is(err, fault.Usage) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", j.Command, err, want)
		}
	}
	after := command("ggquant", "--", "--part", "--dry-run")
	if _, err := (&Slurm{Job: after}).Script(); err != nil {
		t.Errorf("after two hyphens there are no flags: %v", err)
	}
	if _, err := (&Slurm{Job: good, Partition: "a\x00"}).Script(); !errors.Is(err, fault.Usage) {
		t.Errorf("a NUL in an option of sbatch: %v", err)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"":                        "ggquant",
		"--":                      "ggquant",
		"Gollama Q4_K_M":          "gollama-q4-k-m",
		"../../x;rm -rf $HOME\n":  "x-rm-rf-home",
		"Modèle":                  "mod-le",
		strings.Repeat("ab-", 20): strings.TrimRight(strings.Repeat("ab-", 20)[:40], "-"),
	} {
		j := Job{Name: name, Command: []string{"bin/ggquant", "x"}}
		if got := j.CleanName(); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	matrix := Job{Command: []string{"ggeval", "imatrix", "in"}, Parts: 2}
	if got := strings.Join(matrix.Part(), " ") + ", " + strings.Join(matrix.Finish(),
		" "); got != "ggeval imatrix --part auto/2 in, ggeval imatrix --finish in" {
		t.Error(got)
	}
	j := Job{Command: []string{"/bin/ggconv", "--verify", "--outtype", "f16", "-verify=true", "--", "--verify"},
		Parts: 7, Flags: []Flag{{Names: []string{"verify"}, Finish: true},
			{Names: []string{"outtype"}, TakesValue: true}}}
	if got := strings.Join(j.Part(), " "); got != "/bin/ggconv --part auto/7 --resume --outtype f16 -- --verify" {
		t.Error(got)
	}
	if got := strings.Join(j.Finish(),
		" "); got != "/bin/ggconv --finish --verify --outtype f16 -verify=true -- --verify" {
		t.Error(got)
	}
	valued := j
	valued.Command = []string{"ggquant", "--manifest", "m", "-m=n", "--name", "--manifest", "a"}
	valued.Flags = []Flag{{Names: []string{"manifest", "m"}, TakesValue: true, Finish: true},
		{Names: []string{"name"}, TakesValue: true}}
	if got := strings.Join(valued.Part(), " "); got != "ggquant --part auto/7 --resume --name --manifest a" {
		t.Error(got)
	}
	if strings.Join(j.Command, " ") != "/bin/ggconv --verify --outtype f16 -verify=true -- --verify" {
		t.Errorf("changed: %q", j.Command)
	}
}
